"""Questions to the history: words, phrases, files and kinds."""

import pytest

from longhold.core.log.entries import Compacted, Ran, Replied, Said
from longhold.core.messages import Text, Thinking
from longhold.core.tools.history.question import kinds_of, parse_question
from longhold.errors import NotInHistory


def test_a_question_is_taken_apart():
    asked = parse_question(
        'why did "exit code 1" happen in runTests? file:src/a.py kind:error,edit'
    )
    assert asked.phrases == ("exit code 1",)
    assert asked.files == ("src/a.py",)
    assert asked.kinds == {"error", "edit"}
    assert {"happen", "runtests", "run", "tests"} <= set(asked.words)
    assert not {"why", "did", "in"} & set(asked.words)


def test_a_path_with_spaces_is_quoted():
    assert parse_question('file:"my notes.md"').files == ("my notes.md",)


def test_words_that_only_look_like_fields_are_words():
    asked = parse_question("profile:x http://kind:8080")
    assert (asked.files, asked.kinds) == ((), frozenset())


def test_a_question_of_common_words_alone_is_still_asked():
    assert parse_question("what is it").words == ("what", "is", "it")


def test_an_unknown_kind_is_an_error_that_lists_the_known_ones():
    with pytest.raises(
        NotInHistory, match=r"there is no kind:deployment; ask for user, .* quote it"
    ):
        parse_question("kind:deployment")


@pytest.mark.parametrize(
    ("entry", "tool", "kinds"),
    [
        (Said(content=(Text(text="x"),)), "", {"user"}),
        (Said(content=(Text(text="x"),), hidden=True), "", {"aside"}),
        (Replied(response_id="r", content=(Text(text="x"),)), "", {"answer"}),
        (
            Replied(response_id="r", content=(Thinking(thinking="x", signature=""),)),
            "",
            {"answer", "thinking"},
        ),
        (Ran(tool_use_id="a"), "Edit", {"result", "edit"}),
        (Ran(tool_use_id="a", is_error=True), "Read", {"result", "read", "error"}),
        (Ran(tool_use_id="a", exit_status=2), "Bash", {"result", "command", "error"}),
        (Compacted(first=1, last=2, summary=(Text(text="x"),)), "", {"summary"}),
    ],
)
def test_each_record_has_its_kinds(entry, tool, kinds):
    assert kinds_of(entry, tool) == kinds
