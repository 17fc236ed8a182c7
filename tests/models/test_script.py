"""Tests of the line language."""

import pytest

from holdfast.errors import ConfigError
from holdfast.messages import Opaque, Text, Thinking, ToolUse, Usage
from holdfast.models.script import ScriptedAnswer, read_script


def test_every_line_of_the_language():
    """One answer can say everything."""
    script = """\
# a comment
think: hm
text: Let me look,
  and then some.
tool: Read {"path": "a: b"}
block: {"type": "hologram", "shape": "cube"}
usage: input=1 output=2 read=3 write=4
stop: max_tokens
"""
    assert read_script(script) == (
        ScriptedAnswer(
            blocks=(
                Thinking(thinking="hm", signature="scripted"),
                Text(text="Let me look,\nand then some."),
                ToolUse(id="", name="Read", input={"path": "a: b"}),
                Opaque(raw={"type": "hologram", "shape": "cube"}),
            ),
            usage=Usage(input_tokens=1, output_tokens=2, cache_read_tokens=3, cache_write_tokens=4),
            stop_reason="max_tokens",
        ),
    )


def test_answers_are_parted_by_dashes():
    """Each part is one answer; a last separator adds none."""
    assert [answer.error for answer in read_script("text: a\n---\nerror: 529\n---\n")] == [
        None,
        "529",
    ]


def test_an_empty_answer_between_separators_is_an_answer():
    """A model may say nothing."""
    assert read_script("---\ntext: a") == (
        ScriptedAnswer(),
        ScriptedAnswer(blocks=(Text(text="a"),)),
    )


def test_a_tool_without_input_has_an_empty_one():
    """The input may be left out."""
    (answer,) = read_script("tool: Now")
    assert answer.blocks == (ToolUse(id="", name="Now", input={}),)


@pytest.mark.parametrize(
    "line",
    [
        "shout: hi",
        "no colon",
        "tool: Read {oops",
        "tool: Read [1]",
        "usage: in=1",
        "error: maybe",
        "error:",
    ],
)
def test_a_line_that_is_wrong_is_named_by_its_number(line):
    """Mistakes are found where they are."""
    with pytest.raises(ConfigError, match="script line 2"):
        read_script(f"text: a\n{line}")
