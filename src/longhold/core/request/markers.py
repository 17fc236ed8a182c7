"""Choose where to put the cache breakpoints of a request.

A provider accepts four. Two are in the system prompt: at the end of its shared part and at its end.
One is on the last message, for the next call. A provider looks back only 20 blocks, so after a long
round or a change inside the history, the fourth is on the last readable block.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec import Struct

from longhold.core.messages import JsonObject

SLOTS = 4  # providers refuse a request with more
LOOK_BACK_BLOCKS = 20  # blocks that a provider searches before a breakpoint, including its own
UNMARKABLE = frozenset({"thinking", "redacted_thinking", "cache_edits"})
"""Blocks on which the API refuses a breakpoint."""


class MarkerPlace(NamedTuple):
    message: int
    block: int


class CachedPrefix(Struct, frozen=True, kw_only=True):
    place: MarkerPlace
    message: JsonObject

    def is_in(self, messages: Sequence[JsonObject], unmoved: int) -> bool:
        """Return whether these messages, `unmoved` of them unchanged, begin with the prefix."""
        at, block = self.place
        if at >= len(messages) or at > unmoved:
            return False
        now, then = messages[at], self.message
        return now is then or now["content"][: block + 1] == then["content"][: block + 1]


def common_prefix(known: Sequence[object], now: Sequence[object]) -> int:
    return count_unchanged(min(len(known), len(now)), lambda i: known[i] is not now[i])


def count_unchanged(length: int, is_changed: Callable[[int], bool]) -> int:
    """Count the leading unchanged places by bisection from the end, because messages grow there."""
    step = 1
    while step <= length and is_changed(length - step):
        step *= 2
    return bisect_left(range(length), True, max(0, length - step), key=is_changed)


def last_place(messages: Sequence[JsonObject]) -> MarkerPlace | None:
    for at in range(len(messages) - 1, -1, -1):
        content = messages[at]["content"]
        for block in range(len(content) - 1, -1, -1):
            if content[block].get("type") not in UNMARKABLE:
                return MarkerPlace(at, block)
    return None


def places(
    messages: Sequence[JsonObject], cached: CachedPrefix | None, unmoved: int, *, slots: int
) -> tuple[MarkerPlace, ...]:
    last = last_place(messages)
    if last is None or slots < 1:
        return ()
    readable = _find_readable(messages, cached, unmoved)
    if readable is None or slots < 2 or distance(messages, readable, last) < LOOK_BACK_BLOCKS:
        return (last,)
    return (readable, last)


def _find_readable(
    messages: Sequence[JsonObject], cached: CachedPrefix | None, unmoved: int
) -> MarkerPlace | None:
    if cached is None:
        return None
    return cached.place if cached.is_in(messages, unmoved) else last_place(messages[:unmoved])


def distance(messages: Sequence[JsonObject], first: MarkerPlace, last: MarkerPlace) -> int:
    """Count the blocks between two places, but stop beyond the look-back."""
    if first.message == last.message:
        return last.block - first.block
    count = len(messages[first.message]["content"]) - 1 - first.block + last.block + 1
    for at in range(first.message + 1, last.message):
        if count >= LOOK_BACK_BLOCKS:
            break
        count += len(messages[at]["content"])
    return count


def add_markers(
    messages: Sequence[JsonObject], where: Sequence[MarkerPlace], marker: JsonObject
) -> list[JsonObject]:
    """Put a breakpoint on each of these blocks. Other messages stay the same objects."""
    carried = list(messages)
    for at, block in where:
        content = list(carried[at]["content"])
        content[block] = content[block] | {"cache_control": marker}
        carried[at] = carried[at] | {"content": content}
    return carried


class Markers:
    def __init__(self) -> None:
        self.cached: CachedPrefix | None = None
        self._sent: CachedPrefix | None = None
        self._length = 0
        self._unmoved = 0

    def place(
        self, messages: Sequence[JsonObject], unmoved: int, *, slots: int
    ) -> tuple[MarkerPlace, ...]:
        """Choose the next call's breakpoints. The first `unmoved` messages did not change."""
        self._unmoved, self._length = min(self._unmoved, unmoved), len(messages)
        where = places(messages, self.cached, self._unmoved, slots=slots)
        if where:
            self._sent = CachedPrefix(place=where[-1], message=messages[where[-1].message])
        return where

    def cached_in(self, messages: Sequence[JsonObject], unmoved: int) -> MarkerPlace | None:
        self._unmoved = min(self._unmoved, unmoved)
        cached = self.cached
        return cached.place if cached and cached.is_in(messages, self._unmoved) else None

    def remember(self, cached: CachedPrefix, unmoved: int) -> None:
        """Use an earlier process's cache. The first `unmoved` messages did not change."""
        self.cached, self._unmoved = cached, unmoved

    def observe_reply(self) -> None:
        if self._sent is not None:
            self.cached, self._sent = self._sent, None
            self._unmoved = self._length
