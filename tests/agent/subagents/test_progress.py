"""A progress line of an agent: three to five words, in the present tense."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.agent.subagents.running import accept_line, progress_line
from longhold.core.messages import ToolUse


@pytest.mark.parametrize(
    ("name", "input", "line"),
    [
        ("Read", {"file_path": "/a/b/loop.py"}, "Reading the file loop.py"),
        ("Edit", {"file_path": "x.py"}, "Changing the file x.py"),
        ("Bash", {"command": "X=1 /usr/bin/pytest -q tests"}, "Running the command pytest"),
        ("Grep", {"pattern": "def run"}, "Using the tool Grep"),
        ("mcp__db__query", {}, "Using the tool mcp__db__query"),
    ],
)
def test_each_tool_has_its_words(name, input, line):
    assert progress_line(ToolUse(id="1", name=name, input=input)) == line


@given(
    name=st.sampled_from(["Read", "Bash", "Grep", "WebFetch", "Agent", "Other thing"]),
    text=st.text(max_size=200),
)
def test_whatever_a_call_says_the_line_has_three_to_five_words(name, text):
    input = {"file_path": text, "command": text, "pattern": text, "url": text}
    line = progress_line(ToolUse(id="1", name=name, input=input))
    assert 3 <= len(line.split()) <= 5
    assert line.isprintable()


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("Reading the loop in agent.py.", "Reading the loop in agent.py"),
        ("Reading runAgent.ts", "Reading runAgent.ts"),
        ("Running the tests", "Running the tests"),
        ("Fixing null check in validate.ts", "Fixing null check in validate.ts"),
        ("Working", ""),
        ("Analyzed the branch diff", ""),
        ("Ran all the tests", ""),
        ("the parser in loop.py", ""),
        ("I have read all of the files that there are", ""),
        ("", ""),
    ],
)
def test_a_models_line_counts_only_in_that_form(said, line):
    assert accept_line(said) == line
