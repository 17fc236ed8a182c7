"""Compare two requests in the order in which a provider renders a prompt.

The order is model, tools, system prompt, options, beta headers, messages, breakpoints. Each `Move`
holds both texts for a small diff. `breaks` decides whether a move cost anything.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from itertools import islice, zip_longest
from typing import Literal, TypeAlias

import msgspec

from longhold.core.messages import Json, JsonObject
from longhold.core.request.cache.fingerprint import (
    Fingerprint,
    blocks_of,
    strip_marker,
    system_blocks,
)

What: TypeAlias = Literal[
    "model", "tool", "section", "beta", "thinking", "effort", "option", "message", "marker"
]

DIFF_LINES = 200
"""More than people read. The log has the full text."""
DIFF_LINE_CHARS = 160
"""Enough of the very long lines of minified text."""


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
    """List all moves in prefix order; breakpoints only if nothing else moved."""
    found = [_model(before, after), _tool(before, after), _section(before, after)]
    found += [*_options(before, after), _betas(before, after), _message(before, after)]
    return [*filter(None, found)] or [*filter(None, [_marker(before, after)])]


def find_first_moved(before: Fingerprint, after: Fingerprint) -> int | None:
    """Return the index of the first message that the later request lacks or changed."""
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
        detail=f"{after.model} was asked instead of {before.model}",
        before=before.model,
        after=after.model,
    )


def _tool(before: Fingerprint, after: Fingerprint) -> Move | None:
    name, change = find_change(before.tools, after.tools)
    if not name:
        return None
    old, new = _tool_named(before, name), _tool_named(after, name)
    part, text_before, text_after = "", _format_pretty(old), _format_pretty(new)
    if change == "changed" and old and new:
        keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
        part = "the " + ", ".join(map(str, keys)) + " of " if keys else "the order of keys in "
        if keys == ["description"]:
            text_before, text_after = str(old["description"]), str(new["description"])
    return Move(
        what="tool",
        name=f"tool {name}",
        detail=f"{part}tool {name} {_describe_change(change)}",
        before=text_before,
        after=text_after,
    )


def _tool_named(fingerprint: Fingerprint, name: str) -> JsonObject:
    tools = zip(fingerprint.tools, fingerprint.parts.get("tools") or (), strict=False)
    return next((dict(strip_marker(tool)) for known, tool in tools if known == name), {})


def _section(before: Fingerprint, after: Fingerprint) -> Move | None:
    name, change = find_change(before.sections, after.sections)
    if not name:
        return None
    return Move(
        what="section",
        name=f"system section {name}",
        detail=f"system section {name} {_describe_change(change)}",
        before=_section_text(before, name),
        after=_section_text(after, name),
    )


def _section_text(fingerprint: Fingerprint, name: str) -> str:
    blocks = zip(fingerprint.sections, system_blocks(fingerprint.parts), strict=False)
    return next((str(block.get("text", "")) for known, block in blocks if known == name), "")


def _options(before: Fingerprint, after: Fingerprint) -> Iterator[Move]:
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


def _betas(before: Fingerprint, after: Fingerprint) -> Move | None:
    added, removed = _difference(before.betas, after.betas)
    if not added and not removed:
        return None
    changes = [f"{beta} added" for beta in added] + [f"{beta} removed" for beta in removed]
    return Move(
        what="beta",
        name=f"beta header {[*added, *removed][0]}",
        detail=f"the beta header changed: {', '.join(changes)}",
        before="\n".join(before.betas),
        after="\n".join(after.betas),
    )


def _difference(before: tuple[str, ...], after: tuple[str, ...]) -> tuple[list[str], list[str]]:
    added = [name for name in after if name not in before]
    return added, [name for name in before if name not in after]


def _message(before: Fingerprint, after: Fingerprint) -> Move | None:
    i = find_first_moved(before, after)
    if i is None:
        return None
    old, new = before.chain.messages[i], after.chain.messages[i] if i < after.length else None
    was, now = blocks_of(old), blocks_of(new) if new is not None else []
    is_last = i == before.length - 1
    if new is not None and is_last and now[: len(was)] == was and old["role"] == new["role"]:
        return None  # the last message grew at its end: all of it can still be read
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


def _marker(before: Fingerprint, after: Fingerprint) -> Move | None:
    added, removed = _difference(before.markers, after.markers)
    if not removed:
        return None  # additional breakpoints lose nothing
    changes = [f"{one} removed" for one in removed] + [f"{one} added" for one in added]
    return Move(
        what="marker",
        name=f"marker on {removed[0]}",
        detail=f"the cache markers changed: {', '.join(changes)}",
        before="\n".join(before.markers),
        after="\n".join(after.markers),
    )


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


def _describe_change(change: str) -> str:
    return {"gone": "is gone", "new": "is new"}.get(change, change)


def _format_pretty(value: Json) -> str:
    if value in (None, {}):
        return ""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _format_short(value: Json) -> str:
    return "none" if value is None else msgspec.json.encode(value).decode()[:80]


def format_others(found: Iterable[Move]) -> str:
    names = [move.name for move in found]
    return f"; also {', '.join(names)}" if names else ""
