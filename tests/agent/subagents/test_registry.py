"""The agents of a log: which run, which ended, and which ends were reported."""

from longhold.agent.subagents.supervisor import AgentRegistry, mark_of
from longhold.core.log.entries import Ended, Ran, Said, Spawned
from longhold.core.messages import Text
from longhold.core.turn.repair import INTERRUPTED

SPAWNED = Spawned(n=1, agent="a-1", tool_use_id="t1")
ENDED = Ended(n=3, agent="a-1", state="completed", text="done")
TOLD = Said(n=4, content=(Text(text="x"),), hidden=True, mail=mark_of(ENDED))


def _one(*history):
    return AgentRegistry().follow(history).known["a-1"]


def test_without_an_end_it_runs():
    assert _one(SPAWNED).ended is None


def test_a_receipt_before_the_end_tells_nothing():
    assert _one(SPAWNED, Ran(n=2, tool_use_id="t1", content="receipt"), ENDED).is_unread


def test_the_calls_result_after_the_end_tells_it():
    assert _one(SPAWNED, ENDED, Ran(n=4, tool_use_id="t1", content="done")).is_told


def test_a_repaired_result_tells_nothing():
    repaired = Ran(n=4, tool_use_id="t1", content=INTERRUPTED, is_error=True)
    assert _one(SPAWNED, ENDED, repaired).is_unread


def test_a_message_tells_of_exactly_one_end():
    again = Spawned(n=5, agent="a-1")
    ended = Ended(n=6, agent="a-1", state="completed")
    assert _one(SPAWNED, ENDED, TOLD).is_told
    assert _one(SPAWNED, ENDED, TOLD, again).ended is None
    assert _one(SPAWNED, ENDED, TOLD, again, ended).is_unread


def test_it_can_be_followed_piece_by_piece():
    register, history = AgentRegistry(), []
    for entry in (SPAWNED, ENDED, TOLD):
        history.append(entry)
        register.follow(history)
    assert register.known["a-1"].is_told
    assert register.list_unreported() == []
