"""What of a request decides whether the provider finds it in its cache, as hashes.

A request comes in, with the fingerprint of the one before it; a `Fingerprint` goes out.
Messages are chained, each hash covering all before it, so the first that differs is found by
halving; a turn costs what is new. Texts are held by reference only, to show what moved.
Markers are kept apart: where they stand is no part of what they mark. What differs between
two fingerprints is said by `moves`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from operator import is_

import msgspec

from holdfast.errors import PrefixMoved
from holdfast.messages import Json, JsonObject
from holdfast.models.capabilities import capabilities
from holdfast.models.protocol import Request

HASH_BYTES = 8
"""Enough to tell the parts of one session apart; short, because each call's lie in the log."""

OUTSIDE = frozenset(
    {"model", "system", "tools", "messages"}
    | {"max_tokens", "metadata", "stream", "stop_sequences", "diagnostics", "service_tier"}
)
"""Parameters that have a place of their own here, or that no cache depends on."""


class Chain:
    """Messages and their hashes, each over all before it. It grows at its end and is shared."""

    __slots__ = ("links", "messages")

    def __init__(self, links: list[str], messages: list[JsonObject]) -> None:
        self.links = links
        self.messages = messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """One request, reduced to what is compared."""

    model: str = ""
    betas: tuple[str, ...] = ()
    tools: Mapping[str, str] = field(default_factory=dict)
    """A hash for each tool by its name, in the order sent."""
    sections: Mapping[str, str] = field(default_factory=dict)
    """A hash for each block of the system prompt by its name."""
    options: Mapping[str, str] = field(default_factory=dict)
    """A hash for each other parameter that the cache may depend on."""
    markers: tuple[str, ...] = ()
    """Where the markers stand and for how long, said so that a growing history keeps it."""
    lifetimes: frozenset[str] = frozenset()
    marked: tuple[int, ...] = ()
    """Which messages carry a marker."""
    chain: Chain
    length: int
    """How many messages of the chain are this request's."""
    parts: JsonObject
    """The request itself, by reference."""
    names: tuple[str, ...] = ()
    """What the blocks of the system prompt are called."""

    @property
    def head(self) -> str:
        """The hash over all messages."""
        return self.chain.links[self.length - 1] if self.length else ""

    @property
    def messages(self) -> Sequence[JsonObject]:
        """The messages this was taken of, markers aside."""
        return self.chain.messages[: self.length]


def fingerprint(
    request: Request,
    like: Fingerprint | None = None,
    names: Sequence[str] = (),
    *,
    is_strict: bool = False,
) -> Fingerprint:
    """Take a request's fingerprint; `like` is the one before, whose work is used again.

    `names` are those of the system prompt's blocks; where their number differs, blocks are
    numbered instead. Strict, what is used again is looked at message by message.
    """
    kwargs = request.kwargs
    messages: list[JsonObject] = kwargs.get("messages") or []
    system = system_blocks(kwargs)
    markers, lifetimes, marked = _markers(kwargs, system, messages)
    called = tuple(_distinct(names if len(names) == len(system) else _numbered(system)))
    return Fingerprint(
        model=str(kwargs.get("model", "")),
        betas=tuple(sorted(request.betas)),
        tools=_tool_hashes(kwargs.get("tools") or (), like),
        sections={name: digest(unmarked(b)) for name, b in zip(called, system, strict=True)},
        options={key: digest(value) for key, value in sorted(_options(kwargs).items())},
        markers=markers,
        lifetimes=lifetimes,
        marked=marked,
        chain=grown(like.chain if like else Chain([], []), messages, is_strict=is_strict),
        length=len(messages),
        parts=kwargs,
        names=called,
    )


def _options(kwargs: JsonObject) -> JsonObject:
    """Give the other parameters; the usual effort is the same as none."""
    options = {key: kwargs[key] for key in kwargs.keys() - OUTSIDE}
    config = options.get("output_config")
    usual = capabilities(str(kwargs.get("model", ""))).default_effort
    if isinstance(config, dict) and config.get("effort") in (None, usual):
        options["output_config"] = {key: config[key] for key in config if key != "effort"}
    return {key: value for key, value in options.items() if value != {}}


def digest(value: Json) -> str:
    """Hash a value by the bytes it goes over the wire as."""
    return blake2b(msgspec.json.encode(value), digest_size=HASH_BYTES).hexdigest()


def unmarked(block: Json) -> Json:
    """Take the marker off a block or a tool."""
    if isinstance(block, dict) and "cache_control" in block:
        return {key: value for key, value in block.items() if key != "cache_control"}
    return block


def system_blocks(kwargs: JsonObject) -> list[JsonObject]:
    """Give the system prompt as blocks, however it was written."""
    system = kwargs.get("system") or []
    return [{"type": "text", "text": system}] if isinstance(system, str) else list(system)


def blocks_of(message: JsonObject) -> list[Json]:
    """Give a message's blocks without their markers."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [unmarked(block) for block in content or ()]


def grown(chain: Chain, messages: Sequence[JsonObject], *, is_strict: bool = False) -> Chain:
    """Chain the messages, going on from a chain whose beginning they share.

    Unchanged messages are the same objects, except where they carry a marker or are made anew
    each time, as the first may be; whatever changes is made anew with all that follows it.
    """
    links, known = chain.links, chain.messages
    start = _unchanged(known, messages)
    if start and known[0] is not messages[0] and _link("", messages[0]) != links[0]:
        start = 0
    if is_strict:
        _check(links, messages[:start])
    for i in range(start, len(messages)):
        link = _link(links[i - 1] if i else "", messages[i])
        if i < len(links) and links[i] != link:
            # Another fingerprint holds the rest of this chain: part from it.
            links, known = links[:i], known[:i]
        if i < len(links):
            known[i] = messages[i]
        else:
            links.append(link)
            known.append(messages[i])
    return chain if links is chain.links else Chain(links, known)


def _check(links: Sequence[str], messages: Sequence[JsonObject]) -> None:
    """Make sure that messages taken for unchanged are: halving trusts how they were made."""
    before = ""
    for i, message in enumerate(messages):
        before, known = _link(before, message), links[i]
        if before != known:
            raise PrefixMoved(f"message {i + 1} changed, and what follows it was not made anew")


def _unchanged(known: Sequence[JsonObject], messages: Sequence[JsonObject]) -> int:
    """Count the leading messages that are the same objects, by halving.

    A message that carries a marker is a copy, so its neighbour is asked too.
    """
    low, high = 0, min(len(known), len(messages))
    while low < high:
        middle = (low + high) // 2
        beside = min(middle + 1, high - 1)
        if known[middle] is messages[middle] or known[beside] is messages[beside]:
            low = middle + 1
        else:
            high = middle
    return low


def _link(before: str, message: JsonObject) -> str:
    content = message.get("content")
    bare = [unmarked(block) for block in content] if isinstance(content, list) else content
    wire = msgspec.json.encode((message.get("role"), bare))
    return blake2b(before.encode() + wire, digest_size=HASH_BYTES).hexdigest()


def _tool_hashes(tools: Sequence[JsonObject], like: Fingerprint | None) -> Mapping[str, str]:
    """Hash each tool; the same objects in the same order have the same hashes."""
    if like is not None:
        known = like.parts.get("tools") or ()
        if len(known) == len(tools) and all(map(is_, known, tools)):
            return like.tools
    names = _distinct(str(tool.get("name") or tool.get("type")) for tool in tools)
    return {name: digest(unmarked(tool)) for name, tool in zip(names, tools, strict=True)}


def _markers(
    kwargs: JsonObject, system: Sequence[JsonObject], messages: Sequence[JsonObject]
) -> tuple[tuple[str, ...], frozenset[str], tuple[int, ...]]:
    """Say where markers stand, for how long they hold, and which messages carry one."""
    found: list[tuple[str, JsonObject]] = []
    for tool in kwargs.get("tools") or ():
        if control := tool.get("cache_control"):
            found.append((f"tool {tool.get('name')}", control))
    for i, block in enumerate(system, 1):
        if control := block.get("cache_control"):
            found.append((f"system block {i}", control))
    marked = _marked_messages(messages)
    marked_last = marked[-1] if marked else None  # others are there to be looked back from
    for i in marked:
        control = next(filter(None, map(_control, reversed(messages[i]["content"]))))
        if i == len(messages) - 1:
            found.append(("the last message", control))
        elif i == marked_last:
            found.append(("an earlier message", control))
    if control := kwargs.get("cache_control"):
        found.append(("the request", control))
    said = tuple(dict.fromkeys(f"{place} {_terms(control)}" for place, control in found))
    return said, frozenset(_lifetime(control) for _, control in found), tuple(marked)


MARKED_MESSAGES = 4
"""Providers take at most four markers, so no more messages are looked for."""
MARKER_SEARCH = 64
"""Messages looked at from the end; markers stand close together, every 20 blocks or so."""


def _marked_messages(messages: Sequence[JsonObject]) -> list[int]:
    """Find the messages that carry a marker, searching from the end."""
    found: list[int] = []
    last = len(messages) - 1
    for i in range(last, max(-1, last - MARKER_SEARCH), -1):
        content = messages[i].get("content")
        if isinstance(content, list) and any(map(_control, content)):
            found.append(i)
            if len(found) == MARKED_MESSAGES:
                break
    return found[::-1]


def _control(block: Json) -> Json:
    return block.get("cache_control") if isinstance(block, dict) else None


def _lifetime(control: JsonObject) -> str:
    return str(control.get("ttl") or "5m")


def _terms(control: JsonObject) -> str:
    scope = control.get("scope")
    return f"({_lifetime(control)}{f', {scope}' if scope else ''})"


def _numbered(blocks: Sequence[JsonObject]) -> list[str]:
    return [f"block {i}" for i in range(1, len(blocks) + 1)]


def _distinct(names: Iterable[str]) -> list[str]:
    """Give every name once; a second one of the same name is numbered."""
    seen: dict[str, int] = {}
    made = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        made.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return made
