"""Defensive parsing of Messages API shapes, and helpers shared by the codecs.

Unknown fields are stored next to the format's own fields, or under `extra` if names collide.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

import msgspec

from longhold.core.messages import (
    CLIENT_MARKS,
    INVALID_INPUT,
    Block,
    Json,
    JsonObject,
    ToolResult,
    Usage,
    block_from_wire,
    block_to_wire,
)
from longhold.core.messages.usage import count_of, fields_of
from longhold.errors import StreamBroken

MOST_DEPTH = 100  # No tool's input is nested deeper. JSON parsers fail at about 1,000 levels.
_TOO_DEEP = "(nested too deeply)"
_MOST_BITS = 10_000  # limit for integers, because Python refuses to print much longer ones

_NAMELESS = "unnamed_tool"  # replaces a missing name, so that the call fails with an error

SYSTEM_ROLES = ("system", "developer")  # roles that apply to the whole conversation

UNSPOKEN = frozenset({"thinking", "redacted_thinking"})  # other providers do not accept these

SAME_NAME = ("temperature", "top_p", "service_tier", "prompt_cache_key", "extra_body")

Parse: TypeAlias = Callable[[str], JsonObject]

Speaker: TypeAlias = Literal["user", "assistant", "system"]

_MISREAD = (AttributeError, TypeError, ValueError, LookupError, RecursionError, OverflowError)


def tame(value: Any, depth: int = MOST_DEPTH) -> Json:
    """Convert a value to portable JSON without NaN or huge integers, and with limited depth."""
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int | float):
        return _number(value)
    if depth <= 0:
        return _TOO_DEEP
    if isinstance(value, dict):
        return {
            str(key): one if type(one) is str else tame(one, depth - 1)
            for key, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [tame(one, depth - 1) for one in value]
    return str(value)


def _number(value: int | float) -> int | float | None:
    if isinstance(value, int):
        return value if value.bit_length() <= _MOST_BITS else None
    return value if math.isfinite(value) else None


def is_deep(value: Json, levels: int = MOST_DEPTH) -> bool:
    """Return whether a value is nested deeper than `levels`. This does not recurse."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(levels):
        if not level:
            return False
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    return bool(level)


def word(value: Json) -> str:
    return str(value) if isinstance(value, str | int | float) else ""


def text_in(value: Json) -> str:
    """Return the text of a value, which some servers send as a list of parts."""
    if isinstance(value, list):
        return "".join(
            text_in(part.get("text")) if isinstance(part, dict) else "" for part in value
        )
    return value if isinstance(value, str) else ""


def objects(value: Json) -> list[JsonObject]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


@contextmanager
def guard_reading() -> Iterator[None]:
    """Raise `StreamBroken` if reading an answer fails on an unexpected shape."""
    try:
        yield
    except _MISREAD as error:
        problem = f"{type(error).__name__}: {error}"
        raise StreamBroken(f"the answer cannot be read ({problem}); send it again") from error


def parse_input(text: str, *, otherwise: Json = None) -> JsonObject:
    """Parse a tool input. Text that is not a JSON object is kept under `INVALID_INPUT`."""
    if not text.strip():
        return otherwise if isinstance(otherwise, dict) else {}
    try:
        parsed = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return {INVALID_INPUT: text}
    if not isinstance(parsed, dict) or is_deep(parsed):
        return {INVALID_INPUT: text}
    return {key: tame(value) for key, value in parsed.items()}


def read_arguments(call: JsonObject, parse: Parse = parse_input) -> JsonObject:
    """Read the arguments of a call, which some servers send as an object instead of text."""
    given = call.get("arguments") or ""
    return given if isinstance(given, dict) else parse(str(given))


def encode_input(data: Json) -> str:
    return msgspec.json.encode(data).decode()


def decode_usage(value: Json, prompt: str, answer: str) -> Usage:
    """Read OpenAI's usage, whose prompt count includes cached tokens."""
    raw = fields_of(value)
    details = fields_of(raw.get(f"{prompt}_details"))
    read = count_of(details.get("cached_tokens"))
    written = count_of(details.get("cache_write_tokens"))
    return Usage(
        input_tokens=max(0, count_of(raw.get(prompt)) - read - written),
        output_tokens=count_of(raw.get(answer)),
        cache_read_tokens=read,
        cache_write_tokens=written,
    )


def speaker_of(role: Json) -> Speaker:
    if role in SYSTEM_ROLES:
        return "system"
    return "assistant" if role == "assistant" else "user"


def block_in(raw: Json) -> Block:
    """Read a block. A tool use with a missing or invalid id or name remains a tool use."""
    if isinstance(raw, dict) and raw.get("type") == "tool_use":
        raw = raw | {"id": word(raw.get("id")), "name": word(raw.get("name")) or _NAMELESS}
    return block_from_wire(raw)


_EXTRA = "extra"  # holds fields whose names the format uses for something else

_WRAPPED = "block"  # type of a part that wraps a block for which the format has no type

TEXT_FIELDS = frozenset({"type", "text"})
IMAGE_URL_FIELDS = frozenset({"type", "image_url"})

_DATA_URL = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)


def with_extra(fields: JsonObject, extra: JsonObject | None, known: frozenset[str]) -> JsonObject:
    if not extra:
        return fields
    beside = {key: value for key, value in extra.items() if key not in known and key != _EXTRA}
    under = {key: value for key, value in extra.items() if key in known or key == _EXTRA}
    return fields | beside | ({_EXTRA: under} if under else {})


def extra_of(record: JsonObject, known: frozenset[str]) -> JsonObject | None:
    left_out = known | CLIENT_MARKS
    under = record.get(_EXTRA)
    beside = {key: value for key, value in record.items() if key not in left_out}
    if isinstance(under, dict):
        del beside[_EXTRA]
        beside |= under
    return beside or None


def wrap(block: Block) -> JsonObject:
    return {"type": _WRAPPED, "raw": block_to_wire(block)}


def unwrap(part: Json) -> Block:
    if isinstance(part, dict) and part.get("type") == _WRAPPED and "raw" in part:
        part = part["raw"]
    return block_from_wire(part)


def split_results(content: Iterable[Block]) -> tuple[list[ToolResult], list[Block]]:
    blocks = list(content)
    results = [block for block in blocks if isinstance(block, ToolResult)]
    return results, [block for block in blocks if not isinstance(block, ToolResult)]


def url_of(source: Json) -> str | None:
    match source:
        case {"type": "base64", "media_type": str(kind), "data": str(data)}:
            return f"data:{kind};base64,{data}"
        case {"type": "url", "url": str(url)}:
            return url
    return None


def data_url(source: JsonObject) -> str | None:
    """Return a source as a URL, or None if a URL would lose information."""
    url = url_of(source)
    return url if url is not None and source_of(url) == source else None


def source_of(url: str) -> JsonObject:
    data = _DATA_URL.fullmatch(url)
    if data is None:
        return {"type": "url", "url": url}
    return {"type": "base64", "media_type": data[1], "data": data[2]}


def outcome_text(result: JsonObject) -> str:
    lines = []
    for part in wire_blocks(result.get("content")):
        is_picture = part["type"] in {"image", "document"}
        lines.append(f"[{part['type']}: see below]" if is_picture else block_text(part))
    text = "\n".join(lines)
    return f"Error: {text}" if result.get("is_error") else text


def block_text(block: JsonObject) -> str:
    match block:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "compaction", "content": str(text)}:
            return text
        case {"type": "document", "source": {"type": "text", "data": str(text)}}:
            return text
    return encode_input(drop_marks(block))


def drop_marks(block: JsonObject) -> JsonObject:
    return {key: value for key, value in block.items() if key not in CLIENT_MARKS}


def rename(fields: JsonObject, old: str, new: str) -> JsonObject:
    return {(new if key == old else key): value for key, value in fields.items()}


def join_parts(parts: list[JsonObject]) -> Json:
    is_plain = all(part.keys() == {"type", "text"} for part in parts)
    return "\n\n".join(part["text"] for part in parts) if is_plain else parts


def join_text(blocks: Iterable[JsonObject]) -> str:
    return "\n\n".join(block_text(block) for block in blocks)


def wire_blocks(content: Json) -> list[JsonObject]:
    if content is None:
        return []
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
