"""What an earlier process left in the provider's cache, told by the log.

A view comes in with its messages as they would be sent now; out come the place up to which the
last answered request can be read and how many messages are as they were then. A request that
nobody answered left nothing. Where entries since may have moved messages, the log is folded
once more up to that request: what was sent then is known exactly, whatever came later.
"""

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.log.entries import AnyEntry, Asked, Framed, Redone, Said, Switched, Undone, ViewChange
from holdfast.messages import JsonObject, message_to_wire
from holdfast.models.capabilities import capabilities
from holdfast.request.build import first_messages
from holdfast.request.edits import placed, takes_edits, with_edits
from holdfast.request.markers import CachedPrefix, last_place
from holdfast.view import View, fold


class Behind(NamedTuple):
    """What can be read of an earlier process's calls."""

    left: CachedPrefix
    unmoved: int
    """How many messages are as they were sent then."""


def left_behind(view: View, messages: Sequence[JsonObject]) -> Behind | None:
    """Find what the last answered request left, given the messages as they are now."""
    asked = view.answered
    if asked is None or not asked.markers:
        return None
    at = _position(view.history, asked)
    then: Sequence[JsonObject] = messages[: asked.chain_length]
    if any(_may_move(entry, view.model) for entry in view.history[at:]):
        then = _as_sent(fold(view.history[:at]))
    place = last_place(then[: asked.markers[-1] + 1])
    if place is None:
        return None
    left = CachedPrefix(place=place, message=then[place.message])
    return Behind(left, _alike(then, messages))


def _position(history: Sequence[AnyEntry], asked: Asked) -> int:
    return next(i for i in range(len(history) - 1, -1, -1) if history[i] is asked)


def _may_move(entry: AnyEntry, model: str) -> bool:
    """Say whether an entry may change messages that were sent before it."""
    if isinstance(entry, Said):  # it ends a turn, whose thinking some models are not shown again
        return not capabilities(model).keeps_thinking
    return isinstance(entry, ViewChange | Undone | Redone | Framed | Switched)


def _as_sent(view: View) -> list[JsonObject]:
    """Render a view as it went over the wire."""
    frame = view.frame or Framed()
    sent = [message_to_wire(message) for message in view.messages()]
    if takes_edits(frame, view.model):
        edits = placed(view)
        sent = [with_edits(message, edits.get(i, ())) for i, message in enumerate(sent)]
    return [*first_messages(frame), *sent]


def _alike(then: Sequence[JsonObject], now: Sequence[JsonObject]) -> int:
    """Count the leading messages that are the same."""
    pairs = zip(then, now, strict=False)
    return next(
        (i for i, (one, other) in enumerate(pairs) if not (one is other or one == other)), len(then)
    )
