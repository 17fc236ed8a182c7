"""One function from view to request.

Messages are turned into the plain values a provider takes once, and kept: a turn costs what
is new. Tools are sorted, keys come in a fixed order, and nothing in here looks at a clock.
Which blocks of the messages carry a marker is chosen by `markers`; here they are put on, with
the lifetime that the frame has latched and the scope that the provider knows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.log.entries import Framed, Section
from holdfast.messages import JsonObject, Message, message_to_wire
from holdfast.models.capabilities import Capabilities, capabilities
from holdfast.models.protocol import Request
from holdfast.request.common_prefix import common_prefix
from holdfast.request.markers import SLOTS, Place, last_place, marked
from holdfast.request.server_side import sendable

DIAGNOSIS = "cache-diagnosis-2026-04-07"
"""Lets a provider say why its cache missed."""
GLOBAL_SCOPE = "cache-scope-simulated"
"""Lets sections be kept for everybody: the simulator's own; providers publicly have none yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caching:
    """What a request asks of the provider's cache."""

    places: tuple[Place, ...] = ()
    """The blocks of the messages that carry a marker."""
    is_on: bool = True
    key: str = ""
    """Sends calls that share a prefix to the same place, where a provider takes such a key."""
    previous_id: str = ""
    """The answer before; a provider that was asked to says what has moved since."""


class Wire:
    """Messages as they go over the wire, rendered once each."""

    def __init__(self) -> None:
        self._known: list[Message] = []
        self._wire: list[JsonObject] = []
        self.unmoved = 0
        """How many messages were as they are now when last asked."""

    def messages(self, messages: Sequence[Message]) -> list[JsonObject]:
        """Give the wire form of all messages, rendering only those that are new.

        A view renders anew from the first message that changed.
        """
        low = common_prefix(self._known, messages)
        self.unmoved = low
        self._known[low:] = messages[low:]
        self._wire[low:] = [message_to_wire(message) for message in messages[low:]]
        return self._wire


def first_messages(frame: Framed) -> list[JsonObject]:
    """Give the messages that stand before the conversation: the instructions, if there are any."""
    if not frame.instructions:
        return []
    return [{"role": "user", "content": [{"type": "text", "text": frame.instructions}]}]


def build(
    frame: Framed,
    messages: Sequence[JsonObject],
    *,
    model: str,
    max_output_tokens: int,
    caching: Caching | None = None,
) -> Request:
    """Put the frame and the messages, those of its opening included, together.

    Unless told otherwise, the last message is marked.
    """
    able = capabilities(model)
    if caching is None:
        last = last_place(messages)
        caching = Caching(places=(last,) if last else ())
    kwargs: JsonObject = {"model": model, "max_tokens": max_output_tokens}
    if frame.sections:
        kwargs["system"] = _system(frame, able, caching)
    if frame.tools:
        kwargs["tools"] = sorted(frame.tools, key=lambda tool: str(tool.get("name")))
    kwargs["messages"] = marked(messages, caching.places, marker(frame))
    if able.family == "openai" and caching.key:
        kwargs["prompt_cache_key"] = caching.key
    if DIAGNOSIS in frame.betas:
        kwargs["diagnostics"] = {"previous_message_id": caching.previous_id or None}
    options, betas = sendable(frame, able)
    if not able.global_scope:
        betas = tuple(beta for beta in betas if beta != GLOBAL_SCOPE)
    return Request(kwargs=kwargs | options, betas=betas)


def marker(frame: Framed) -> JsonObject:
    """Make the marker of a session; its lifetime never changes within one."""
    return {"type": "ephemeral"} | ({"ttl": "1h"} if frame.lifetime == "1h" else {})


def free_slots(frame: Framed) -> int:
    """Count the markers that the system prompt leaves for the messages."""
    return SLOTS - len(_marked_sections(frame.sections))


def _system(frame: Framed, able: Capabilities, caching: Caching) -> list[JsonObject]:
    blocks: list[JsonObject] = [
        {"type": "text", "text": section.text} for section in frame.sections
    ]
    for i in _marked_sections(frame.sections) if caching.is_on else ():
        is_global = able.global_scope and frame.sections[i].scope == "global"
        shared = is_global and GLOBAL_SCOPE in frame.betas and not _has_own_tools(frame)
        scope = {"scope": "global"} if shared else {}
        blocks[i] = blocks[i] | {"cache_control": marker(frame) | scope}
    return blocks


def _marked_sections(sections: Sequence[Section]) -> list[int]:
    """Mark the end of what everybody shares, of what an organisation shares, and of all.

    Providers keep what carries no scope for the organisation, so that is rendered as none.
    """
    ends = {section.scope: i for i, section in enumerate(sections)}
    shared = {ends[scope] for scope in ("global", "organisation") if scope in ends}
    return sorted({*shared, len(sections) - 1}) if sections else []


def _has_own_tools(frame: Framed) -> bool:
    """Say whether tools of this user's servers stand before the system prompt."""
    return any(str(tool.get("name", "")).startswith("mcp__") for tool in frame.tools)
