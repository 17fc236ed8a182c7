"""Which way of clearing applies, and the rule used in recorded sessions."""

import gzip
import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from longhold.core.log.entries import Asked, Cleared, Ran, Replied
from longhold.core.messages import ToolUse, text_of
from longhold.core.messages.text import exact_dollars
from longhold.core.models.prices import prices
from longhold.core.policy.candidates import Batch, Candidate, Candidates
from longhold.core.policy.clearing import NEVER_CACHED, UNPRICED, ClearingFacts, ReadableCache
from longhold.core.policy.cost_model import CostModel, Forecast
from longhold.core.policy.decide import Situation, decide
from longhold.core.policy.threshold import Fullness
from longhold.core.settings import (
    ClearSettings,
    CompactSettings,
    CostSettings,
    Settings,
    WindowSettings,
)
from longhold.core.tools.describe import description_of
from longhold.core.view import View
from longhold.core.view.items import Result, Round, StandIn
from longhold.core.view.window import window_for
from longhold.insight.transcripts.formats import open_transcript


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearRule:
    """A rule by weights alone, without regard to the cache."""

    keep: int
    """The newest stay."""
    stop_at: float
    """Oldest first, until what is left weighs no more than this."""
    at_least: float
    """Nothing at all, if less than this would go."""


def choose(results, rule):
    """Take results by a rule of weights."""
    left = sum(result.weight for result in results)
    taken = Batch()
    for result in results[: max(0, len(results) - rule.keep)]:
        if left <= rule.stop_at:
            break
        taken.add(result)
        left -= result.weight
    return taken if taken.weight >= rule.at_least else Batch()


RECORDED = Path(__file__).parents[5] / "shared" / "data" / "transcripts"
THEIRS = ClearRule(keep=3, stop_at=40_000, at_least=20_000)
"""What the recorded clearings were made by."""
SETTINGS = ClearSettings(line_room=0.1, warm_share=0.0)
LINE = window_for("claude-opus-5", WindowSettings(limit_tokens=200_000)).auto_tokens


def result(n, weight, *, how=None):
    shown = StandIn(text="gone", how=how) if how else None
    return Candidate(
        result=Result(id=n, tool_use_id=f"t{n}", content="", cleared=shown),
        use=ToolUse(id=f"t{n}", name="Read", input={}),
        tool=description_of("Read"),
        order=n,
        weight=weight,
        before=n * weight,
    )


def stock(*weights, unread=0, edited=()):
    made = Candidates(smallest=200)
    for n, weight in enumerate(weights):
        made._file(result(n, weight))
    for n, weight in edited:
        made._file(result(n, weight, how="edited"))
    made.unread = unread
    return made


def moment(**changes):
    full = {
        "used_tokens": 60_000,
        "margin": lambda: 0,
        "window": window_for("claude-opus-5", WindowSettings(limit_tokens=200_000)),
    }
    full = {name: changes.pop(name, known) for name, known in full.items()}
    known = {
        "history": (),
        "full": Fullness(**full),
        "scale": 1.0,
        "frame_weight": 20_000.0,
        "cached_tokens": 59_000,
        "cold": "",
        "is_readable_from": 0.0,
    }
    outlook, need_weight = changes.pop("outlook", Forecast()), changes.pop("need_weight", 0.0)
    return ClearingFacts(
        **known | changes,
        costs=CostModel(listed=prices("claude-opus-5"), forecast=outlook),
        settings=Settings(
            cost=CostSettings(need_weight=need_weight), window=WindowSettings(auto_line="")
        ),
    )


def judge(candidates, now, standing, settings):
    """Decide on clearing alone."""
    whole = replace(now.settings, clear=settings)
    facts = replace(now, candidates=candidates, settings=whole, **standing)
    situation = Situation(
        full=facts.full,
        settings=whole,
        cache=lambda: ReadableCache(facts.cold),
        clearing=lambda: facts,
    )
    return decide(situation, ("clear",))


def plan_clearing(*given):
    """Give the plan and the name of its rule, or None."""
    found = judge(*given)
    if not found.step:
        return None
    plan = found.plan
    return SimpleNamespace(
        way=found.rule.removeprefix("clear-"), batch=plan.batch, how=plan.how, why=plan.why
    )


def way(found):
    return found.way if found else None


def test_a_dead_cache_comes_first():
    found = plan_clearing(
        stock(*[1_000] * 20), moment(cold="it died"), {"has_edits": True}, SETTINGS
    )
    assert way(found) == "cold" and len(found.batch) == 15


def test_little_is_not_worth_the_loss():
    few = stock(*[300] * 8)
    assert plan_clearing(few, moment(cold="it died"), {}, SETTINGS) is None
    hiding = stock(*[300] * 8, edited=[(90, 5_000)])
    found = plan_clearing(hiding, moment(cold="it died"), {}, SETTINGS)
    assert [one.id for one in found.batch.results] == ["t90"]


@pytest.mark.parametrize(
    ("count", "unread", "expected"), [(11, 0, None), (11, 1, "edits"), (12, 0, "edits")]
)
def test_edits_wait_for_a_dozen(count, unread, expected):
    found = plan_clearing(
        stock(*[1_000] * count, unread=unread), moment(), {"has_edits": True}, SETTINGS
    )
    assert way(found) == expected


@pytest.mark.parametrize("can_move", [True, False])
def test_fewer_are_deleted_where_that_spares_a_compaction(can_move):
    full = moment(used_tokens=LINE, cached_tokens=LINE - 1_000)
    standing = {"has_edits": True, "can_move": can_move}
    found = plan_clearing(stock(*[12_000] * 11), full, standing, SETTINGS)
    assert (way(found), found.how, len(found.batch)) == ("edits", "edited", 6)
    assert plan_clearing(stock(*[2_000] * 11), full, standing, SETTINGS) is None


def test_at_the_line_stale_edits_do_not_wait_for_the_end_of_a_turn():
    made = stock(*[8_000] * 8, edited=[(90, 5_000)])
    inside = {"is_stale": True, "has_edits": True, "can_move": False}
    full = moment(used_tokens=LINE, cached_tokens=LINE - 1_000)
    found = plan_clearing(made, full, inside, SETTINGS)
    assert (way(found), found.how, len(found.batch)) == ("stale", "rewritten", 4)
    assert plan_clearing(made, moment(), inside, SETTINGS) is None


def test_what_was_deleted_before_is_not_counted_as_cleared_again():
    made = stock(*[1_000] * 8, edited=[(n, 5_000) for n in range(90, 97)])
    found = plan_clearing(made, moment(cold="the cache expired"), {}, SETTINGS)
    assert len(found.batch) == 10
    assert found.why.startswith(
        "cleared 3 old results, about 2,820 tokens, "
        "and took 7 results out of the prompt, because the provider ignored a cache edit for free, as "
    )
    alone = plan_clearing(stock(edited=[(90, 5_000)]), moment(), {"is_stale": True}, SETTINGS)
    assert alone.why == (
        "took 1 result out of the prompt, because the provider ignored a cache edit: the provider's cache cannot delete them"
    )


def test_edits_do_not_move_what_was_sent():
    standing = {"has_edits": True, "can_move": False}
    found = plan_clearing(stock(*[1_000] * 12), moment(), standing, SETTINGS)
    assert (way(found), found.how) == ("edits", "edited")


@pytest.mark.parametrize(("weight", "taken"), [(1_000, 17), (300, 2)])
def test_stale_edits_are_cut_from_the_text(weight, taken):
    made = stock(*[weight] * (20 if weight > 500 else 8), edited=[(90, 5_000), (91, 5_000)])
    found = plan_clearing(made, moment(), {"is_stale": True, "has_edits": True}, SETTINGS)
    assert (way(found), found.how, len(found.batch)) == ("stale", "rewritten", taken)


def test_a_batch_must_pay():
    made = stock(*[4_000] * 12)
    assert way(plan_clearing(made, moment(used_tokens=70_000), {}, SETTINGS)) == "paid"
    dear = moment(used_tokens=150_000, cached_tokens=149_000)
    assert plan_clearing(made, dear, {}, SETTINGS) is None


def test_nothing_warm_is_cleared_early_if_a_compaction_comes_when_it_pays():
    made, now = stock(*[4_000] * 12), moment(used_tokens=70_000)
    by_cost = replace(now, settings=replace(now.settings, window=WindowSettings()))
    found = judge(made, by_cost, {}, SETTINGS)
    assert found.step is None and "the threshold by cost" in str(found.lost)
    off = replace(by_cost.settings, compact=CompactSettings(on=False))
    assert way(plan_clearing(made, replace(by_cost, settings=off), {}, SETTINGS)) == "paid"
    uncached = replace(by_cost, cold=NEVER_CACHED, cached_tokens=0)
    assert way(plan_clearing(made, uncached, {}, SETTINGS)) == "paid"


def test_without_a_price_only_space_is_a_reason_to_clear():
    made, unpriced = stock(*[4_000] * 12), CostModel(listed=UNPRICED)
    now = replace(moment(used_tokens=70_000), costs=unpriced)
    found = judge(made, now, {}, SETTINGS)
    assert found.step is None and "clear-paid: the model has no price" in map(str, found.lost)
    full = replace(moment(used_tokens=LINE, cached_tokens=LINE - 1_000), costs=unpriced)
    assert way(plan_clearing(made, full, {}, SETTINGS)) == "threshold"


def test_a_price_is_not_asked_for_every_turn():
    made, now = stock(*[4_000] * 12), moment(used_tokens=70_000)
    for standing in (
        {"asks_price": False},
        {"is_served": True},
        {"can_move": False},
    ):
        assert plan_clearing(made, now, standing, SETTINGS) is None
    assert plan_clearing(made, now, {}, replace(SETTINGS, paid=False)) is None


def test_at_the_line_room_is_made_by_clearing_if_that_lasts():
    now = moment(used_tokens=LINE, cached_tokens=LINE - 1_000)
    enough, little = stock(*[4_000] * 12), stock(*[3_000] * 8)
    assert way(plan_clearing(enough, now, {}, SETTINGS)) == "threshold"
    assert plan_clearing(little, now, {}, SETTINGS) is None
    assert way(plan_clearing(enough, now, {"can_move": False}, SETTINGS)) == "threshold"


class Watched(list):
    """A list that counts how often it is gone through."""

    looks = 0

    def __iter__(self):
        self.looks += 1
        return super().__iter__()


def test_while_there_is_room_old_results_are_not_gone_through():
    made = stock(*[4_000] * 12)
    made.newest = Watched(made.newest)
    unasked = {"asks_price": False}
    assert plan_clearing(made, moment(used_tokens=70_000), unasked, SETTINGS) is None
    assert made.newest.looks == 0
    full = moment(used_tokens=LINE, cached_tokens=LINE - 1_000)
    assert way(plan_clearing(made, full, unasked, SETTINGS)) == "threshold"
    assert made.newest.looks > 0


def test_a_cache_that_is_off_is_not_one_that_died():
    found = plan_clearing(stock(*[1_000] * 12), moment(cold=NEVER_CACHED), {}, SETTINGS)
    assert found is None
    more = stock(*[4_000] * 12)
    assert way(plan_clearing(more, moment(cold=NEVER_CACHED), {}, SETTINGS)) == "paid"


def test_budgets_shrink_with_small_windows():
    small = window_for("claude-opus-5", WindowSettings(limit_tokens=20_000))
    now = moment(cold="it died", window=small, used_tokens=9_000)
    assert way(plan_clearing(stock(*[300] * 8), now, {}, SETTINGS)) == "cold"


def test_amounts_are_never_nothing():
    assert (exact_dollars(1.234), exact_dollars(0.00123)) == ("$1.23", "$0.0012")


def test_the_recorded_rule_takes_the_oldest_until_enough_is_left():
    results = [result(n, 10_000) for n in range(8)]
    assert [one.id for one in choose(results, THEIRS).results] == ["t0", "t1", "t2", "t3"]
    assert choose(results[:5], THEIRS) == Batch(), "10,000 saved are too few"


def test_the_recorded_rule_keeps_three():
    heavy = [result(n, 50_000) for n in range(4)]
    assert [one.id for one in choose(heavy, THEIRS).results] == ["t0"]


def test_recorded_clearings_are_ours_under_their_rule(recorded):
    """The same results in the same order, by their count of four characters a token.

    A record's own total says how many of the oldest it had left out of account, as cleared
    before without a record. Where a transcript does not hold the results, nothing can be said.
    """
    boundaries = _boundaries(recorded)
    if not boundaries:
        pytest.skip("no clearing was recorded in it")
    cleared = [entry for entry in _entries(recorded) if isinstance(entry, Cleared)]
    if not cleared:
        named = {id for found in boundaries for id in found["compactedToolIds"]}
        assert not named & _tool_uses(recorded), "what is there must be found"
        pytest.skip("the results it names are not in the transcript")
    view = View()
    for entry in _entries(recorded):
        if isinstance(entry, Cleared):
            found = boundaries.pop(0)
            live = _live(view)
            skipped = _left_out(live, found["preTokens"])
            assert [one.id for one in choose(live[skipped:], THEIRS).results] == list(entry.ids)
        view.apply(entry)
    assert not boundaries


def _boundaries(path):
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines if "microcompact_boundary" in line]
    return [
        record["microcompactMetadata"]
        for record in records
        if record.get("subtype") == "microcompact_boundary"
    ]


def _entries(path):
    with open_transcript(path) as transcript:
        yield from transcript.entries


def _tool_uses(path):
    return {
        block.id
        for entry in _entries(path)
        for block in getattr(entry, "content", ())
        if isinstance(block, ToolUse)
    }


def _live(view):
    """All results in order that were not cleared, weighed as the record weighs them."""
    return [
        Candidate(
            result=found,
            use=use,
            tool=description_of(use.name),
            order=item.order,
            weight=len(text_of(found.content)) / 4,
            before=0.0,
        )
        for item in view.items
        if isinstance(item, Round)
        for use in item.tool_uses()
        if (found := item.result_of(use.id)) is not None
        and found.cleared is None
        and description_of(use.name).is_clearable
    ]


def _left_out(live, total):
    """Find how many of the oldest a record did not count, by the total it gives."""
    left = sum(one.weight for one in live)
    for count, one in enumerate(live):
        if left <= total * 1.001:
            assert left == pytest.approx(total, rel=0.001)
            return count
        left -= one.weight
    raise AssertionError("the record counts less than any rest")


def test_nothing_warm_is_touched_while_the_window_is_mostly_empty():
    many, settings = stock(*[4_000] * 40), SETTINGS
    known = {"used_tokens": 80_000, "cached_tokens": 20_000, "outlook": Forecast(calls=500)}
    assert way(plan_clearing(many, moment(**known), {}, settings)) == "paid"
    half = replace(settings, warm_share=0.5)
    assert plan_clearing(many, moment(**known), {}, half) is None
    assert plan_clearing(many, moment(**known), {"has_edits": True}, half) is None
    cold = moment(**known, cold="it died")
    assert way(plan_clearing(many, cold, {}, half)) == "cold"


def test_what_is_likely_to_be_needed_stays_and_what_was_read_again_goes():
    made = Candidates(smallest=200)
    for n, (name, given) in enumerate(
        [
            ("Bash", "make"),
            ("Read", "/old"),
            ("Read", "/twice"),
            ("Read", "/twice"),
            ("Read", "/new"),
        ]
    ):
        one = result(n, 3_000)
        use = ToolUse(id=f"t{n}", name=name, input={"given": given})
        made._file(one._replace(use=use, tool=description_of(name), round=400 if n > 1 else 0))
    for n in range(5, 10):
        made._file(result(n, 1_000))
    made.rounds = 405
    now = moment(cold="it died", need_weight=12.0)
    found = plan_clearing(made, now, {}, SETTINGS)
    assert [one.id for one in found.batch.results] == ["t0", "t1", "t2"]


def test_other_lines_of_a_file_that_was_read_again_are_seldom_needed():
    made = Candidates(smallest=200)
    for n, (path, line) in enumerate([("/a", 1), ("/b", 1), ("/a", 900)]):
        use = ToolUse(id=f"t{n}", name="Read", input={"file_path": path, "offset": line})
        made._file(result(n, 6_000)._replace(use=use, paths=(path,), round=400))
    for n in range(3, 8):
        made._file(result(n, 1_000))
    made.rounds = 405
    now = moment(cold="it died", need_weight=10.0)
    found = plan_clearing(made, now, {}, SETTINGS)
    assert [one.id for one in found.batch.results] == ["t0"]


def test_a_rewrite_costs_no_more_than_the_stake():
    made = Candidates(smallest=200)
    for n in range(25):  # a thousand tokens of result, then three thousand of what stays
        made._file(result(n, 1_000)._replace(before=n * 4_000))
    many = made.batch(5)
    known = {"used_tokens": 130_000, "cached_tokens": 129_000}
    whole = moment(**known).payback(many).cost_now_usd
    bound = moment(**known, stake_usd=whole / 2)
    part = bound.limit_to_stake(many)
    assert part.results == many.results[-len(part) :]
    assert 0 < len(part) < len(many)
    assert bound.payback(part).cost_now_usd <= whole / 2 < whole
    assert moment(**known, stake_usd=math.inf).limit_to_stake(many) is many


def test_only_what_has_expired_is_cleared_for_free():
    now = moment(used_tokens=80_000, cached_tokens=40_000, live_end=10)
    found = judge(stock(*[2_000] * 30), now, {}, SETTINGS)
    assert [one.id for one in found.plan.batch.results] == [f"t{n}" for n in range(10, 25)]
    assert found.rule == "clear-cold"
    assert found.plan.cost_usd < 0


def test_a_rewrite_in_a_list_that_was_added_at_once_begins_at_the_frame():
    late = Batch()
    late.add(result(4, 10_000)._replace(before=30_000))
    begins = [Asked(n=1, at=9.0), Replied(n=2, at=9.0, response_id="a", content=())]
    called = [*begins, Asked(n=3, at=9.0), Replied(n=4, at=9.0, response_id="b", content=())]
    ran = Ran(n=3, at=9.0, tool_use_id="t2")
    added = [*begins, ran, Replied(n=4, at=9.0, response_id="b", content=())]
    cheap, expensive = (moment(history=one).payback(late).cost_now_usd for one in (called, added))
    written = (prices("claude-opus-5").write_5m - prices("claude-opus-5").read) * 30_000 / 1e6
    assert expensive - cheap == pytest.approx(written)
