"""A digest claims only what the log supports: outcomes, changes, names."""

import re

from hypothesis import given
from hypothesis import strategies as st

from longhold.core.messages import Text, ToolUse
from longhold.core.stages.compact.digest import FactPieces
from longhold.core.stages.facts.names import find_names
from longhold.core.stages.facts.outcome import has_failed
from longhold.core.stages.facts.tool_steps import extract
from longhold.core.view.items import Item, Result, Round, Spoken

COMMANDS = ("make test", "mix test --seed 0", "git commit -m x", "git status", "go build ./...")
OUTPUTS = (
    "14 doctests, 297 tests, 0 failures",
    "14 doctests, 297 tests, 11 failures",
    "[main 3f9c2ab] x\n 1 file changed",
    "On branch main\nChanges not staged for commit:\n\tmodified:   src/a.py\n",
    "On branch main\nnothing to commit, working tree clean",
    "Exit code 1\nsrc/a.py:3:1: undefined: run_all",
    "[lint] ERROR task failed",
    "ok  \texample.org/app/one\t(cached)\n" * 9,
    "",
)
SAID = ("The root cause is the lock in retry_row.", "Let me look at it.", "All 297 tests pass.")
LINES = ("a = 1", "def run_all():", "    return 12", "# a note", "import os")

commands = st.tuples(st.just("Bash"), st.sampled_from(COMMANDS), st.sampled_from(OUTPUTS))
texts = st.lists(st.sampled_from(LINES), max_size=4).map("\n".join)
edits = st.tuples(st.just("Edit"), texts, texts)
asked = st.tuples(st.just("user"), st.sampled_from(("go on", "why did test_b fail?")), st.just(""))
spoken = st.tuples(st.just("said"), st.sampled_from(SAID), st.just(""))
sessions = st.lists(st.one_of(commands, edits, asked, spoken), min_size=1, max_size=25)


def build(steps: list[tuple[str, str, str]]) -> list[Item]:
    items: list[Item] = []
    for n, (kind, first, second) in enumerate(steps, 1):
        match kind:
            case "user":
                items.append(Spoken(id=n, order=n, content=(Text(text=first),)))
                continue
            case "said":
                content = (Text(text=first),)
                items.append(Round(id=n, order=n, response_id=f"r{n}", content=content))
                continue
            case "Bash":
                given_input, result = {"command": first}, second
            case _:
                path = {"file_path": "/p/src/a.py"}
                given_input, result = path | {"old_string": first, "new_string": second}, "ok"
        use = ToolUse(id=f"t{n}", name=kind, input=given_input)
        came = Result(id=n, tool_use_id=f"t{n}", content=result)
        items.append(Round(id=n, order=n, response_id=f"r{n}", content=(use,), results=(came,)))
    return items


@given(sessions, st.integers(150, 4_000))
def test_commands_end_as_the_log_says(steps, budget):
    told = FactPieces(facts=extract(build(steps))).digest(budget)
    runs = {n: step for n, step in enumerate(steps, 1) if step[0] == "Bash"}
    for command, ended, n, before, failed in re.findall(
        r"^- `(.+?)` (→|ok|failed).*?\[#(\d+)\](?:, run ×(\d+) before)?(?:, failed \[([#\d ]+)\])?$",
        told,
        re.MULTILINE,
    ):
        _, text, output = runs[int(n)]
        assert text == command
        is_failed = has_failed(output) and text != "git status"
        assert (ended == "failed") == is_failed
        earlier = [k for k, run in runs.items() if run[1] == text and k < int(n)]
        assert int(before or 0) <= len(earlier)
        for k in map(int, re.findall(r"\d+", failed)):
            assert k in earlier and has_failed(runs[k][2])


@given(sessions, st.integers(150, 4_000))
def test_what_worked_later_and_what_is_not_committed_is_in_the_log(steps, budget):
    told = FactPieces(facts=extract(build(steps))).digest(budget)
    for n, later in re.findall(r"\[#(\d+)\] `.*Worked later \[#(\d+)\]", told):
        first, then = steps[int(n) - 1], steps[int(later) - 1]
        assert int(later) > int(n) and first[1] == then[1] and not has_failed(then[2])
    for n in map(
        int, re.findall(r"not committed, by git status \[#(\d+)\]: modified src/a.py", told)
    ):
        assert "modified:" in steps[n - 1][2]
        assert not any("3f9c2ab" in step[2] for step in steps[n:] if step[0] == "Bash")
    for n, old, new in re.findall(
        r"edited a\.py \[#(\d+)\]: `(.+?)` → `(.+?)`$", told, re.MULTILINE
    ):
        assert old in steps[int(n) - 1][1] and new in steps[int(n) - 1][2]


@given(sessions, st.integers(150, 4_000))
def test_names_and_citations_are_in_the_log(steps, budget):
    told = FactPieces(facts=extract(build(steps))).digest(budget)
    log = " ".join(part for step in steps for part in step) + " /p/src/a.py"
    assert all(int(n) <= len(steps) for n in re.findall(r"#(\d+)", told))
    body = re.sub(r"\[#[#\d ]+\]|\d+ packages|lines \d+", "", told)
    for name in find_names(body):
        assert name.rpartition("/")[2] in log
