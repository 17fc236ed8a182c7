"""The head of a memory file: lines of `key: value` between two lines of dashes.

A text comes in and leaves as fields and body, and back. Values are written as plain text or
as JSON, which is YAML as well; reading is lenient, since people and models write these by
hand: quotes, bracketed lists and lists of dashed lines are all understood. A file without a
head is all body. Unknown keys stay.
"""

import json
import re
from collections.abc import Mapping
from typing import TypeAlias

HEAD_LINES = 40
"""A head that does not end by then is not one: the text merely begins with dashes."""

VALUE_CHARS = 65_536
"""As long as a memory may be; a longer value is read as text, not taken apart."""

Value: TypeAlias = str | list[str] | dict[str, str]

_KEY = re.compile(r"([A-Za-z_][\w-]{0,40}):(?:[ \t]+(.*))?\Z")
_PLAIN = re.compile(r"[A-Za-z0-9(][^#\n]*\Z")


def split(text: str) -> tuple[dict[str, Value], str]:
    """Part a text into the fields of its head and its body."""
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        return {}, text
    for number, line in enumerate(lines[1:HEAD_LINES], 1):
        if line.rstrip() == "---":
            body = "\n".join(lines[number + 1 :])
            return _fields(lines[1:number]), body.removeprefix("\n")
    return {}, text


def joined(fields: Mapping[str, Value], body: str) -> str:
    """Write fields and body as one text; empty fields are left out."""
    head = [f"{key}: {_written(value)}" for key, value in fields.items() if value]
    ending = "" if not body or body.endswith("\n") else "\n"
    return "\n".join(["---", *head, "---", "", body]) + ending


def _fields(lines: list[str]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    key = ""
    for line in lines:
        if match := _KEY.match(line.rstrip()):
            key = match[1]
            found[key] = _read((match[2] or "").strip())
        elif key and line.strip().startswith("- "):
            items = found[key]
            found[key] = [*(items if isinstance(items, list) else []), _bare(line.strip()[2:])]
    return found


def _read(value: str) -> Value:
    if value[:1] in ('"', "[", "{") and len(value) <= VALUE_CHARS:
        try:
            return _as_text(json.loads(value))
        except (ValueError, RecursionError):
            if value.startswith("[") and value.endswith("]"):
                return [_bare(item) for item in value[1:-1].split(",") if item.strip()]
    return _bare(value)


def _as_text(value: object) -> Value:
    match value:
        case dict():
            return {_whole(key): _whole(item) for key, item in value.items()}
        case list():
            return [_whole(item) for item in value]
    return _whole(value)


def _whole(value: object) -> str:
    """Give a value as text; half a character, which JSON can spell, cannot be kept anywhere."""
    return str(value).encode("utf-8", "replace").decode()


def _bare(value: str) -> str:
    value = value.strip()
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if quoted else value


def _written(value: Value) -> str:
    """Write a value as plain text where that reads back as itself, else as JSON."""
    return (
        value
        if isinstance(value, str) and _is_plain(value)
        else json.dumps(value, ensure_ascii=False)
    )


def _is_plain(value: str) -> bool:
    reads_back = _PLAIN.match(value) is not None and _read(value) == value == value.strip()
    return reads_back and ": " not in value and not value.endswith(":")
