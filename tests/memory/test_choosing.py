"""A model's choice of what to recall: what it is asked, and which answers count."""

import pytest

from holdfast.errors import RequestRejected
from holdfast.memory.choosing import ANSWER_TOKENS, choose_with, names_in
from holdfast.memory.memory import Memory
from holdfast.memory.recall import Recall
from memory.forks import ScriptedFork


async def test_the_call_is_small_and_its_own(store, write, tmp_path):
    """No conversation, no cache, few tokens; what it names is shown, what it makes up is not."""
    write(
        Memory(file="a.md", name="a", description="coffee"),
        Memory(file="b.md", name="b", description="tea"),
    )
    fork = ScriptedFork(None, answer='Here: ["b.md", "made-up.md", 3]')
    recall = Recall(store, repository=tmp_path, choose=choose_with(fork, "claude-haiku-4-5"))
    found = await recall.recall("what do we drink?")
    assert found.names == ("b.md",)
    [request] = fork.requests
    assert (request.prefix.model, request.prefix.max_output_tokens) == (
        "claude-haiku-4-5",
        ANSWER_TOKENS,
    )
    assert (request.turns, request.prefix.messages, request.prefix.is_cached) == (1, (), False)
    assert "what do we drink?" in request.say and "a.md" in request.say


async def test_words_stand_in_for_an_answer_that_is_none(store, write, tmp_path):
    """And the user can be told."""
    write(Memory(file="a.md", name="a", description="the coffee machine"))
    fork = ScriptedFork(None, answer="I would take the first.")
    recall = Recall(store, repository=tmp_path, choose=choose_with(fork, "claude-haiku-4-5"))
    found = await recall.recall("coffee machine")
    assert found.names == ("a.md",) and "searched by words" in found.note


@pytest.mark.parametrize("answer", ["", "none", "[", '{"a": 1}', "]["])
def test_no_list_is_an_error(answer):
    """Nothing is guessed."""
    with pytest.raises(RequestRejected):
        names_in(answer)


def test_an_empty_list_is_a_choice():
    """None is a good answer."""
    assert names_in("[]") == []
