"""Detect whose message list a file contains, from its beginning.

The beginning, cut anywhere, is scanned for keys and their depth, because a key deep inside a tool's
input proves nothing. A list without a distinctive key is read as Anthropic's, which gives the same
result.
"""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from longhold.core.log.reading import LOG_KEYS

_TOKEN = re.compile(rb'[^"{}\[\]:]*("(?:[^"\\]|\\.)*"|[{}\[\]:])', re.DOTALL)
_OPENING = b"\xef\xbb\xbf \t\r\n"

_CUT = b""
"""The key of a last field, which means that the text ends in the middle."""

_ROLES = frozenset({b"user", b"assistant", b"system", b"developer", b"tool", b"function"})
_OPENAI_ROLES = frozenset({b"tool", b"function", b"developer"})
_OPENAI_KEYS = frozenset({b"tool_calls", b"tool_call_id", b"function_call"})
_OPENAI_PARTS = frozenset({b"image_url", b"input_audio", b"file", b"refusal"})
_ANTHROPIC_PARTS = frozenset(
    {b"tool_use", b"tool_result", b"thinking", b"redacted_thinking", b"image", b"document"}
)


class _Field(NamedTuple):
    depth: int
    key: bytes
    value: bytes


def provider_of(first: bytes) -> Literal["anthropic", "openai"] | None:
    """Return the provider whose messages these are, or None if they are not messages."""
    text = first.lstrip(_OPENING)
    fields = list(_fields(text))
    depth = _message_depth(text[:1], fields)
    if depth is None:
        return None
    if any(_is_openai(field, depth) for field in fields):
        return "openai"
    is_hinted = any(_hints_openai(field, depth) for field in fields)
    is_ours = any(_is_anthropic(field, depth) for field in fields)
    return "openai" if is_hinted and not is_ours else "anthropic"


def _fields(text: bytes) -> Iterator[_Field]:
    depth, at, last, key = 0, 0, b"", b""
    while token := _TOKEN.match(text, at):
        at = token.end()
        piece = token[1]
        if piece == b":":
            key = last
            continue
        if key:
            yield _Field(depth, key, piece[1:-1] if piece[:1] == b'"' else b"")
            key = b""
        if piece in (b"{", b"["):
            depth += 1
        elif piece in (b"}", b"]"):
            depth -= 1
        else:
            last = piece[1:-1]
    if key:
        yield _Field(depth, key, b"")
    if depth:
        yield _Field(depth, _CUT, b"")


def _message_depth(opening: bytes, fields: list[_Field]) -> int | None:
    """Return the depth of messages: on separate lines, in a list, or in a request."""
    depths = {field.depth for field in fields if field.key == b"role" and field.value in _ROLES}
    top = {field.key for field in fields if field.depth == 1}
    if opening == b"[":
        return 2 if 2 in depths else None
    if opening != b"{" or top & {*LOG_KEYS, b"sessionId", b"uuid", b"payload"}:
        return None
    if b"messages" in top:
        return 3 if 3 in depths else None
    if top & {b"system", b"tools"} and fields[-1].key == _CUT:
        return 3
    return 1 if 1 in depths else None


def _is_openai(field: _Field, depth: int) -> bool:
    if depth == 3 and field == (3, b"type", b"function"):
        return True
    is_role = field.key == b"role" and field.value in _OPENAI_ROLES
    return field.depth == depth and (is_role or field.key in _OPENAI_KEYS)


def _hints_openai(field: _Field, depth: int) -> bool:
    """True if the field is typical of OpenAI's format and rare in Anthropic's."""
    if field.depth == depth:
        return field.key == b"role" and field.value == b"system"
    return field.depth == depth + 2 and field.key == b"type" and field.value in _OPENAI_PARTS


def _is_anthropic(field: _Field, depth: int) -> bool:
    if field.depth == depth + 2 and field.key == b"type":
        return field.value in _ANTHROPIC_PARTS
    return field.key == b"input_schema" or (depth == 3 and field[:2] == (1, b"system"))
