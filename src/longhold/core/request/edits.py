"""Deletions inside the provider's cache, in wire form.

Each tool result gets a reference by which it can be deleted, and each edit stands in the message
with which it was first sent. A provider keeps no list of deletions: while its cache lives, every
request repeats them at the same place, so that the prefix does not move. Unchanged messages are
passed on as the same objects.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from longhold.core.log.entries import Framed
from longhold.core.messages import JsonObject, Usage
from longhold.core.models.capabilities import capabilities
from longhold.core.view import View

BETA = "cache-edits-simulated"
"""Enables cache edits; simulator only."""

PlacedEdits: TypeAlias = Mapping[int, Sequence[str]]
"""By index of a message: the ids of the results that it declares deleted."""


def has_edits(frame: Framed, model: str) -> bool:
    return BETA in frame.betas and capabilities(model).cache_edits


def deleted_tokens(usage: Usage | None) -> int:
    return usage.deleted_tokens if usage else 0


def place_edits(view: View) -> PlacedEdits | None:
    """Return the edits that a view's request carries; None for a model that takes none."""
    if not has_edits(view.frame or Framed(), view.model):
        return None
    found: dict[int, tuple[str, ...]] = {}
    messages = view.sent if view.edits else ()
    for entry in view.edits:
        ids = tuple(id for id in entry.ids if _is_edited(view, id, entry.place))
        at = view.message_from(entry.place)
        while at < len(messages) and messages[at].role != "user":
            at += 1
        if ids and at < len(messages):
            found[at] = found.get(at, ()) + ids
    return found


def _is_edited(view: View, tool_use_id: str, place: int) -> bool:
    owner = view.round_of(tool_use_id)
    result = owner.result_of(tool_use_id) if owner and owner.order < place else None
    return bool(result and result.cleared and result.cleared.how == "edited")


def with_edits(message: JsonObject, ids: Sequence[str]) -> JsonObject:
    """Add references to a message's results, and deletions after the last of them."""
    content = [_add_reference(block) for block in message["content"]]
    if not ids and all(new is old for new, old in zip(content, message["content"], strict=True)):
        return message
    if ids:
        results = [i for i, block in enumerate(content) if block.get("type") == "tool_result"]
        deletions = [{"type": "delete", "cache_reference": id} for id in ids]
        place = results[-1] + 1 if results else 0
        content.insert(place, {"type": "cache_edits", "edits": deletions})
    return message | {"content": content}


def _add_reference(block: JsonObject) -> JsonObject:
    if block.get("type") != "tool_result":
        return block
    return block | {"cache_reference": block["tool_use_id"]}
