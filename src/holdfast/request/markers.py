"""Where the markers stand that tell a provider what to keep.

A provider takes four. Two are the system prompt's: at the end of what every session shares and
at its end. One stands on the last message, so that the next call reads up to there. The one
that is left goes where it pays: a provider looks back only 20 blocks from a marker, so after a
long round, or after history was changed in the middle, the place that can still be read gets
one of its own. A request that must leave nothing behind marks only what its parent left there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from holdfast.messages import JsonObject

SLOTS = 4
"""Providers refuse a request with more."""
LOOK_BACK_BLOCKS = 20
"""How many blocks a provider looks at from a marker on, the marked one included."""
UNMARKABLE = frozenset({"thinking", "redacted_thinking", "cache_edits"})
"""Blocks the API refuses a marker on."""


class Place(NamedTuple):
    """A block of a message."""

    message: int
    block: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedPrefix:
    """What a call that was answered left in the cache: everything up to a place."""

    place: Place
    message: JsonObject
    """The message that was marked, as it was sent."""

    def is_in(self, messages: Sequence[JsonObject], unmoved: int) -> bool:
        """Say whether these messages still begin with all that was left.

        `unmoved` of them are known to be as they were. A message that was the last one may have
        grown at its end since.
        """
        at, block = self.place
        if at >= len(messages) or at > unmoved:
            return False
        now, then = messages[at], self.message
        return now is then or now["content"][: block + 1] == then["content"][: block + 1]


def last_place(messages: Sequence[JsonObject]) -> Place | None:
    """Find the last block that may carry a marker."""
    for at in range(len(messages) - 1, -1, -1):
        content = messages[at]["content"]
        for block in range(len(content) - 1, -1, -1):
            if content[block].get("type") not in UNMARKABLE:
                return Place(at, block)
    return None


def places(
    messages: Sequence[JsonObject], left: CachedPrefix | None, unmoved: int, *, slots: int
) -> tuple[Place, ...]:
    """Choose the blocks of a growing conversation to mark, earliest first."""
    last = last_place(messages)
    if last is None or slots < 1:
        return ()
    readable = _readable(messages, left, unmoved)
    if readable is None or slots < 2 or _distance(messages, readable, last) < LOOK_BACK_BLOCKS:
        return (last,)
    return (readable, last)


def _readable(
    messages: Sequence[JsonObject], left: CachedPrefix | None, unmoved: int
) -> Place | None:
    """Find the place up to which a provider still has these messages, as far as can be known.

    Behind a change nothing is left; before it lie the entries of earlier calls, one for each
    round, so a marker on the last message that did not move finds one by looking back.
    """
    if left is None:
        return None
    return left.place if left.is_in(messages, unmoved) else last_place(messages[:unmoved])


def _distance(messages: Sequence[JsonObject], first: Place, last: Place) -> int:
    """Count the blocks from one place to another; past the look-back it no longer matters."""
    if first.message == last.message:
        return last.block - first.block
    count = len(messages[first.message]["content"]) - 1 - first.block + last.block + 1
    for at in range(first.message + 1, last.message):
        if count >= LOOK_BACK_BLOCKS:
            break
        count += len(messages[at]["content"])
    return count


def marked(
    messages: Sequence[JsonObject], where: Sequence[Place], marker: JsonObject
) -> list[JsonObject]:
    """Put a marker on each of these blocks; what carries none is passed on as it is."""
    carried = list(messages)
    for at, block in where:
        content = list(carried[at]["content"])
        content[block] = content[block] | {"cache_control": marker}
        carried[at] = carried[at] | {"content": content}
    return carried


class Markers:
    """What the calls of one conversation left in the provider's cache."""

    def __init__(self) -> None:
        self.left: CachedPrefix | None = None
        """By the last call that was answered."""
        self._sent: CachedPrefix | None = None
        self._length = 0
        self._unmoved = 0

    def place(
        self, messages: Sequence[JsonObject], unmoved: int, *, slots: int
    ) -> tuple[Place, ...]:
        """Choose where to mark the next call; `unmoved` messages are as when last asked."""
        self._unmoved, self._length = min(self._unmoved, unmoved), len(messages)
        where = places(messages, self.left, self._unmoved, slots=slots)
        if where:
            self._sent = CachedPrefix(place=where[-1], message=messages[where[-1].message])
        return where

    def left_in(self, messages: Sequence[JsonObject], unmoved: int) -> Place | None:
        """Say up to where these messages can be read; `unmoved` are as when last asked."""
        self._unmoved = min(self._unmoved, unmoved)
        left = self.left
        return left.place if left and left.is_in(messages, self._unmoved) else None

    def remember(self, left: CachedPrefix, unmoved: int) -> None:
        """Take over what a process before this one left; `unmoved` messages are as they were."""
        self.left, self._unmoved = left, unmoved

    def observe_reply(self) -> None:
        """Take note that the call placed last was answered: what it marked can be read."""
        if self._sent is not None:
            self.left, self._sent = self._sent, None
            self._unmoved = self._length
