"""Deletions inside the provider's cache, in wire form.

Each tool result gets a reference by which it can be deleted, and each edit stands in the message
with which it was first sent. A provider keeps no list of deletions: while its cache lives, every
request repeats them at the same place, so that the prefix does not move. Unchanged messages are
passed on as the same objects.
"""

from collections.abc import Mapping, Sequence

from holdfast.log.entries import Framed
from holdfast.messages import JsonObject, Usage
from holdfast.models.capabilities import capabilities
from holdfast.request.markers import common_prefix
from holdfast.view import View

BETA = "cache-edits-simulated"
"""Enables cache edits; simulator only."""


def takes_edits(frame: Framed, model: str) -> bool:
    """Return whether a session's requests carry edits, as fixed in its frame."""
    return BETA in frame.betas and capabilities(model).cache_edits


def deleted_tokens(usage: Usage | None) -> int:
    """Return how many cached tokens all edits of a request deleted."""
    extra = usage.extra if usage else None
    found = (extra or {}).get("cache_deleted_input_tokens")
    return found if isinstance(found, int) else 0


def placed(view: View) -> dict[int, tuple[str, ...]]:
    """Map message indices to the ids of the results that each declares deleted."""
    found: dict[int, tuple[str, ...]] = {}
    messages = view.messages() if view.edits else []
    for entry in view.edits:
        ids = tuple(id for id in entry.ids if _is_edited(view, id, entry.place))
        at = view.message_from(entry.place)
        while at < len(messages) and messages[at].role != "user":
            at += 1
        if ids and at < len(messages):
            found[at] = found.get(at, ()) + ids
    return found


def _is_edited(view: View, tool_use_id: str, place: int) -> bool:
    """Return whether a result before this place is still sent, and deleted in the cache."""
    owner = view.round_of(tool_use_id)
    result = owner.result_of(tool_use_id) if owner and owner.order < place else None
    return bool(result and result.cleared and result.cleared.how == "edited")


class EditedWire:
    """Messages with references and edits, each made once."""

    def __init__(self) -> None:
        self._known: list[JsonObject] = []
        self._placed: Mapping[int, Sequence[str]] = {}
        self._edited: list[JsonObject] = []
        self.unmoved = 0
        """How many leading messages are unchanged since the previous call."""

    def messages(
        self, messages: Sequence[JsonObject], placed: Mapping[int, Sequence[str]]
    ) -> list[JsonObject]:
        """Add references and edits, rebuilding from the first message that changed."""
        low = min(common_prefix(self._known, messages), self._first_moved(placed))
        self.unmoved = low
        self._known[low:] = messages[low:]
        self._edited[low:] = [
            _rebuilt(messages[i], placed.get(i, ())) for i in range(low, len(messages))
        ]
        self._placed = placed
        return self._edited

    def leave(self) -> bool:
        """Reset for a model without edits; return whether edited messages had been sent."""
        was_used = bool(self._known)
        self._known, self._edited, self._placed = [], [], {}
        return was_used

    def _first_moved(self, placed: Mapping[int, Sequence[str]]) -> int:
        moved = (i for i in {*placed, *self._placed} if placed.get(i) != self._placed.get(i))
        return min(moved, default=len(self._known))


def _rebuilt(message: JsonObject, ids: Sequence[str]) -> JsonObject:
    """Return a new object even if nothing changed, so that identity checks see a change."""
    made = with_edits(message, ids)
    return dict(message) if made is message else made


def with_edits(message: JsonObject, ids: Sequence[str]) -> JsonObject:
    """Add references to a message's results, and deletions after the last of them."""
    content = [_referenced(block) for block in message["content"]]
    if not ids and all(new is old for new, old in zip(content, message["content"], strict=True)):
        return message
    if ids:
        results = [i for i, block in enumerate(content) if block.get("type") == "tool_result"]
        place = results[-1] + 1 if results else 0
        content.insert(place, _deletion(ids))
    return message | {"content": content}


def _referenced(block: JsonObject) -> JsonObject:
    if block.get("type") != "tool_result":
        return block
    return block | {"cache_reference": block["tool_use_id"]}


def _deletion(ids: Sequence[str]) -> JsonObject:
    return {
        "type": "cache_edits",
        "edits": [{"type": "delete", "cache_reference": id} for id in ids],
    }
