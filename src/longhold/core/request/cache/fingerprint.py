"""Fingerprints of requests, and the differences between two of them.

Messages form a hash chain. Bisection finds the first difference, and only new messages are hashed.
`moves` compares two fingerprints in the order in which a provider renders a prompt.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from hashlib import blake2b
from itertools import compress, islice, zip_longest
from operator import is_, is_not
from typing import Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from longhold.core.messages import Json, JsonObject
from longhold.core.models.capabilities import capabilities
from longhold.core.models.protocol import Request
from longhold.core.request.markers import SLOTS, count_unchanged
from longhold.errors import PrefixMoved

HASH_BYTES = 8  # enough for one session, and short because every call logs them

OUTSIDE = frozenset(
    {"model", "system", "tools", "messages"}
    | {"max_tokens", "metadata", "stream", "stop_sequences", "diagnostics", "service_tier"}
)
"""Parameters that have their own field here, or that do not affect the cache."""
MARKER_SEARCH = 64  # Messages searched from the end. Breakpoints are about 20 blocks apart.


class Chain(NamedTuple):
    """Messages and their hashes, which cover all earlier messages too. Requests share a chain."""

    links: list[str]
    messages: list[JsonObject]


class Fingerprint(Struct, frozen=True, kw_only=True):
    model: str = ""
    betas: tuple[str, ...] = ()
    tools: Mapping[str, str] = {}  # hashes by tool name, in the order sent
    sections: Mapping[str, str] = {}
    options: Mapping[str, str] = {}
    markers: tuple[str, ...] = ()  # place and lifetime, in words that stay as history grows
    lifetimes: frozenset[str] = frozenset()
    marked: tuple[int, ...] = ()
    chain: Chain
    length: int  # the number of messages of the chain that belong to this request
    parts: JsonObject  # the request itself, by reference

    @property
    def head(self) -> str:
        return self.chain.links[self.length - 1] if self.length else ""

    @property
    def messages(self) -> Sequence[JsonObject]:
        return self.chain.messages[: self.length]


def fingerprint(
    request: Request,
    like: Fingerprint | None = None,
    names: Sequence[str] = (),
    *,
    is_strict: bool = False,
) -> Fingerprint:
    """Fingerprint a request, reusing `like`, the fingerprint of the previous request.

    `names` are the system blocks' names. With `is_strict`, every reused message is hashed again.
    """
    kwargs = request.kwargs
    messages: list[JsonObject] = kwargs.get("messages") or []
    system = system_blocks(kwargs)
    markers, lifetimes, marked = _markers(kwargs, system, messages, like)
    if len(names) != len(system):
        names = [f"block {i}" for i in range(1, len(system) + 1)]
    return Fingerprint(
        model=str(kwargs.get("model", "")),
        betas=tuple(sorted(request.betas)),
        tools=_tool_hashes(kwargs.get("tools") or (), like),
        sections=_section_hashes(tuple(_number_repeated(names)), system, like),
        options={key: digest(value) for key, value in sorted(_options(kwargs).items())},
        markers=markers,
        lifetimes=lifetimes,
        marked=marked,
        chain=extend_chain(like.chain if like else Chain([], []), messages, is_strict=is_strict),
        length=len(messages),
        parts=kwargs,
    )


def _options(kwargs: JsonObject) -> JsonObject:
    """Return the other parameters without a default effort, which has no effect."""
    options = {key: kwargs[key] for key in kwargs.keys() - OUTSIDE}
    config = options.get("output_config")
    usual = capabilities(str(kwargs.get("model", ""))).default_effort
    if isinstance(config, dict) and config.get("effort") in (None, usual):
        options["output_config"] = {key: config[key] for key in config if key != "effort"}
    return {key: value for key, value in options.items() if value != {}}


def digest(value: Json) -> str:
    return blake2b(msgspec.json.encode(value), digest_size=HASH_BYTES).hexdigest()


def strip_marker(block: Json) -> Json:
    if isinstance(block, dict) and "cache_control" in block:
        return {key: value for key, value in block.items() if key != "cache_control"}
    return block


def system_blocks(kwargs: JsonObject) -> list[JsonObject]:
    system = kwargs.get("system") or []
    return [{"type": "text", "text": system}] if isinstance(system, str) else list(system)


def blocks_in(message: JsonObject) -> list[Json]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())


def blocks_of(message: JsonObject) -> list[Json]:
    return [strip_marker(block) for block in blocks_in(message)]


def extend_chain(chain: Chain, messages: Sequence[JsonObject], *, is_strict: bool = False) -> Chain:
    """Chain the messages. Extend `chain` if its first messages are the same objects."""
    links, known = chain.links, chain.messages
    start = _count_unchanged(known, messages)
    if start and known[0] is not messages[0] and _link("", messages[0]) != links[0]:
        start = 0
    if is_strict:
        _check(links, messages[:start])
    for i in range(start, len(messages)):
        link = _link(links[i - 1] if i else "", messages[i])
        if i < len(links) and links[i] != link:
            # Branch off, because another fingerprint still uses the rest of this chain.
            links, known = links[:i], known[:i]
        if i < len(links):
            known[i] = messages[i]
        else:
            links.append(link)
            known.append(messages[i])
    return chain if links is chain.links else Chain(links, known)


def _check(links: Sequence[str], messages: Sequence[JsonObject]) -> None:
    """Raise if a message was changed in place, because bisection trusts object identity."""
    link = ""
    for i, message in enumerate(messages):
        link = _link(link, message)
        if link != links[i]:
            raise PrefixMoved(f"message {i + 1} changed, but later messages were not rebuilt")


def _count_unchanged(known: Sequence[JsonObject], messages: Sequence[JsonObject]) -> int:
    """Count the leading messages that are the same objects, or copies with a breakpoint."""
    length = min(len(known), len(messages))

    def is_changed(i: int) -> bool:
        beside = min(i + 1, length - 1)
        return not (known[i] is messages[i] or known[beside] is messages[beside])

    return count_unchanged(length, is_changed)


def _link(before: str, message: JsonObject) -> str:
    content = message.get("content")
    bare = [strip_marker(block) for block in content] if isinstance(content, list) else content
    wire = msgspec.json.encode((message.get("role"), bare))
    return blake2b(before.encode() + wire, digest_size=HASH_BYTES).hexdigest()


def _tool_hashes(tools: Sequence[JsonObject], like: Fingerprint | None) -> Mapping[str, str]:
    if like is not None:
        known = like.parts.get("tools") or ()
        if len(known) == len(tools) and all(map(is_, known, tools)):
            return like.tools
    names = _number_repeated([str(tool.get("name") or tool.get("type")) for tool in tools])
    return {name: digest(strip_marker(tool)) for name, tool in zip(names, tools, strict=True)}


def _section_hashes(
    names: Sequence[str], system: Sequence[JsonObject], like: Fingerprint | None
) -> Mapping[str, str]:
    if like is not None and tuple(like.sections) == names and system_blocks(like.parts) == system:
        return like.sections
    return {name: digest(strip_marker(block)) for name, block in zip(names, system, strict=True)}


def _markers(
    kwargs: JsonObject,
    system: Sequence[JsonObject],
    messages: Sequence[JsonObject],
    like: Fingerprint | None,
) -> tuple[tuple[str, ...], frozenset[str], tuple[int, ...]]:
    tools = filter(_control, kwargs.get("tools") or ())
    found = [(f"tool {tool.get('name')}", tool["cache_control"]) for tool in tools]
    found += [(f"system block {i}", c) for i, b in enumerate(system, 1) if (c := _control(b))]
    marked = _find_marked(messages, like)
    if marked:  # breakpoints before the last only help the look-back
        last = next(filter(None, map(_control, reversed(messages[marked[-1]]["content"]))))
        is_end = marked[-1] == len(messages) - 1
        found.append(("the last message" if is_end else "an earlier message", last))
    if kwargs.get("cache_control"):
        found.append(("the request", kwargs["cache_control"]))
    lifetimes = [_lifetime(control) for _, control in found]
    terms = (", ".join(filter(None, (_lifetime(c), c.get("scope")))) for _, c in found)
    named = (f"{place} ({term})" for (place, _), term in zip(found, terms, strict=True))
    return tuple(dict.fromkeys(named)), frozenset(lifetimes), tuple(marked)


def _find_marked(messages: Sequence[JsonObject], like: Fingerprint | None) -> list[int]:
    known, length, before = (like.chain.messages, like.length, like.marked) if like else ([], 0, ())
    start = max(0, len(messages) - MARKER_SEARCH)
    both = range(start, min(length, len(messages)))
    moved = compress(both, map(is_not, known[start : both.stop], messages[start : both.stop]))
    changed = {
        *moved,
        *filter(both.__contains__, before),
        *range(max(start, length), len(messages)),
    }
    marked = (
        i for i in sorted(changed, reverse=True) if any(map(_control, blocks_in(messages[i])))
    )
    return sorted(islice(marked, SLOTS))


def _control(block: Json) -> Json:
    return block.get("cache_control") if isinstance(block, dict) else None


def _lifetime(control: JsonObject) -> str:
    return str(control.get("ttl") or "5m")


def _number_repeated(names: Sequence[str]) -> Iterator[str]:
    seen = dict.fromkeys(names, 0)
    for name in names:
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name} ({seen[name]})"


What: TypeAlias = Literal[
    "model", "tool", "section", "beta", "thinking", "effort", "option", "message", "marker"
]

DIFF_LINES = 200  # More than people read. The log has the full texts.
DIFF_LINE_CHARS = 160  # limit for the very long lines of minified text


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    what: What
    name: str
    detail: str
    before: str = ""
    after: str = ""

    def diff(self) -> str:
        lines = unified_diff(
            self.before.splitlines(), self.after.splitlines(), "before", "after", n=1, lineterm=""
        )
        return "\n".join(line[:DIFF_LINE_CHARS] for line in islice(lines, DIFF_LINES))


def moves(before: Fingerprint, after: Fingerprint) -> list[Move]:
    """List all changes in prefix order. Breakpoints are listed only if nothing else changed."""
    both = before, after
    tools = (_Blocks(one.tools, one.parts.get("tools") or ()) for one in both)
    sections = (_Blocks(one.sections, system_blocks(one.parts)) for one in both)
    found = [
        _model(before, after),
        _compare_blocks("tool", "tool", *tools),
        _compare_blocks("section", "system section", *sections),
        *_compare_options(before, after),
        _compare_names("beta", "beta header", before.betas, after.betas),
        _message(before, after),
    ]
    markers = [_compare_names("marker", "marker on", before.markers, after.markers)]
    return [*filter(None, found)] or [*filter(None, markers)]


def find_first_moved(before: Fingerprint, after: Fingerprint) -> int | None:
    shared = min(before.length, after.length)
    old, new = before.chain.links, after.chain.links
    if before.chain is not after.chain:
        shared = bisect_left(range(shared), True, key=lambda i: old[i] != new[i])
    return shared if shared < before.length else None


def _model(before: Fingerprint, after: Fingerprint) -> Move | None:
    if before.model == after.model:
        return None
    return Move(
        what="model",
        name=f"model {after.model}",
        detail=f"{after.model} was called instead of {before.model}",
        before=before.model,
        after=after.model,
    )


class _Blocks(NamedTuple):
    hashes: Mapping[str, str]
    blocks: Sequence[JsonObject]

    def find(self, name: str) -> JsonObject:
        named = zip(self.hashes, self.blocks, strict=False)
        return next((dict(strip_marker(block)) for known, block in named if known == name), {})


def _compare_blocks(what: What, label: str, before: _Blocks, after: _Blocks) -> Move | None:
    name, change = find_change(before.hashes, after.hashes)
    if not name:
        return None
    old, new = before.find(name), after.find(name)
    part, was, now = "", _block_text(old), _block_text(new)
    if what == "tool" and change == "changed":
        keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
        part = "the " + ", ".join(map(str, keys)) + " of " if keys else "the order of keys in "
        if keys == ["description"]:
            was, now = str(old["description"]), str(new["description"])
    how = {"gone": "is gone", "new": "is new"}.get(change, change)
    detail = f"{part}{label} {name} {how}"
    return Move(what=what, name=f"{label} {name}", detail=detail, before=was, after=now)


def _compare_options(before: Fingerprint, after: Fingerprint) -> Iterator[Move]:
    for key in sorted(before.options.keys() | after.options.keys()):
        if before.options.get(key) == after.options.get(key) or key == "cache_control":
            continue
        old, new = before.parts.get(key), after.parts.get(key)
        what: What = "thinking" if key == "thinking" else "option"
        if key == "output_config" and _effort(old) != _effort(new):
            what, key, old, new = "effort", "effort", _effort(old), _effort(new)
        yield Move(
            what=what,
            name=key if what != "option" else f"option {key}",
            detail=f"{key} changed from {_format_short(old)} to {_format_short(new)}",
            before=_format_pretty(old),
            after=_format_pretty(new),
        )


def _effort(config: Json) -> Json:
    return config.get("effort") if isinstance(config, dict) else None


def _compare_names(
    what: What, label: str, before: tuple[str, ...], after: tuple[str, ...]
) -> Move | None:
    """Compare beta headers or breakpoints. Additional breakpoints do no harm."""
    removed = [name for name in before if name not in after]
    added = [name for name in after if name not in before]
    if not removed and (not added or what == "marker"):
        return None
    changes = [f"{name} removed" for name in removed] + [f"{name} added" for name in added]
    title = "the cache breakpoints" if what == "marker" else f"the {label}"
    return Move(
        what=what,
        name=f"{label} {[*removed, *added][0]}",
        detail=f"{title} changed: {', '.join(changes)}",
        before="\n".join(before),
        after="\n".join(after),
    )


def _message(before: Fingerprint, after: Fingerprint) -> Move | None:
    i = find_first_moved(before, after)
    if i is None:
        return None
    old, new = before.chain.messages[i], after.chain.messages[i] if i < after.length else None
    was, now = blocks_of(old), blocks_of(new) if new is not None else []
    is_last = i == before.length - 1
    if new is not None and is_last and now[: len(was)] == was and old["role"] == new["role"]:
        return None  # the last message only grew, so its old part can still be read
    pairs = enumerate(zip(was, now, strict=False))
    j = next((j for j, (one, other) in pairs if one != other), min(len(was), len(now)))
    block = was[j] if j < len(was) else now[j] if j < len(now) else {}
    name = f"message {i + 1}"
    how = "changed" if j < len(was) and j < len(now) else "is gone" if j < len(was) else "is new"
    return Move(
        what="message",
        name=name,
        detail=f"{_block_name(block)} in {name} of {before.length} ({old['role']}) {how}",
        before=_block_text(was[j]) if j < len(was) else "",
        after=_block_text(now[j]) if j < len(now) else "",
    )


def _block_name(block: Json) -> str:
    match block:
        case {"type": "tool_result"}:
            return f"the result of {block.get('tool_use_id')}"
        case {"type": "tool_use"}:
            return f"the call of {block.get('name')}"
        case {"type": kind}:
            return f"the {kind}"
    return "the block"


def _block_text(block: Json) -> str:
    if isinstance(block, dict):
        for key in ("text", "thinking", "content"):
            if isinstance(block.get(key), str):
                return str(block[key])
    return _format_pretty(block)


def find_change(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, str]:
    """Return the first name that differs, and how: changed, gone, moved or new."""
    for old, new in zip_longest(before, after):
        if old == new and before[old] != after[new]:
            return new, "changed"
        if old != new:
            if old is not None and old not in after:
                return old, "gone"
            return new, "moved" if new in before else "new"
    return "", ""


def _format_pretty(value: Json) -> str:
    if value in (None, {}):
        return ""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _format_short(value: Json) -> str:
    return "none" if value is None else msgspec.json.encode(value).decode()[:80]


def format_others(found: Iterable[Move]) -> str:
    names = [move.name for move in found]
    return f"; also {', '.join(names)}" if names else ""
