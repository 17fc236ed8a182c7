"""Deletions inside the provider's cache, as they go over the wire.

The messages of a request come in, with the edits the view holds; out come the same messages,
each result with a reference it can be deleted by, and each edit in the message where it was
first sent. A provider keeps no list of deletions: as long as its cache lives, every request
says again what is gone, at the same place, so that the prefix stays as it was. What has
changed since the last time is made anew, all else is passed on as the same object.
"""

from collections.abc import Mapping, Sequence

from holdfast.log.entries import Framed
from holdfast.messages import JsonObject, Usage
from holdfast.models.capabilities import capabilities
from holdfast.request.common_prefix import common_prefix
from holdfast.view import View

BETA = "cache-edits-simulated"
"""The header that opens this; only the simulator has it in public."""


def takes_edits(frame: Framed, model: str) -> bool:
    """Say whether a session's requests carry edits: its frame has latched that it does."""
    return BETA in frame.betas and capabilities(model).cache_edits


def deleted_tokens(usage: Usage | None) -> int:
    """Read how many tokens the edits of a request took out of what was cached, all together."""
    extra = usage.extra if usage else None
    found = (extra or {}).get("cache_deleted_input_tokens")
    return found if isinstance(found, int) else 0


def placed(view: View) -> dict[int, tuple[str, ...]]:
    """Say which of a view's messages name which results as deleted."""
    found: dict[int, tuple[str, ...]] = {}
    messages = view.messages() if view.edits else []
    for entry in view.edits:
        ids = tuple(id for id in entry.ids if is_edited(view, id, entry.place))
        at = view.message_from(entry.place)
        while at < len(messages) and messages[at].role != "user":
            at += 1
        if ids and at < len(messages):
            found[at] = found.get(at, ()) + ids
    return found


def is_edited(view: View, tool_use_id: str, place: int) -> bool:
    """Say whether a result that stands before a place is sent, and deleted in the cache."""
    owner = view.round_of(tool_use_id)
    result = owner.result_of(tool_use_id) if owner and owner.order < place else None
    return bool(result and result.cleared and result.cleared.how == "edited")


class EditedWire:
    """Messages with references and edits, made once each."""

    def __init__(self) -> None:
        self._known: list[JsonObject] = []
        self._placed: Mapping[int, Sequence[str]] = {}
        self._edited: list[JsonObject] = []
        self.unmoved = 0
        """How many messages were as they are now when last asked."""

    def messages(
        self, messages: Sequence[JsonObject], placed: Mapping[int, Sequence[str]]
    ) -> list[JsonObject]:
        """Put references on results, and into each message the edits that stand there.

        From the first message that changed on all are made anew, as in the wire before it.
        """
        low = min(common_prefix(self._known, messages), self._first_moved(placed))
        self.unmoved = low
        self._known[low:] = messages[low:]
        self._edited[low:] = [
            _made_anew(messages[i], placed.get(i, ())) for i in range(low, len(messages))
        ]
        self._placed = placed
        return self._edited

    def leave(self) -> bool:
        """Forget all, as another model takes no edits; say whether any message was changed."""
        was_used = bool(self._known)
        self._known, self._edited, self._placed = [], [], {}
        return was_used

    def _first_moved(self, placed: Mapping[int, Sequence[str]]) -> int:
        """Find the first message whose edits are not as they were."""
        moved = (i for i in {*placed, *self._placed} if placed.get(i) != self._placed.get(i))
        return min(moved, default=len(self._known))


def _made_anew(message: JsonObject, ids: Sequence[str]) -> JsonObject:
    """Give an object of its own even to what stays as it is: who compares finds no old one."""
    made = with_edits(message, ids)
    return dict(message) if made is message else made


def with_edits(message: JsonObject, ids: Sequence[str]) -> JsonObject:
    """Give a message's results their references, and put deletions behind the last of them."""
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
