"""Detect cache breaks between two calls with their position, cause and cost, without I/O.

The cause is the first changed part of the prefix, an expired lifetime, a rule of the provider, or
else the provider itself. A break that a log entry announced is reported as expected.
"""

from collections.abc import Collection
from datetime import date
from itertools import chain

from msgspec import structs

from longhold.core.log.entries import CacheBroke
from longhold.core.messages import Json, JsonObject, Usage
from longhold.core.models.capabilities import capabilities
from longhold.core.models.prices import TOKENS_PER_PRICE, prices
from longhold.core.request.cache.fingerprint import (
    Fingerprint,
    Move,
    What,
    blocks_of,
    format_others,
    moves,
)
from longhold.core.request.lifetime import life_of, seconds_of
from longhold.core.request.markers import LOOK_BACK_BLOCKS

DROP_RATIO = 0.05  # providers round and move caches, so a few percent less is not a break
DROP_TOKENS = 2_000  # a smaller break costs less than a cent on any model
SLACK_SECONDS = 5.0  # travel and queueing delay before the provider looks up the request

ANNOUNCED = {
    "compacted": "compaction",
    "cleared": "clearing",
    "collapsed": "collapse",
    "snipped": "snip",
    "spilled": "spill",
    "undone": "undo",
    "redone": "redo",
    "rewound": "rewind",
    "framed": "frame",
    "switched": "model",
}

AFTER_EXPIRY = "cleared"  # clearing after the expiry, which a longer lifetime would have avoided

SERVED = "served"  # announces a call whose prompt the provider itself shortened

_SHAPING = frozenset(ANNOUNCED) - {"framed", "switched"}
_ANNOUNCES: dict[What, frozenset[str]] = {
    "model": frozenset({"switched"}),
    "message": _SHAPING | {"framed"},
}
"""The log entries that explain each kind of change. The frame explains all other kinds."""


def find_break(
    before: Fingerprint,
    after: Fingerprint,
    usage_before: Usage,
    usage_after: Usage,
    seconds_between: float,
    expected: Collection[str] = (),
) -> CacheBroke | None:
    """Return a break if the later call read less than it could have.

    `seconds_between` counts from start to start. `expected` lists announcing entries in between.
    """
    lost = count_lost(usage_before, usage_after)
    if not lost:
        return None
    found = _cause(before, after, seconds_between, expected)
    usd = price_lost(after.model, usage_after, lost)
    return structs.replace(found, lost_tokens=lost, usd=round(usd, 6))


def find_undeclared(
    before: Fingerprint, after: Fingerprint, expected: Collection[str]
) -> Move | None:
    """Return the first change that no entry announced. A model switch announces all changes."""
    if before.model != after.model and "switched" in expected:
        return None
    # A breakpoint changes the cached part, but not the prompt.
    found = (move for move in moves(before, after) if move.what != "marker")
    return next((move for move in found if not _announcing(move.what) & set(expected)), None)


def _readable_tokens(usage: Usage) -> int:
    """Count the tokens left in the cache. Return 0 if the usage is a sum of several calls."""
    served = (usage.extra or {}).get("server_tool_use")
    if isinstance(served, dict) and any(served.values()):
        return 0
    return usage.cache_read_tokens + usage.cache_write_tokens


def count_readable(before: Usage, after: Usage) -> int:
    return max(0, _readable_tokens(before) - deleted_between(before, after))


def deleted_between(before: Usage, after: Usage) -> int:
    """Count the tokens that edits deleted since the previous call. Usages report running totals."""
    return max(0, after.deleted_tokens - before.deleted_tokens)


def count_lost(before: Usage, after: Usage) -> int:
    """Count the tokens that missed the cache. Return 0 if they are too few to count as a break."""
    readable = count_readable(before, after)
    lost = readable - after.cache_read_tokens
    return lost if lost >= DROP_TOKENS and lost > DROP_RATIO * readable else 0


def has_read(usage: Usage, before: Usage) -> bool:
    """Return whether a call read the cache that another call wrote. Reading renews the lifetime."""
    return usage.cache_read_tokens >= (1 - DROP_RATIO) * _readable_tokens(before)


def price_lost(model: str, usage: Usage, lost: int, at: date | None = None) -> float:
    """Price tokens that were sent again instead of read. Return 0 if the price is unknown."""
    listed = prices(model, at)
    if listed is None:
        return 0.0
    paid = listed.select_tier(usage.prompt_tokens)
    # Only tokens that this call wrote or sent again cost something.
    lost = min(lost, usage.cache_write_tokens + usage.input_tokens)
    written = min(lost, usage.cache_write_tokens)
    long_share = usage.written_1h_tokens / usage.cache_write_tokens if written else 0.0
    write = long_share * paid.write_1h + (1 - long_share) * paid.write_5m
    again = written * write + (lost - written) * paid.input
    return (again - lost * paid.read) / TOKENS_PER_PRICE


def find_expired(model: str, lifetimes: Collection[str], seconds: float) -> str:
    """Return the longest expired lifetime, or "". Without breakpoints, assume 5 minutes."""
    known = {life_of(model, name) for name in lifetimes or ("5m",)}
    over = [name for name in known if seconds > seconds_of(name) - SLACK_SECONDS]
    return max(over, key=seconds_of, default="")


def _cause(
    before: Fingerprint, after: Fingerprint, seconds: float, expected: Collection[str]
) -> CacheBroke:
    over = find_expired(before.model, before.lifetimes, seconds)
    # Breakpoints with another lifetime result from the expiry and do not cause it.
    moved = [move for move in moves(before, after) if not over or move.what != "marker"]
    first = moved[0] if moved else None
    # The frame comes last, because an entry about messages explains a changed message better.
    announced = sorted(expected, key=lambda kind: kind == "framed")
    by = next((kind for kind in announced if first and kind in _announcing(first.what)), "")
    # Expiry explains the loss even if something else changed meanwhile. A compaction is different:
    # after it, the call could not have read a live cache either.
    if over and by in ("", AFTER_EXPIRY):
        limit = f"{over[:-1]} minutes" if over.endswith("m") else "1 hour"
        meanwhile = format_others(moved).replace("; also", "; meanwhile also", 1)
        is_long = seconds >= 2 * seconds_of("1h")
        span = f"{seconds / 3_600:.1f} hours" if is_long else f"{seconds / 60:.0f} minutes"
        detail = f"the cache lasts {limit}, and the call came after {span}"
        return CacheBroke(cause=f"lifetime_{over}", detail=detail + meanwhile)
    # The request itself only grew, because the provider shortened its own copy.
    if first is None and SERVED in expected:
        detail = "the provider cleared old results on its side"
        return CacheBroke(cause="clearing", detail=detail, expected="cleared")
    if first is not None:
        return CacheBroke(
            cause=ANNOUNCED[by] if by else first.what,
            detail=first.detail + format_others(moved[1:]),
            first_moved=first.name,
            expected=by,
            diff=first.diff(),
        )
    return _rule(before, after)


def _announcing(what: What) -> frozenset[str]:
    return _ANNOUNCES.get(what, frozenset({"framed"}))


def _rule(before: Fingerprint, after: Fingerprint) -> CacheBroke:
    fresh = list(after.messages[before.length :])
    if _has_ended_turn(before, fresh):
        detail = f"{after.model} does not see the thinking of earlier turns"
        return CacheBroke(cause="thinking", detail=detail, expected="said")
    if _has_image(fresh) and not _has_image(before.messages):
        detail = "the first image was added; messages with and without images are cached separately"
        return CacheBroke(cause="image", detail=detail)
    distance = _marker_distance(before, after)
    if distance >= LOOK_BACK_BLOCKS:
        detail = (
            f"{distance} blocks are between two cache breakpoints; "
            f"the provider looks back {LOOK_BACK_BLOCKS} at most"
        )
        return CacheBroke(cause="lookback", detail=detail)
    return CacheBroke(
        cause="provider", detail="nothing changed, and the cache should not have expired"
    )


def _has_ended_turn(before: Fingerprint, fresh: list[JsonObject]) -> bool:
    """Return whether a new user message ends a turn whose thinking this model drops."""
    if capabilities(before.model).keeps_thinking:
        return False
    spoken = next((i for i, message in enumerate(fresh) if _is_spoken(message)), None)
    if spoken is None:
        return False
    for message in chain(reversed(fresh[:spoken]), reversed(before.messages)):
        if _is_spoken(message):
            return False
        if any(_type(block) in ("thinking", "redacted_thinking") for block in blocks_of(message)):
            return True
    return False


def _is_spoken(message: JsonObject) -> bool:
    return message["role"] == "user" and any(_type(b) != "tool_result" for b in blocks_of(message))


def _type(block: Json) -> str:
    return str(block.get("type", "")) if isinstance(block, dict) else ""


def _has_image(messages: Collection[JsonObject]) -> bool:
    blocks = [block for message in messages for block in blocks_of(message)]
    # Screenshots are inside tool results.
    results = (block.get("content") for block in blocks if _type(block) == "tool_result")
    shown = (part for content in results if isinstance(content, list) for part in content)
    return any(_type(block) == "image" for block in chain(blocks, shown))


def _marker_distance(before: Fingerprint, after: Fingerprint) -> int:
    if not before.marked or not after.marked:
        return 0
    start = before.marked[-1]
    end = next((i for i in after.marked if i >= start), None)
    if end is None:
        return 0
    between = sum(len(blocks_of(after.messages[i])) for i in range(start, end))
    return between + _find_marked_block(after, end) - _find_marked_block(before, start)


def _find_marked_block(fingerprint: Fingerprint, i: int) -> int:
    content = fingerprint.parts["messages"][i]["content"]
    return max(j for j, block in enumerate(content) if block.get("cache_control"))
