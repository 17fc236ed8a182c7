"""Replayed sessions: billed like the originals, with the given layers."""

from dataclasses import replace

import pytest
from msgspec import structs

from longhold.core.log.entries import Replied
from longhold.core.log.shared import FileRecords
from longhold.core.settings import (
    BudgetSettings,
    CacheSettings,
    ClearSettings,
    CostSettings,
    GaugeSettings,
    Settings,
    WindowSettings,
)
from longhold.core.view.gauge import save_calibration
from longhold.core.view.tokens import Calibration
from longhold.insight.replay.session_replay import SessionReplay

PLAIN = Settings(
    cache=CacheSettings(lifetime="1h", diagnose=False), gauge=GaugeSettings(calibrate=False)
)
SMALL = replace(PLAIN, window=WindowSettings(limit_tokens=60_000))


async def played(recording, settings, tmp_path):
    replay = SessionReplay(recording, settings, "claude-opus-4-5", tmp_path / "log.jsonl")
    return await replay.play()


async def test_every_recorded_call_is_made_once(recording, tmp_path):
    found = await played(recording, PLAIN, tmp_path)
    calls = {e.response_id for e in recording.entries if isinstance(e, Replied) and e.usage}
    assert len(found.prompts) == len(calls) and found.main.usd > 0
    assert (found.compactions, found.needed.total(), found.prefix_moves) == (0, 0, 0)
    assert found.total.prompt_tokens == sum(found.prompts)


async def test_a_small_window_is_compacted_and_the_engines_calls_are_booked_by_layer(
    recording, tmp_path
):
    found = await played(recording, SMALL, tmp_path)
    assert found.compactions and max(found.gauged) < 60_000
    assert found.prefix_moves >= found.compactions
    assert sum(one.calls for one in found.own.values()) <= len(found.prompts)
    free = BudgetSettings(own_share=0.0)
    unbounded = await played(recording, replace(SMALL, budget=free), tmp_path / "unbounded")
    assert sum(one.usd for one in unbounded.own.values()) > sum(
        one.usd for one in found.own.values()
    )


async def test_what_left_the_view_and_was_needed_is_counted_with_its_price(recording, tmp_path):
    greedy = ClearSettings(keep_results=1, smallest_tokens=0, warm_share=0.0)
    window = replace(SMALL.window, auto_line="")
    settings = replace(SMALL, clear=greedy, cost=CostSettings(need_weight=0.0), window=window)
    found = await played(recording, settings, tmp_path)
    assert found.cleared and found.needed.total() > 0
    assert found.needed_usd > 0 and found.needed_tokens.total() > 0


async def test_what_was_learnt_on_this_machine_changes_nothing(recording, tmp_path):
    settings = replace(SMALL, gauge=GaugeSettings())
    plain = await played(recording, settings, tmp_path / "plain")
    fresh = Calibration.create("claude-opus-4-5")
    heavy = structs.replace(fresh, factors=tuple(2.0 for _ in fresh.factors))
    save_calibration(FileRecords(tmp_path), heavy)
    again = await played(recording, settings, tmp_path / "again")
    assert again.main.usd == pytest.approx(plain.main.usd, rel=0.001)
    assert again.compactions == plain.compactions


async def test_a_session_that_cannot_go_on_says_why(recording, tmp_path):
    tiny = replace(PLAIN, window=WindowSettings(limit_tokens=10_000))
    found = await played(recording, tiny, tmp_path)
    assert "system" in found.stopped
