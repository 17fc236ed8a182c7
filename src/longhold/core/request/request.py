"""Build a request from a frame and messages. Each message is rendered only once."""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from longhold.core.log.entries import Framed, Section
from longhold.core.messages import Image, Json, JsonObject, Message, message_to_wire
from longhold.core.messages.measure import IMAGE_TOKENS
from longhold.core.models.capabilities import (
    Capabilities,
    asks_long_window,
    capabilities,
    without_window,
)
from longhold.core.models.protocol import Request
from longhold.core.request.markers import SLOTS, MarkerPlace, add_markers, common_prefix
from longhold.core.request.server_side import (
    PlacedEdits,
    drop_unsupported,
    find_first_edit,
    place_edits,
    with_edits,
)
from longhold.core.request.tool_references import is_deferred, spell_out
from longhold.core.view import View

DIAGNOSIS = "cache-diagnosis-2026-04-07"  # asks a provider why its cache missed
GLOBAL_SCOPE = "cache-scope-simulated"  # shares entries across organisations, only in the simulator

IMAGE: JsonObject = {"type": "text", "text": "[image]"}
IMAGE_STEPS = 4

SHORT: JsonObject = {"type": "ephemeral"}  # a breakpoint of five minutes


class Caching(Struct, frozen=True, kw_only=True):
    places: tuple[MarkerPlace, ...] = ()
    tail: MarkerPlace | None = None  # later breakpoints last 5 minutes, as no other call reads them
    key: str = ""  # routes calls with a shared prefix to the same server, if supported
    previous_id: str = ""  # the previous answer's id, for the provider's cache diagnosis


class Wire:
    def __init__(self) -> None:
        self._known: list[Message] = []
        self._edits: PlacedEdits | None = None
        self._wire: list[JsonObject] = []
        self._hidden = 0
        self.unmoved = 0  # number of leading messages that did not change since the last call

    def render(self, view: View) -> list[JsonObject]:
        """Return the view's messages in wire format, with no more images than the model accepts."""
        limit = capabilities(view.model).image_limit
        may_hide = self._hidden or view.total.media_tokens > limit * IMAGE_TOKENS
        hidden = count_hidden(view.sent, limit) if may_hide else 0
        return self.messages(view.sent, place_edits(view), hidden)

    def messages(
        self, messages: Sequence[Message], edits: PlacedEdits | None = None, hidden: int = 0
    ) -> list[JsonObject]:
        """Return all messages in wire format, without the `hidden` oldest images.

        If `edits` is given, even empty, add the references that deletions need.
        """
        low = common_prefix(self._known, messages)
        edited = find_first_edit(self._edits, edits)
        low = low if edited is None else min(low, edited)
        owners = _list_owners(messages) if hidden or self._hidden else []
        if hidden != self._hidden:
            low = min([low, *owners[min(hidden, self._hidden) :][:1]])
        fresh = [message_to_wire(message) for message in messages[low:]]
        for i, count in Counter(owners[:hidden]).items():
            if i >= low:
                fresh[i - low] = hide_images(fresh[i - low], count)
        if edits is not None:
            fresh = [with_edits(one, edits.get(i, ())) for i, one in enumerate(fresh, low)]
        self._known[low:], self._wire[low:] = messages[low:], fresh
        self.unmoved, self._edits, self._hidden = low, edits, hidden
        return self._wire


def count_hidden(messages: Sequence[Message], limit: int) -> int:
    """Return how many of the oldest images to omit. Large steps keep the prefix stable."""
    images, step = len(_list_owners(messages)), max(1, limit // IMAGE_STEPS)
    return min(images, -(-max(0, images - limit) // step) * step)


def _list_owners(messages: Sequence[Message]) -> list[int]:
    return [
        i
        for i, message in enumerate(messages)
        for block in message.content
        for part in getattr(block, "content", None) or (block,)
        if isinstance(part, Image)
    ]


def hide_images(message: JsonObject, count: int) -> JsonObject:
    left = iter(range(count))

    def replace_in(content: Json) -> Json:
        return [replace_block(block) for block in content] if isinstance(content, list) else content

    def replace_block(block: JsonObject) -> JsonObject:
        if block.get("type") == "image" and next(left, None) is not None:
            return IMAGE
        return block | {"content": replace_in(block["content"])} if "content" in block else block

    return message | {"content": replace_in(message["content"])}


def first_messages(frame: Framed) -> list[JsonObject]:
    if not frame.instructions:
        return []
    return [{"role": "user", "content": [{"type": "text", "text": frame.instructions}]}]


def build(
    frame: Framed,
    messages: Sequence[JsonObject],
    *,
    model: str,
    max_output_tokens: int,
    caching: Caching,
) -> Request:
    able = capabilities(model)
    kwargs: JsonObject = {"model": without_window(model), "max_tokens": max_output_tokens}
    if frame.sections:
        kwargs["system"] = _system(frame, able)
    if tools := [tool for tool in frame.tools if able.tool_references or not is_deferred(tool)]:
        kwargs["tools"] = sorted(tools, key=lambda tool: str(tool.get("name")))
    if len(tools) < len(frame.tools):
        messages = spell_out(messages)
    kwargs["messages"] = _mark_messages(messages, caching, frame)
    if able.family == "openai" and caching.key:
        kwargs["prompt_cache_key"] = caching.key
    if DIAGNOSIS in frame.betas:
        kwargs["diagnostics"] = {"previous_message_id": caching.previous_id or None}
    options, betas = drop_unsupported(frame, able)
    if not able.global_scope:
        betas = tuple(beta for beta in betas if beta != GLOBAL_SCOPE)
    if asks_long_window(model) and able.long_window_beta:
        betas = tuple(dict.fromkeys((*betas, able.long_window_beta)))
    return Request(kwargs=kwargs | options, betas=betas)


def _mark_messages(
    messages: Sequence[JsonObject], caching: Caching, frame: Framed
) -> list[JsonObject]:
    tail = caching.tail
    short = [place for place in caching.places if tail is not None and place >= tail]
    kept = [place for place in caching.places if place not in short]
    carried = add_markers(messages, kept, marker(frame.lifetime))
    return add_markers(carried, short, SHORT) if short else carried


def marker(lifetime: str) -> JsonObject:
    return SHORT | ({"ttl": "1h"} if lifetime == "1h" else {})


def free_slots(frame: Framed) -> int:
    return SLOTS - len(_choose_marked(frame.sections)) if frame.cached else 0


def _system(frame: Framed, able: Capabilities) -> list[JsonObject]:
    blocks: list[JsonObject] = [
        {"type": "text", "text": section.text} for section in frame.sections
    ]
    # If the user's MCP tools come first, other users cannot share the system prompt.
    has_own_tools = any(
        str(tool.get("name", "")).startswith("mcp__") and not is_deferred(tool)
        for tool in frame.tools
    )
    can_share = able.global_scope and GLOBAL_SCOPE in frame.betas and not has_own_tools
    lifetime = "1h" if "1h" in (frame.lifetime, frame.system_lifetime) else "5m"
    for i in _choose_marked(frame.sections) if frame.cached else ():
        is_shared = can_share and frame.sections[i].scope == "global"
        scope = {"scope": "global"} if is_shared else {}
        blocks[i] = blocks[i] | {"cache_control": marker(lifetime) | scope}
    return blocks


def _choose_marked(sections: Sequence[Section]) -> list[int]:
    """Return the last global section, the last organisation section, and the last of all."""
    ends = {section.scope: i for i, section in enumerate(sections)}
    shared = {ends[scope] for scope in ("global", "organisation") if scope in ends}
    return sorted({*shared, len(sections) - 1}) if sections else []
