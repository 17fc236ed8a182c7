"""Sessions played again: billed like the first time, with the layers that are given."""

from dataclasses import replace

import pytest

from holdfast.log.entries import Replied
from holdfast.settings import (
    BudgetSettings,
    CacheSettings,
    ClearSettings,
    GaugeSettings,
    Settings,
    WindowSettings,
)
from holdfast.simulator.session_replay import SessionReplay
from holdfast.simulator.sessions import write
from holdfast.transcripts.formats import open_transcript

PLAIN = Settings(
    cache=CacheSettings(lifetime="1h", diagnose=False), gauge=GaugeSettings(calibrate=False)
)
SMALL = replace(PLAIN, window=WindowSettings(limit_tokens=60_000))


@pytest.fixture(scope="module")
def entries(tmp_path_factory):
    """A made-up session that outgrows a small window."""
    path = tmp_path_factory.mktemp("made") / "session.jsonl"
    write(path, 3, 160)
    with open_transcript(path) as transcript:
        return list(transcript.entries)


async def played(entries, settings, tmp_path):
    return await SessionReplay(entries, settings, "claude-opus-5", tmp_path / "log.jsonl").play()


async def test_every_recorded_call_is_made_once(entries, tmp_path):
    """An answer in pieces is one call, and each is billed."""
    found = await played(entries, PLAIN, tmp_path)
    calls = {e.response_id for e in entries if isinstance(e, Replied) and e.usage}
    assert len(found.prompts) == len(calls) and found.usd > 0
    assert (found.compactions, sum(found.needed.values())) == (0, 0)


async def test_a_small_window_is_compacted_and_the_engines_calls_are_booked_by_layer(
    entries, tmp_path
):
    """Within its share of what was spent, and never more calls than the session's own."""
    found = await played(entries, SMALL, tmp_path)
    assert found.compactions and max(found.prompts) < 60_000
    assert sum(found.own_calls.values()) <= len(found.prompts)
    free = BudgetSettings(own_share=0.0)
    unbounded = await played(entries, replace(SMALL, budget=free), tmp_path / "unbounded")
    assert sum(unbounded.own_usd.values()) > sum(found.own_usd.values())


async def test_what_left_the_view_and_was_needed_is_counted(entries, tmp_path):
    """Results that are cleared at once are missed by the calls that need them."""
    greedy = ClearSettings(keep_results=1, smallest_tokens=0, warm_share=0.0)
    settings = replace(SMALL, clear=greedy, cost=replace(SMALL.cost, need_weight=0.0))
    found = await played(entries, settings, tmp_path)
    assert found.cleared and sum(found.needed.values()) > 0
