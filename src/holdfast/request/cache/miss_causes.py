"""Why a call was cold, from what the log shows between it and the previous call.

For calls without a fingerprint: imported sessions, and the first call after a restart. A cause
is always something that can be pointed at in the log. If there is none, the cause is "provider":
either that, or something the log does not record.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.log.answers import UniqueAnswer
from holdfast.log.entries import AnyEntry, Asked, CacheBroke, Failed, Said
from holdfast.messages import Usage, is_thought, text_of
from holdfast.models.capabilities import canonical_name, capabilities
from holdfast.request.cache.breaks import AFTER_EXPIRY, ANNOUNCED, expired
from holdfast.request.cache.monitor import announced
from holdfast.request.cache.moves import changed
from holdfast.request.lifetime import seconds_of

RESTARTS = ("<command-name>/exit<", "<command-name>/quit<", "<command-name>/resume<")
"""What a transcript shows where its agent was quit or resumed."""


@dataclass(slots=True, kw_only=True)
class LoggedCall:
    """An answer, with what the log shows of its request."""

    answer: UniqueAnswer
    start: float
    lifetime: str
    between: Sequence[AnyEntry]
    """The entries since the previous answer."""
    asked: Asked | None
    """The request, with all hashes known by then."""
    broke: CacheBroke | None = None
    renewed: float = 0.0
    """When a fork last read what this call had cached, which extended its life."""

    @property
    def model(self) -> str:
        return self.answer.model

    @property
    def usage(self) -> Usage:
        return self.answer.usage

    @property
    def has_thought(self) -> bool:
        return any(map(is_thought, self.answer.content))

    def observe_break(self, broke: CacheBroke) -> None:
        self.broke = broke

    def renew(self, at: float) -> None:
        self.renewed = max(self.renewed, at)


def explain_cold(before: LoggedCall, after: LoggedCall, seconds: float | None) -> CacheBroke:
    return (
        _announced(after.between, is_over=_idle(before, seconds) is not None)
        or _model(before, after)
        or _idle(before, seconds)
        or _asked(before.asked, after.asked)
        or _restarted(after.between)
        or _thinking(before, after)
        or _shrunk(before, after)
        or _unknown(after.between)
    )


def _announced(between: Sequence[AnyEntry], *, is_over: bool) -> CacheBroke | None:
    kinds = announced(between)
    for kind in ANNOUNCED:
        if is_over and kind == AFTER_EXPIRY:
            continue
        if kind in kinds and kind != "switched":
            detail = f"history was {kind} before the call" if kind != "framed" else "a new frame"
            return CacheBroke(cause=ANNOUNCED[kind], detail=detail, expected=kind)
    return None


def _model(before: LoggedCall, after: LoggedCall) -> CacheBroke | None:
    if canonical_name(before.model) == canonical_name(after.model):
        return None
    detail = f"{after.model} answered instead of {before.model}"
    return CacheBroke(cause="model", detail=detail, expected="switched")


def _idle(before: LoggedCall, seconds: float | None) -> CacheBroke | None:
    over = expired(before.model, {before.lifetime}, seconds or 0.0)
    if not over:
        return None
    limit = seconds_of(over) / 60
    detail = f"{(seconds or 0) / 60:,.0f} minutes idle; the cache lives for {limit:.0f}"
    return CacheBroke(cause=f"lifetime_{over}", detail=detail)


def _asked(before: Asked | None, after: Asked | None) -> CacheBroke | None:
    if before is None or after is None:
        return None
    for cause, old, new in (
        ("tool", before.tool_hashes, after.tool_hashes),
        ("section", before.section_hashes, after.section_hashes),
    ):
        name, change = changed(old, new)
        if old and name:
            return CacheBroke(cause=cause, detail=f"{cause} {name} {change}")
    if before.options_hash and before.options_hash != after.options_hash:
        return CacheBroke(cause="option", detail="the options or beta headers changed")
    if before.markers and not after.markers:
        detail = "the previous call marked messages, this one none"
        return CacheBroke(cause="marker", detail=detail)
    return None


def _restarted(between: Sequence[AnyEntry]) -> CacheBroke | None:
    for entry in between:
        if isinstance(entry, Said) and any(word in text_of(entry.content) for word in RESTARTS):
            return CacheBroke(cause="resume", detail="the agent was restarted")
    return None


def _thinking(before: LoggedCall, after: LoggedCall) -> CacheBroke | None:
    """Detect thinking that the model no longer sees, or that was switched on or off."""
    able = capabilities(after.model)
    is_spoken = any(isinstance(entry, Said) for entry in after.between)
    if before.has_thought and is_spoken and not able.keeps_thinking and _shrinkage(before, after):
        detail = "a new user message: the previous turn's thinking is no longer sent"
        return CacheBroke(cause="thinking", detail=detail, expected="said")
    if (
        before.has_thought != after.has_thought
        and "enabled" in able.thinking_modes
        and "adaptive" not in able.thinking_modes  # an adaptive model's answers show no setting
    ):
        was = "on" if before.has_thought else "off"
        detail = f"thinking was {was} for the previous call, not for this one"
        return CacheBroke(cause="thinking", detail=detail)
    return None


def _shrunk(before: LoggedCall, after: LoggedCall) -> CacheBroke | None:
    """A prompt that only grew cannot have fewer tokens than before."""
    gone = _shrinkage(before, after)
    if not gone:
        return None
    detail = f"the prompt has {gone:,} tokens less: something was removed"
    return CacheBroke(cause="history", detail=detail)


def _shrinkage(before: LoggedCall, after: LoggedCall) -> int:
    return max(0, before.usage.prompt_tokens - after.usage.prompt_tokens)


def _unknown(between: Sequence[AnyEntry]) -> CacheBroke:
    failed = sum(isinstance(entry, Failed) for entry in between)
    refused = f" ({failed} calls failed in between)" if failed else ""
    detail = f"the log shows no reason{refused}: the provider, or a change it does not record"
    return CacheBroke(cause="provider", detail=detail)
