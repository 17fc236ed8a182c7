"""What a session spent money on."""

from datetime import UTC, datetime

import pytest

from longhold.core.log.entries import Compacted, Forked, Replied, Said
from longhold.core.messages import Text, Usage
from longhold.core.messages.measure import measure_content
from longhold.insight.cost import CostItem, bill, kinds_json

NOVEMBER = datetime(2026, 11, 10, tzinfo=UTC).timestamp()


def said(n, text, hidden=False):
    """Something on the user's side."""
    return Said(n=n, content=(Text(text=text),), hidden=hidden)


def replied(n, id, usage, model="claude-sonnet-5-5", at=NOVEMBER, stop_reason="end_turn"):
    """An answer with its usage."""
    return Replied(
        n=n, at=at, response_id=id, content=(), model=model, usage=usage, stop_reason=stop_reason
    )


MIXED = Usage(
    input_tokens=1_000,
    cache_read_tokens=50_000,
    cache_write_tokens=8_000,
    cache_write_1h_tokens=3_000,
    output_tokens=400,
)


def test_every_kind_has_its_price():
    found = bill([said(1, "go"), replied(2, "a", MIXED)]).total
    assert kinds_json(found.tally) == {
        "uncached": 1_000,
        "read": 50_000,
        "write_5m": 5_000,
        "write_1h": 3_000,
        "output": 400,
    }
    assert found.cost.total == pytest.approx(found.tally.usd)
    assert found.cost.total == pytest.approx(
        (1_000 * 2.0 + 50_000 * 0.1 + 5_000 * 2.5 + 3_000 * 4.0 + 400 * 10.0) / 1e6
    )
    assert found.tally.bare_usd == pytest.approx((59_000 * 2.0 + 400 * 10.0) / 1e6)


def test_an_answer_in_pieces_is_paid_once():
    pieces = [replied(2, "a", Usage(input_tokens=10)), replied(3, "a", Usage(input_tokens=30))]
    found = bill([said(1, "go"), *pieces])
    assert (found.total.tally.calls, found.total.tally.input_tokens) == (1, 30)


def test_models_are_listed_dearest_first():
    found = bill([replied(1, "a", MIXED, "claude-haiku-5-5"), replied(2, "b", MIXED)])
    assert [item.name for item in found.models] == ["claude-sonnet-5-5", "claude-haiku-5-5"]
    assert found.total.cost.total == pytest.approx(sum(i.cost.total for i in found.models))


def test_a_model_without_a_price_is_counted_and_named():
    found = bill([replied(1, "a", MIXED, "granite-9")])
    assert (found.total.tally.unpriced_calls, found.total.cost.total) == (1, 0.0)
    assert found.models[0].tally.cache_read_tokens == 50_000


def test_an_answer_is_priced_by_its_day():
    long = Usage(input_tokens=300_000)
    february = datetime(2026, 2, 1, tzinfo=UTC).timestamp()
    old = bill([replied(1, "a", long, "claude-opus-4-6", february)]).total.cost.total
    new = bill([replied(1, "a", long, "claude-opus-4-6")]).total.cost.total
    assert old == pytest.approx(2 * new)


def shown(text: str, **usage: int) -> dict:
    content = (Text(text=text),)
    return {"content": content, "measure": measure_content(content), "usage": Usage(**usage)}


def test_output_beyond_a_usage_from_mid_stream_is_estimated():
    text = "a word or two " * 400
    half, whole = shown(text, output_tokens=3), shown(text, output_tokens=1_500)
    for more, is_missing in (
        (half, True),
        (whole, False),
        (half | {"stop_reason": "end_turn"}, False),
    ):
        answer = Replied(n=1, at=NOVEMBER, response_id="a", model="claude-sonnet-5-5", **more)
        total = bill([answer]).total
        found = total.tally
        assert (found.unrecorded_output > 1_000) is is_missing
        assert (found.unrecorded_usd > 0) is is_missing
        assert found.estimated_usd == total.cost.total + found.unrecorded_usd


def test_a_summary_whose_call_is_not_recorded_is_estimated():
    summary = (Text(text="so far " * 200),)
    made = {"summary": summary, "measure": measure_content(summary), "before_tokens": 150_000}
    history = [
        said(1, "go"),
        replied(2, "a", MIXED),
        Compacted(n=3, at=NOVEMBER, first=1, last=2, by="import", **made),
    ]
    found = bill(history)
    assert found.total.tally.unrecorded_calls == 1
    assert found.total.tally.unrecorded_usd == pytest.approx(0.015 + 0.01 * 0.4, rel=0.5)
    paid = Forked(n=4, at=NOVEMBER, source="compact", model="claude-sonnet-5-5", usage=MIXED)
    assert bill([*history, paid]).total.tally.unrecorded_calls == 0


def test_an_empty_history_costs_nothing():
    assert bill([]).total == CostItem()


def test_forks_are_billed_by_source():
    fork = Forked(n=3, at=NOVEMBER, source="notes", model="claude-sonnet-5-5", usage=MIXED)
    found = bill([said(1, "go"), replied(2, "a", MIXED), fork, said(4, "on"), fork])
    assert [(item.name, item.tally.calls) for item in found.sources] == [("notes", 2), ("main", 1)]
    assert [item.tally.calls for item in found.models] == [3]
    assert found.total.cost.total == pytest.approx(sum(i.cost.total for i in found.sources))
