"""What resuming an idle session costs: sending everything, clearing first, compacting first.

The cache's age and lifetime come from the session's calls, what could be cleared from the stage
that would clear it. There is advice only for a model with a known price.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.log.entries import AnyEntry
from holdfast.request.cache.advice import (
    FRAME_TOKENS,
    SUMMARY_TOKENS,
    ResumeAdvice,
    cold_resume_advice,
)
from holdfast.request.cache.calls import CallReport, explain_calls, last_of_conversation
from holdfast.request.cache.cost_model import expect
from holdfast.request.lifetime import Lifetime, seconds_of
from holdfast.settings import ClearSettings
from holdfast.stages.clear.candidates import Candidates, weight
from holdfast.stages.clear.placeholder import LONGEST_WEIGHT
from holdfast.stages.clear.snapshot import STAND_IN_WEIGHT
from holdfast.tools.describe import describing
from holdfast.view import View
from holdfast.view.gauge import replay


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """How long a conversation has been idle, and what resuming costs."""

    since: float
    """Start of the call that last read or wrote its cache."""
    seconds: float
    advice: ResumeAdvice | None


def idle(history: Sequence[AnyEntry], now: float, settings: ClearSettings) -> Idle | None:
    """Return None if the history does not say when the last call was."""
    calls = explain_calls(history)
    last = last_of_conversation(calls)
    since = max(last.at, last.renewed) if last else 0.0
    if last is None or not since:
        return None
    seconds = max(0.0, now - since)
    advice = _advice(history, len(calls), last, seconds, settings)
    return Idle(since=since, seconds=seconds, advice=advice)


def _advice(
    history: Sequence[AnyEntry],
    calls: int,
    last: CallReport,
    seconds: float,
    settings: ClearSettings,
) -> ResumeAdvice | None:
    view, gauge = replay(history)
    used, total = gauge.size_tokens(view.total), weight(view.total)
    scale = used / total if total > 0 else 1.0
    known = round(weight(view.frame.measure) * scale) if view.frame else FRAME_TOKENS
    frame = min(known, used)
    lifetime: Lifetime = "1h" if last.lifetime == "1h" else "5m"
    return cold_resume_advice(
        used,
        min(round(_freed_weight(view, settings) * scale), used - frame),
        SUMMARY_TOKENS,
        view.model or last.model,
        seconds,
        lifetime,
        frame_tokens=frame,
        lives_seconds=seconds_of(last.lifetime),
        forecast=expect(calls=calls, grown_tokens=used - frame, lifetime=lifetime),
    )


def _freed_weight(view: View, settings: ClearSettings) -> float:
    """Estimate what clearing would take out of a cold prompt."""
    smallest = max(settings.smallest_tokens, LONGEST_WEIGHT)
    candidates = Candidates(describing(settings.also), smallest=smallest)
    candidates.follow(view)
    batch = candidates.batch(settings.keep_results)
    return max(0.0, batch.weight - STAND_IN_WEIGHT * len(batch))
