"""The table of rules: its order, its reasons, and its copy in the documentation."""

from dataclasses import replace
from pathlib import Path

import pytest

from longhold.core.models.capabilities import capabilities
from longhold.core.policy.clearing import ReadableCache
from longhold.core.policy.decide import (
    BROKEN,
    COLD,
    REFILLED,
    RULES,
    Compact,
    HistoryFacts,
    Refuse,
    Send,
    Situation,
    Wait,
    decide,
    steps_after,
)
from longhold.core.policy.threshold import Fullness, Weight
from longhold.core.settings import CollapseSettings, CompactSettings, Settings, WindowSettings
from longhold.core.view.window import window_for

PAGE = (Path(__file__).parents[3] / "docs" / "compaction.md").read_text(encoding="utf-8")
MODEL = "claude-opus-4-6"
WINDOW = window_for(MODEL, WindowSettings(auto_line="100000"))
PAST = WINDOW.auto_tokens + 1_000
COMPACTION = ("wait", "shorten", "relieve", "compact")


COLD_WINDOW = replace(WINDOW, cold_tokens=60_000)
EXPIRED = ReadableCache("the cache expired", is_expired=True)


def situation(
    used=PAST,
    *,
    settings=None,
    taken=(),
    trigger="auto",
    bound=False,
    window=WINDOW,
    cache=ReadableCache(),  # noqa: B008
    **facts,
):
    known = {"limit_tokens": WINDOW.full_tokens} | facts
    return Situation(
        full=Fullness(used_tokens=used, margin=lambda: 0, window=window),
        cache=lambda: cache,
        settings=settings or Settings(),
        trigger=trigger,
        is_wanted=trigger != "auto",
        taken=frozenset(taken),
        is_thinking=lambda: bound,
        history=lambda: HistoryFacts(**known),
    )


def ruled(*given, **known):
    return decide(situation(*given, **known), COMPACTION)


def heavy(tokens):
    return lambda: [Weight(kind="waiting", name="a message", tokens=tokens, advice="shorten it")]


def test_the_page_lists_every_rule():
    assert len({rule.name for rule in RULES}) == len(RULES)
    missing = [rule.name for rule in RULES if f"| `{rule.name}` | {rule.when} |" not in PAGE]
    assert missing == []


def test_below_the_threshold_nothing_is_done_and_the_reason_is_told():
    found = ruled(50_000)
    assert isinstance(found.plan, Send)
    assert [str(one) for one in found.lost] == [
        "compact: 50,000 tokens are below the threshold, 100,000"
    ]


@pytest.mark.parametrize(
    ("facts", "rule"),
    [
        ({"notes": lambda: ""}, "compact-notes"),
        ({}, "compact-fork"),
        ({"has_overflowed": True}, "compact-direct"),
        ({"failed": {"fork": "no"}}, "compact-direct"),
        ({"failed": {"fork": "no", "direct": "no"}}, "compact-digest"),
        ({"no_answer": "nobody is there"}, "compact-digest"),
        ({"model": False}, "compact-digest"),
        ({"is_broken": lambda: True}, "compact-digest"),
        ({"streaks": lambda: 2}, "compact-digest"),
    ],
)
def test_the_first_way_that_works_writes_the_summary(facts, rule):
    found = ruled(**facts)
    assert (found.rule, type(found.plan)) == (rule, Compact)


def test_once_the_cache_has_expired_a_digest_pays_below_the_threshold():
    cold = {"window": COLD_WINDOW, "cache": EXPIRED}
    found = ruled(60_000, **cold)
    assert found.rule == "compact-digest"
    assert COLD in [one.why for one in found.lost]
    assert ruled(60_000, **cold, notes=lambda: "").rule == "compact-notes"
    assert ruled(60_000, **cold, trigger="manual").rule == "compact-fork", "the user may pay"
    assert ruled(**cold).rule == "compact-fork", "past the threshold a model writes it"
    never = Settings(compact=CompactSettings(on=False))
    for facts in (
        {"used": 59_999},
        {"cache": ReadableCache()},
        {"cache": ReadableCache("another model answers")},
        {"window": WINDOW},
        {"bound": True},
        {"undone_tokens": lambda: 60_000},
        {"settings": never},
    ):
        assert isinstance(ruled(**{"used": 60_000} | cold | facts).plan, Send), facts


def test_a_user_who_asks_is_heard_in_spite_of_the_breaker():
    facts = {"is_broken": lambda: True, "streaks": lambda: 3}
    assert ruled(trigger="manual", **facts).rule == "compact-fork"
    assert ruled(**facts).rule == "compact-digest"
    assert REFILLED in [one.why for one in ruled(**facts).lost]
    assert BROKEN in [one.why for one in ruled(is_broken=lambda: True).lost]


def test_bound_thinking_and_an_undo_wait_a_quarter_and_not_longer():
    quarter = int(1.25 * WINDOW.auto_tokens)
    for facts, rule in (
        ({"bound": True}, "wait-thinking"),
        ({"undone_tokens": lambda: 90_000}, "wait-undo"),
    ):
        found = ruled(**facts)
        assert (found.rule, found.plan.until_tokens) == (rule, quarter)
        assert isinstance(ruled(quarter, **facts).plan, Compact)
    collapsing = Settings(collapse=CollapseSettings(on=True))
    found = ruled(settings=collapsing)
    assert isinstance(found.plan, Wait) and found.plan.until_tokens == WINDOW.full_tokens


def test_notes_do_not_drop_the_thinking_of_a_running_loop():
    assert ruled(bound=True, notes=lambda: "").rule == "wait-thinking"
    found = ruled(bound=True, notes=lambda: "", trigger="manual")
    assert found.rule == "compact-fork"
    assert ruled(bound=True, notes=lambda: "", trigger="reactive").rule == "compact-notes"


def test_what_cannot_fit_is_shortened_and_then_refused_only_if_nothing_can_be_sent():
    over = heavy(WINDOW.full_tokens)
    assert ruled(floor=over).rule == "shorten"
    after = decide(situation(floor=over, taken=("shorten",)), steps_after("shorten", COMPACTION))
    assert (after.rule, type(after.plan)) == ("refuse-floor", Send)
    blocked = situation(WINDOW.blocking_tokens, floor=over)
    assert isinstance(decide(blocked, ("compact",)).plan, Refuse)


def test_a_third_streak_in_a_full_window_ends_the_work():
    full = {"streaks": lambda: 3, "taken": ("relieve",)}
    assert decide(situation(WINDOW.blocking_tokens, **full), ("compact",)).rule == "refuse-refilled"
    assert decide(situation(**full), ("compact",)).rule == "compact-digest"


def test_what_is_switched_off_does_nothing():
    for compact in (CompactSettings(on=False), CompactSettings(reactive_only=True)):
        assert isinstance(ruled(settings=Settings(compact=compact)).plan, Send)
        assert ruled(settings=Settings(compact=compact), trigger="manual").rule == "compact-fork"


def test_steps_only_go_forward():
    assert steps_after("wait", COMPACTION) == ("shorten", "relieve", "compact")
    assert steps_after("compact", COMPACTION) == ()
    assert capabilities(MODEL).window_tokens >= PAST
