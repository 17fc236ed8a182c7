"""Which results were not sent yet, and what their calls show."""

import pytest
from msgspec import structs

from longhold.core.log.entries import Asked, Ran, Replied, Said, Spilled, Undone
from longhold.core.messages import Text, ToolUse
from longhold.core.stages.spill.budget import exit_status_in, find_arrived, find_unsent
from longhold.core.view import fold
from longhold.core.view.items import last_round


def folded(*entries):
    return fold([structs.replace(entry, n=n) for n, entry in enumerate(entries, 1)])


def said(text="go"):
    return Said(content=(Text(text=text),))


def called(*ids, response="r1", tool="Bash"):
    uses = tuple(ToolUse(id=id, name=tool, input={}) for id in ids)
    return Replied(response_id=response, content=uses)


def ran(id, content="x", **fields):
    return Ran(tool_use_id=id, content=content, **fields)


def ids(*entries):
    view = folded(*entries)
    owner = last_round(view.items)
    return sorted(find_unsent(view, owner)) if owner else None


def test_results_since_the_last_request_are_unsent():
    assert ids(said(), Asked(), called("a", "b"), ran("a"), ran("b")) == ["a", "b"]
    assert ids(said(), Asked(), called("a"), ran("a"), called("b"), ran("b")) == ["a", "b"]


@pytest.mark.parametrize(
    "later",
    [(Asked(),), (called("c", response="r2"),)],
    ids=["a request went out", "the model answered"],
)
def test_what_was_sent_is_not(later):
    assert ids(said(), called("a", "b"), ran("a"), ran("b"), *later) == []


def test_another_sources_request_does_not_count():
    assert ids(said(), called("a"), ran("a"), Asked(source="notes")) == ["a"]


def test_what_is_spilled_or_was_undone_is_left_alone():
    spilled = Spilled(tool_use_id="a", text="short")
    assert ids(said(), called("a"), ran("a"), spilled) == []
    assert ids(said(), called("a"), ran("a"), spilled, Undone(target=4)) == []


def test_a_session_without_an_answer_has_no_results():
    assert ids(said()) is None


def test_a_result_nobody_asked_for_is_nothing():
    assert find_arrived(folded(said(), called("a")), ran("b")) is None


@pytest.mark.parametrize(
    ("tool", "result", "status", "has_failed"),
    [
        ("Bash", ran("a", exit_status=0), 0, False),
        ("Bash", ran("a", exit_status=-9), -9, True),
        ("Bash", ran("a", "Exit code 2\nno", is_error=True), 2, True),
        ("Bash", ran("a", "denied", is_error=True), None, True),
        ("Fetch", ran("a", "Exit code 2\nno", is_error=True), None, False),
    ],
)
def test_how_a_command_ended_is_told_or_read(tool, result, status, has_failed):
    arrived = find_arrived(folded(said(), called("a", tool=tool)), result)
    assert (arrived.tool, arrived.exit_status, arrived.has_failed) == (tool, status, has_failed)


CODEX = "Exit code: 2\nWall time: 0.1 seconds\nOutput:\nmake: nothing to do"
CHUNK = "Chunk ID: 7\nWall time: 1.0 seconds\nProcess exited with code 101\nOutput:\nerror[E0308]"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Exit code 1\nTraceback", 1),
        ("some output\n\nCommand exited with code 127", 127),
        ("some output\n[Exit status 2.]", 2),
        (CODEX, 2),
        (CHUNK, 101),
        ('{"output":"x","metadata":{"exit_code":3,"duration_seconds":0.1}}', 3),
        ("Exit code: 0\nWall time: 1 s\nOutput:\nok", 0),
    ],
)
def test_what_shells_say_of_their_end(text, status):
    assert exit_status_in(text) == status


@pytest.mark.parametrize(
    "text",
    [
        "",
        "12 passed",
        "the process may exit with code 3 if asked to\nand then\nmore",
        "docs: exit code 4 means trouble\n" + "x\n" * 400 + "done",
        'print("Process exited with code 5")\nmore',
    ],
)
def test_what_is_merely_mentioned_is_no_status(text):
    assert exit_status_in(text) is None
