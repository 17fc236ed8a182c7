"""What a log shows between two calls that explains why the later one was cold.

For sessions whose requests nobody fingerprinted: imported ones, and those that a restart cut in
two. Usages, answers and the entries between come in; the surest clue goes out. A clue is always
something that can be pointed at in the log. Where there is none, the cause is "provider": it,
or something the log does not record.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.log.entries import AnyEntry, Asked, Failed, Said
from holdfast.messages import Content, Usage, is_thought, text_of
from holdfast.models.capabilities import canonical_name, capabilities
from holdfast.request.cache.breaks import ANNOUNCED, expired
from holdfast.request.cache.monitor import announced
from holdfast.request.cache.moves import changed
from holdfast.request.lifetime import seconds_of

LEAVING = ("<command-name>/exit<", "<command-name>/quit<", "<command-name>/resume<")
"""What a transcript shows where its agent was left and started again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clue:
    """Why a call was cold."""

    cause: str
    detail: str = ""
    is_expected: bool = False
    """Something was done that had to cost the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenBetween:
    """What the log shows of one call."""

    model: str
    usage: Usage
    content: Content
    lifetime: str
    asked: Asked | None = None


def explain_cold(
    before: SeenBetween, after: SeenBetween, between: Sequence[AnyEntry], seconds: float | None
) -> Clue:
    """Find the surest clue to a cold call."""
    return (
        _announced(between)
        or _model(before, after)
        or _idle(before, seconds)
        or _asked(before.asked, after.asked)
        or _left(between)
        or _thinking(before, after, between)
        or _shrunk(before, after)
        or _nothing(between)
    )


def _announced(between: Sequence[AnyEntry]) -> Clue | None:
    kinds = announced(between)
    for kind in ANNOUNCED:
        if kind in kinds and kind != "switched":
            return Clue(
                cause=ANNOUNCED[kind],
                detail=f"history was {kind} before the call" if kind != "framed" else "a new frame",
                is_expected=True,
            )
    return None


def _model(before: SeenBetween, after: SeenBetween) -> Clue | None:
    if canonical_name(before.model) == canonical_name(after.model):
        return None
    detail = f"{after.model} answered instead of {before.model}"
    return Clue(cause="model", detail=detail, is_expected=True)


def _idle(before: SeenBetween, seconds: float | None) -> Clue | None:
    over = expired(before.model, {before.lifetime}, seconds or 0.0)
    if not over:
        return None
    limit = seconds_of(over) / 60
    detail = f"{(seconds or 0) / 60:,.0f} minutes idle; the cache lives for {limit:.0f}"
    return Clue(cause=f"lifetime_{over}", detail=detail)


def _asked(before: Asked | None, after: Asked | None) -> Clue | None:
    """Compare what the log kept of both requests."""
    if before is None or after is None:
        return None
    for cause, old, new in (
        ("tool", before.tool_hashes, after.tool_hashes),
        ("section", before.section_hashes, after.section_hashes),
    ):
        name, change = changed(old, new)
        if old and name:
            return Clue(cause=cause, detail=f"{cause} {name} {change}")
    if before.options_hash and before.options_hash != after.options_hash:
        return Clue(cause="option", detail="the options or beta headers changed")
    if before.markers and not after.markers:
        return Clue(cause="marker", detail="the call before marked messages, this one none")
    return None


def _left(between: Sequence[AnyEntry]) -> Clue | None:
    for entry in between:
        if isinstance(entry, Said) and any(word in text_of(entry.content) for word in LEAVING):
            return Clue(cause="resume", detail="the agent was left and started again")
    return None


def _thinking(before: SeenBetween, after: SeenBetween, between: Sequence[AnyEntry]) -> Clue | None:
    """Notice thinking that a model no longer sees, or that was switched on or off."""
    able = capabilities(after.model)
    thought, thinks = _has_thought(before), _has_thought(after)
    is_spoken = any(isinstance(entry, Said) for entry in between)
    if thought and is_spoken and not able.keeps_thinking and _tokens_gone(before, after):
        detail = "new words of the user: the thinking of the turn before is no longer sent"
        return Clue(cause="thinking", detail=detail, is_expected=True)
    if "enabled" in able.thinking_modes and "adaptive" not in able.thinking_modes:
        # Such a model thinks when it is told to, so its answers show what it was told.
        if thought and not thinks:
            return Clue(
                cause="thinking", detail="thinking was on for the call before, not for this"
            )
        if thinks and not thought:
            return Clue(
                cause="thinking", detail="thinking was off for the call before, not for this"
            )
    return None


def _has_thought(seen: SeenBetween) -> bool:
    return any(map(is_thought, seen.content))


def _shrunk(before: SeenBetween, after: SeenBetween) -> Clue | None:
    """A prompt that only grew cannot have fewer tokens than before."""
    gone = _tokens_gone(before, after)
    if not gone:
        return None
    return Clue(
        cause="history", detail=f"the prompt has {gone:,} tokens less: something was taken out"
    )


def _tokens_gone(before: SeenBetween, after: SeenBetween) -> int:
    return max(0, before.usage.prompt_tokens - after.usage.prompt_tokens)


def _nothing(between: Sequence[AnyEntry]) -> Clue:
    failed = sum(isinstance(entry, Failed) for entry in between)
    refused = f" ({failed} calls failed in between)" if failed else ""
    detail = f"the log shows no reason{refused}: the provider, or a change it does not record"
    return Clue(cause="provider", detail=detail)
