"""Descriptions of the causes of cache misses, and ways to avoid them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from msgspec import structs

from longhold.core.messages.usage import Tally
from longhold.core.policy.threshold import COMPACTED_TOKENS, SUMMARY_TOKENS

MOST_REMEDIES = 3
LEAST_USD = 0.005


class CauseRow(Protocol):
    """A row of the index, which is the sum of the calls with one cause."""

    def __getitem__(self, name: str, /) -> Any: ...


class Cause(NamedTuple):
    words: str
    """Words that complete a sentence after "because"."""
    is_avoidable: bool = True
    remedy: str = ""


PAUSE = "pause"

CAUSES = {
    PAUSE: Cause("you came back after the cache had expired"),
    "model": Cause(
        "the model was switched within a session",
        remedy="Switch models between sessions, or right after a compaction: each model has its own cache.",
    ),
    "resume": Cause(
        "the agent was quit and started again",
        remedy="Leave the agent open, or compact before you quit: a restart sends everything again.",
    ),
    "tool": Cause(
        "a tool was added, removed or changed",
        remedy="Connect MCP servers before the first message: tools are the first part of the prompt.",
    ),
    "section": Cause(
        "the system prompt changed",
        remedy="Keep changing values (dates, states) out of the system prompt.",
    ),
    "option": Cause(
        "request options changed", remedy="Choose effort and other options when a session begins."
    ),
    "thinking": Cause(
        "thinking was switched on or off", remedy="Decide on thinking when a session begins."
    ),
    "ended_turn": Cause("a finished turn's thinking is no longer sent", False),
    "history": Cause(
        "something was removed from the history",
        remedy="Clear old results when the cache has expired anyway, as Longhold does.",
    ),
    "marker": Cause("no cache breakpoint was set", remedy="Set cache breakpoints on every call."),
    "message": Cause(
        "an earlier message was changed",
        remedy="Append to the history. Rewritten text is paid for again.",
    ),
    "provider": Cause("the provider, or something the transcript does not record", False),
    "compaction": Cause("the history was compacted", False),
    "clearing": Cause("old results were cleared", False),
    "frame": Cause("the system prompt and tools were renewed", False),
}
"""An unlisted cause is shown by its name and counts as unavoidable."""

HOUR = "Keep the cache for an hour (Claude Code: ENABLE_PROMPT_CACHING_1H=1; Longhold: cache.lifetime)."
COMPACT_FIRST = "Compact before a break, while the cache is warm, or start a new session after it."

WARM_SHARE = 0.09
"""The cost of reading a history from a warm cache, relative to a cold cache."""
WRITING_TOKENS = 5 * SUMMARY_TOKENS
"""The cost of a summary in prompt tokens. An output token costs about five prompt tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    cause: str
    words: str
    is_avoidable: bool
    calls: int
    tokens: int
    usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    what: str
    usd: float


def cause_of(name: str, *, is_expected: bool = False) -> Cause:
    found = _plain_cause(name, is_expected=is_expected)
    return CAUSES.get(found, Cause(name.replace("_", " "), False))


def _plain_cause(name: str, *, is_expected: bool = False) -> str:
    if name == "thinking" and is_expected:  # because the model dropped content, not the user
        return "ended_turn"
    return PAUSE if name.startswith("lifetime_") else name


def is_avoidable(name: str, *, is_expected: bool) -> bool:
    """Return whether the user could avoid the loss. A model switch is expected but avoidable."""
    return cause_of(name).is_avoidable and (not is_expected or name == "model")


def only_avoidable(tally: Tally, cause: str, *, is_expected: bool) -> Tally:
    """Set the loss to 0 unless the user could avoid it. All reports and pages use this function,
    so that their figures agree.
    """
    if is_avoidable(cause, is_expected=is_expected):
        return tally
    return structs.replace(tally, lost_usd=0.0)


def losses(rows: Iterable[CauseRow]) -> tuple[Loss, ...]:
    found: dict[tuple[str, bool], Loss] = {}
    for row in rows:
        if not row["cause"]:
            continue
        avoidable = is_avoidable(row["cause"], is_expected=bool(row["is_expected"]))
        cause = _plain_cause(row["cause"], is_expected=bool(row["is_expected"]))
        before = found.get((cause, avoidable))
        found[cause, avoidable] = Loss(
            cause=cause,
            words=cause_of(cause).words,
            is_avoidable=avoidable,
            calls=row["calls"] + (before.calls if before else 0),
            tokens=row["lost_tokens"] + (before.tokens if before else 0),
            usd=row["lost_usd"] + (before.usd if before else 0.0),
        )
    return tuple(sorted(found.values(), key=lambda loss: -loss.usd))


def remedies(rows: Sequence[CauseRow]) -> tuple[Remedy, ...]:
    saved: dict[str, float] = defaultdict(float)
    hour, compacted = -sum(row["hour_usd"] for row in rows), 0.0
    for row in rows:
        if not is_avoidable(row["cause"], is_expected=bool(row["is_expected"])):
            continue
        if _plain_cause(row["cause"]) != PAUSE:
            saved[cause_of(row["cause"]).remedy] += row["lost_usd"]
        elif row["is_long"]:
            saved[COMPACT_FIRST] += _estimate_saving(row)
        else:
            hour += row["lost_usd"]
            compacted += _estimate_saving(row)
    if hour > compacted:
        saved[HOUR] = hour
    else:
        saved[COMPACT_FIRST] += compacted
    ranked = sorted(saved.items(), key=lambda item: -item[1])
    best = ranked[:MOST_REMEDIES]
    return tuple(Remedy(what=what, usd=usd) for what, usd in best if usd >= LEAST_USD)


def _estimate_saving(row: CauseRow) -> float:
    sent = row["lost_tokens"] / row["calls"]
    kept = (COMPACTED_TOKENS + WRITING_TOKENS) / sent if sent else 1.0
    return max(0.0, 1 - kept - WARM_SHARE) * float(row["lost_usd"])
