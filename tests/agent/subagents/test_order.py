"""How an agent ended if its process no longer exists."""

import time

import pytest

from longhold.agent.subagents.running import read_back
from longhold.core.log import Header, Log
from longhold.core.log.entries import Replied, Said, Switched
from longhold.core.log.log import agent_log
from longhold.core.messages import Text, ToolUse, Usage


@pytest.fixture
def log(tmp_path):
    """Writes an agent's log."""

    def write(*entries):
        with Log.create(tmp_path / "a.jsonl", Header(session="a")) as made:
            for entry in (Switched(model="claude-opus-4-6"), *entries):
                made.append(entry)
        return agent_log(tmp_path / "a.jsonl")

    return write


def _answer(stop_reason="end_turn", *blocks):
    return Replied(
        response_id="r1",
        content=(Text(text="the answer"), *blocks),
        stop_reason=stop_reason,
        usage=Usage(input_tokens=3, output_tokens=2),
    )


SAID = Said(content=(Text(text="task"),))


def test_a_last_answer_is_an_end(log):
    done = read_back(log(SAID, _answer()), since=0)
    assert (done.state, done.text) == ("completed", "the answer")
    assert done.usage == Usage(input_tokens=3, output_tokens=2)


@pytest.mark.parametrize(
    "entries",
    [
        (SAID,),
        (SAID, _answer("tool_use", ToolUse(id="t", name="Read", input={}))),
        (SAID, _answer("aborted")),
        (SAID, _answer(""),),
        (SAID, _answer(), SAID),
    ],
)  # fmt: skip
def test_anything_else_was_interrupted(log, entries):
    assert read_back(log(*entries), since=0).state == "interrupted"


def test_an_answer_from_before_it_was_started_again_is_no_end(log):
    assert read_back(log(SAID, _answer()), since=time.time() + 10).state == "interrupted"


def test_a_log_that_is_not_there_is_an_interruption(tmp_path):
    assert read_back(agent_log(tmp_path / "none.jsonl"), since=0).state == "interrupted"
