"""Front matter: the fields of a Markdown file between two `---` lines.

The front matter of agent definitions, skills and instruction rules is YAML. Invalid YAML, such as a
description with a colon, is read line by line. Aliases are refused, because a few of them can
expand to gigabytes. Memories are always read line by line, and writing them back is lossless.
"""

import json
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeAlias

import msgspec

from longhold.core.messages import Json, JsonObject

MEMORY_HEAD_LINES = 40
"""If a memory's front matter does not end within these lines, the text just begins with dashes."""

YAML_CHARS, YAML_BRACKETS = 32_768, 500
"""Limits, ten times the size of a long definition. Longer texts take seconds to parse."""

JSON_VALUE_CHARS = 65_536
"""The size limit of a memory. Longer values are not decoded."""

FieldValue: TypeAlias = str | list[str] | dict[str, str]

_KEY = re.compile(r"([A-Za-z_][\w-]{0,40}):(?:[ \t]+(.*))?\Z")
_PLAIN = re.compile(r"[A-Za-z0-9(][^#\n]*\Z")


class UnreadableFrontMatter(ValueError):
    """The front matter contains no definition."""


def parse(text: str) -> tuple[JsonObject, str]:
    head, body = _split(text)
    return {} if head is None else _fields(head), body


def read_front(text: str) -> tuple[JsonObject, str]:
    """Read a definition. Keys are normalised, so that `permissionMode` equals `permission-mode`."""
    head, body = _split(text)
    if head is None:
        raise UnreadableFrontMatter("it does not begin with fields between two --- lines")
    fields = _fields(head)
    named = {re.sub(r"[_-]", "", str(key)).casefold(): value for key, value in fields.items()}
    return named, body.strip()


def parse_memory(text: str) -> tuple[dict[str, FieldValue], str]:
    """Split a memory into fields and body. Values are text or JSON. Unknown keys are kept."""
    head, body = _split(text, MEMORY_HEAD_LINES)
    if head is None:
        return {}, text
    return _parse_lines(head, _decode_value), body.removeprefix("\n")


def render_memory(fields: Mapping[str, FieldValue], body: str) -> str:
    head = [f"{key}: {_format_value(value)}" for key, value in fields.items() if value]
    ending = "" if not body or body.endswith("\n") else "\n"
    return "\n".join(["---", *head, "---", "", body]) + ending


def _split(text: str, max_lines: int | None = None) -> tuple[str | None, str]:
    lines = text.removeprefix("\ufeff").split("\n")
    if lines[0].rstrip() == "---":
        for number, line in enumerate(lines[1:max_lines], 1):
            if line.rstrip() == "---":
                return "\n".join(lines[1:number]), "\n".join(lines[number + 1 :])
    return None, text


def _fields(head: str) -> JsonObject:
    fields = _parse_yaml(head)
    return fields if isinstance(fields, dict) else {**_parse_lines(head, _unquote)}


def _parse_yaml(text: str) -> Json:
    import yaml  # type: ignore[import-untyped]  # only here: many sessions read no front matter

    if len(text) > YAML_CHARS or text.count("{") + text.count("[") > YAML_BRACKETS:
        return None
    try:
        value = yaml.load(text, Loader=_loader())
        return msgspec.json.decode(msgspec.json.encode(value))
    except (yaml.YAMLError, ValueError, TypeError, RecursionError):
        return None


@cache
def _loader() -> Any:
    import yaml

    class WithoutAliases(yaml.SafeLoader):  # type: ignore[misc]
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                raise yaml.YAMLError("an alias is not allowed")
            return super().compose_node(parent, index)

    return WithoutAliases


def _parse_lines(head: str, read: Callable[[str], FieldValue]) -> dict[str, FieldValue]:
    written: dict[str, list[str]] = {}
    key = ""
    for line in head.split("\n"):
        if named := _KEY.match(line.rstrip()):
            key, value = named[1], (named[2] or "").strip()
            written[key] = ["" if re.fullmatch(r"[|>][+-]?", value) else value]
        elif key and line.startswith((" ", "\t", "-")) and line.strip():
            written[key].append(line.strip())
    return {key: _value(parts, read) for key, parts in written.items()}


def _value(parts: list[str], read: Callable[[str], FieldValue]) -> FieldValue:
    first, *more = parts
    if more and not first and all(part.startswith("- ") for part in more):
        return [_unquote(part[2:]) for part in more]
    return read(" ".join(filter(None, parts)))


def _decode_value(value: str) -> FieldValue:
    if value[:1] in ('"', "[", "{") and len(value) <= JSON_VALUE_CHARS:
        try:
            return msgspec.json.decode(value, type=str | list[str] | dict[str, str])
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            if value.startswith("[") and value.endswith("]"):
                return [_unquote(item) for item in value[1:-1].split(",") if item.strip()]
    return _unquote(value)


def _unquote(value: str) -> str:
    value = value.strip()
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
    return value[1:-1] if is_quoted else value


def _format_value(value: FieldValue) -> str:
    if isinstance(value, str) and _is_plain(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _is_plain(value: str) -> bool:
    reads_back = _PLAIN.match(value) is not None and _decode_value(value) == value == value.strip()
    return reads_back and ": " not in value and not value.endswith(":")


def text_in(fields: JsonObject, key: str) -> str:
    value = fields.get(key)
    return value.strip() if isinstance(value, str) else ""


def names_in(fields: JsonObject, key: str) -> tuple[str, ...] | None:
    value = fields.get(key)
    if value is None:
        return None
    if isinstance(value, list):
        return tuple(str(item).strip() for item in value if isinstance(item, str) and item.strip())
    words = re.split(r",|(?:^|\s)-\s", str(value).strip("[] "))
    return tuple(word.strip(" \"'") for word in words if word.strip(" \"'"))


def number_in(fields: JsonObject, key: str) -> int:
    value = str(fields.get(key, "")).strip()
    return int(value) if re.fullmatch(r"[0-9]{1,6}", value) else 0


def is_on(fields: JsonObject, key: str) -> bool:
    return str(fields.get(key, "")).strip().casefold() == "true"
