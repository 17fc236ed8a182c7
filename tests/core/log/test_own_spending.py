"""Overhead: recorded by layer, and limited."""

import pytest
from msgspec import structs

from longhold.core.log.entries import Asked, Failed, Forked, Replied, Withheld
from longhold.core.log.queued_job import SessionJob
from longhold.core.log.spending import OwnSpending, make_failure, sum_spending
from longhold.core.log.stores import default_store
from longhold.core.messages import Usage
from longhold.core.models.prices import price_call
from longhold.core.settings import BudgetSettings, Settings
from longhold.core.turn.answering import SUGGESTION, own_refusal
from longhold.core.turn.engine import Engine
from longhold.errors import BudgetSpent

MODEL = "claude-opus-5"
CALL = Usage(cache_read_tokens=100_000, output_tokens=1_000)
CALL_USD = price_call(MODEL, CALL).usd
LIMITS = BudgetSettings(own_share=0.05, own_floor_usd=0.25)


def answered(n, response):
    return Replied(n=n, response_id=response, model=MODEL, content=(), usage=CALL)


def session(answers, forks=()):
    history = []
    for number in range(answers):
        history += [Asked(n=len(history) + 1), answered(len(history) + 2, f"r{number}")]
    for source in forks:
        history.append(Forked(n=len(history) + 1, source=source, model=MODEL, usage=CALL))
    return history


def test_layers_are_booked_apart_and_agents_are_work():
    history = session(3, ("notes", "memory", "notes", "agent:a1"))
    history.insert(2, answered(99, "r0"))
    found = OwnSpending().follow(history)
    assert {name: spent.calls for name, spent in found.layers.items()} == {
        "notes": 2,
        "memory": 1,
    }
    assert (
        found.total.usd == pytest.approx(sum_spending(history).usd) == pytest.approx(7 * CALL_USD)
    )
    assert found.share == pytest.approx(3 / 7)


def test_only_what_is_new_is_read():
    history, found = session(4, ("notes",)), OwnSpending()
    for end in range(len(history) + 1):
        found.follow(history[:end])
    assert found.total == OwnSpending().follow(history).total


def test_past_its_share_the_engine_asks_nobody():
    found = OwnSpending().follow(session(30))
    assert found.refusal(LIMITS, "notes", CALL_USD) == ""
    assert "would exceed its share of 2.5% (budget.own_share)" in found.refusal(
        LIMITS, "recall", CALL_USD
    )
    found.follow(session(30, ("notes",)))
    assert "would exceed its share of 5.0%" in found.refusal(LIMITS, "notes", CALL_USD)


def test_memory_has_a_budget_of_its_own():
    found = OwnSpending().follow(session(30, ("memory", "dream", "memory")))
    assert found.refusal(LIMITS, "notes", CALL_USD) == ""


def test_a_suggestion_is_priced_as_one_short_answer_on_the_warm_prompt(tmp_path):
    """It is offered where two calls that edit would not be."""
    with default_store().create(directory=tmp_path) as log:
        engine = Engine(log, Settings())
        engine.switch(MODEL, "a test")
        for entry in session(30):
            engine.record(structs.replace(entry, n=0))
        assert own_refusal(engine, "notes")
        assert own_refusal(engine, SUGGESTION) == ""


def test_a_young_session_can_still_compact():
    found = OwnSpending().follow(session(2))
    assert found.refusal(LIMITS, "notes", 0.2)
    assert found.refusal(LIMITS, "compact", 0.2) == ""
    assert found.refusal(LIMITS, "compact", 0.3)


def test_own_calls_never_outnumber_the_sessions():
    found = OwnSpending().follow(session(2, ("notes", "compact")))
    assert "outnumber" in found.refusal(LIMITS, "compact", 0.0)
    assert (
        OwnSpending().follow(session(3, ("notes", "compact"))).refusal(LIMITS, "compact", 0.0) == ""
    )


def test_without_a_share_there_is_no_bound():
    found = OwnSpending().follow(session(1, ("notes",) * 9))
    assert found.refusal(BudgetSettings(own_share=0.0), "notes", 9.0) == ""


def test_a_job_that_a_budget_refused_is_told_as_one_that_failed():
    job = SessionJob(kind="notes", session="s", position=3)
    told = make_failure("notes", BudgetSpent("over its share"))
    assert told == Withheld(what="notes", why="over its share")
    assert job.failure([structs.replace(told, n=4)]) == "over its share"
    assert job.failure([structs.replace(told, n=3)]) == ""
    assert make_failure("notes", TimeoutError()) == Failed(what="notes", error="TimeoutError")
