"""The answers of a history: each counts once, despite parts and copies."""

from longhold.core.log.entries import Forked, Replied, Said
from longhold.core.log.spending import answers_of, usage_of
from longhold.core.messages import Text, Usage
from longhold.insight.calls import explain_calls, totals
from longhold.insight.cost import bill


def replied(n, id, *, tokens=9_000, **fields):
    usage = Usage(cache_write_tokens=tokens, output_tokens=5) if tokens else None
    return Replied(
        n=n, at=float(n), response_id=id, model="claude-opus-5", content=(), usage=usage, **fields
    )


def said(n):
    return Said(n=n, at=float(n), content=(Text(text="go"),))


COPIED = [said(1), replied(2, "a"), said(3), replied(4, "b"), said(5), replied(6, "a")]
COPIED += [said(7), replied(8, "b"), said(9), replied(10, "c")]
"""A session that went on from a copy of its own beginning."""


def test_a_copy_of_the_beginning_holds_no_further_answers():
    assert [answer.first.n for answer in answers_of(COPIED).values()] == [2, 4, 10]


def test_the_bill_and_the_cache_count_the_same_calls():
    assert totals(explain_calls(COPIED))["calls"] == bill(COPIED).total.tally.calls == 3
    assert totals(explain_calls(COPIED))["usd"] == bill(COPIED).total.tally.usd


def test_the_last_usage_of_an_answer_in_pieces_counts():
    pieces = [replied(1, "a", tokens=0), replied(2, "a", stop_reason="end_turn"), replied(3, "a")]
    [answer] = answers_of(pieces).values()
    assert (answer.first.n, answer.usage.cache_write_tokens) == (1, 9_000)
    assert answer.stop_reason == "end_turn"


def test_answers_without_an_id_are_not_taken_for_one():
    assert len(answers_of([replied(1, ""), replied(2, "")])) == 2


def test_an_answer_that_tells_nothing_is_no_call():
    assert answers_of([replied(1, "a", tokens=0)]) == {}


def test_usage_adds_up_with_its_split_by_lifetime():
    split = Usage(cache_write_tokens=30, cache_write_5m_tokens=10, cache_write_1h_tokens=20)
    answers = [Replied(n=n, response_id=id, content=(), usage=split) for n, id in enumerate("aab")]
    total = usage_of([*answers, Forked(n=9, source="notes", usage=split)])
    assert total is not None
    assert (total.cache_write_tokens, total.written_5m_tokens, total.written_1h_tokens) == (
        90,
        30,
        60,
    )
    assert usage_of([said(1)]) is None
