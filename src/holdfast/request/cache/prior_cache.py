"""What an earlier process cached at the provider, reconstructed from the log.

Only an answered request cached anything. If entries since then may have changed messages, the log
is folded again up to that request, so what was sent is known exactly.
"""

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.log.entries import AnyEntry, Framed, Redone, Said, Switched, Undone, ViewChange
from holdfast.messages import JsonObject
from holdfast.models.capabilities import capabilities
from holdfast.request.build import Wire, first_messages
from holdfast.request.edits import placed
from holdfast.request.markers import CachedPrefix, last_place
from holdfast.view import View, fold


class PriorCache(NamedTuple):
    cached: CachedPrefix
    unmoved: int
    """How many leading messages are unchanged since."""


def find_prior_cache(view: View, messages: Sequence[JsonObject]) -> PriorCache | None:
    """Return what the last answered request cached of the messages as they are now."""
    asked = view.answered
    if asked is None or not asked.markers:
        return None
    at = next(i for i in range(len(view.history) - 1, -1, -1) if view.history[i].n == asked.n)
    then = list(messages[: asked.chain_length])
    if any(_may_move(entry, view.model) for entry in view.history[at:]):
        past = fold(view.history[:at])
        then = first_messages(past.frame or Framed())
        then += Wire().messages(past.messages(), placed(past))
    place = last_place(then[: asked.markers[-1] + 1])
    if place is None:
        return None
    pairs = enumerate(zip(then, messages, strict=False))
    unmoved = next((i for i, (one, other) in pairs if one != other), len(then))
    return PriorCache(CachedPrefix(place=place, message=then[place.message]), unmoved)


def _may_move(entry: AnyEntry, model: str) -> bool:
    """Return whether an entry may change messages that were sent before it."""
    if isinstance(entry, Said):  # ends a turn, whose thinking some models are not shown again
        return not capabilities(model).keeps_thinking
    return isinstance(entry, ViewChange | Undone | Redone | Framed | Switched)
