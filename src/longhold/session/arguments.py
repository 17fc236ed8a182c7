"""Checks a program's arguments before anything is recorded.

The provider would reject a bad block with every later request. Dictionaries, SDK objects, tuples
and subclasses of `str` are accepted and recorded as plain JSON.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Protocol, TypeAlias, runtime_checkable

from longhold.core.log.entries import Section
from longhold.core.messages import (
    Block,
    Content,
    Json,
    JsonObject,
    ResultContent,
    ToolResult,
    block_from_wire,
    block_to_wire,
    is_blank,
    result_content_from_wire,
)
from longhold.core.messages.rules import is_malformed
from longhold.errors import InvalidArgument

_SESSION_ID = re.compile(r"\w[\w.-]{0,199}")

_RESERVED = frozenset({"messages", "input", "system", "instructions", "tools", "model", "stream"})
_LIMITS = frozenset({"max_tokens", "max_completion_tokens", "max_output_tokens"})


@runtime_checkable
class Dumpable(Protocol):
    """An SDK object that converts itself to plain values."""

    def model_dump(self) -> Any: ...


MessageLike: TypeAlias = Mapping[str, object] | Dumpable
"""A message, a block or a tool definition: a dictionary, a typed dictionary, or an SDK object."""
ContentLike: TypeAlias = str | Iterable[str | MessageLike | Block]


def _to_plain(value: object, argument: str) -> Json:
    """Convert a value to plain JSON, or raise an error with the path of the invalid part."""
    match value:
        case None | bool():
            return value
        case str():
            return str.__str__(value)
        case int():
            return int(value)
        case float():
            if not math.isfinite(value):
                raise InvalidArgument(argument, f"{value!r} is not JSON; give a finite number")
            return float(value)
        case Mapping():
            return {
                _key(key, argument): _to_plain(item, f"{argument}.{key}")
                for key, item in value.items()
            }
        case bytes() | bytearray() | memoryview():
            raise InvalidArgument(argument, "bytes are not JSON; decode them, or give base64 text")
        case Sequence():
            return [_to_plain(item, f"{argument}[{i}]") for i, item in enumerate(value)]
    return _dump(value, argument)


def _key(key: object, argument: str) -> str:
    if not isinstance(key, str):
        raise InvalidArgument(argument, f"the key {key!r} is not text")
    return str.__str__(key)


def _dump(value: object, argument: str) -> Json:
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        return _to_plain(dump(mode="json", exclude_unset=True), argument)
    if hasattr(value, "__struct_fields__") and isinstance(value, Block):
        return _to_plain(block_to_wire(value), argument)
    raise InvalidArgument(
        argument,
        f"a {type(value).__name__} is not JSON; give text, a dictionary, or an SDK's object",
    )


def to_plain_object(value: object, argument: str, wanted: str = "an object") -> JsonObject:
    found = _to_plain(value, argument)
    if not isinstance(found, dict):
        raise InvalidArgument(argument, f"expected {wanted}, not {_name_value(value)}")
    return found


def _name_value(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def as_list(values: object, argument: str, of: str) -> list[object]:
    """Return an iterable's items. Strings, dictionaries and None are rejected."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidArgument(argument, f"{_name_value(values)} is not a list; give a list of {of}")
    return list(values)


def check_content(content: object, argument: str) -> Content:
    """Return content as blocks. Reject empty content and blocks that no provider accepts."""
    raw = _to_plain(content, argument)
    match raw:
        case str():
            raw = [{"type": "text", "text": raw}]
        case dict():
            raw = [raw]
        case list():
            pass
        case _:
            raise InvalidArgument(
                argument, f"{_name_value(content)} is not content; give text or blocks"
            )
    blocks = tuple(_block(block, f"{argument}[{i}]") for i, block in enumerate(raw))
    if all(map(is_blank, blocks)):
        raise InvalidArgument(argument, "the content is empty; give some text or a block")
    return blocks


def _block(raw: Json, argument: str) -> Block:
    if isinstance(raw, dict) and not isinstance(raw.get("type"), str):
        raise InvalidArgument(argument, "a block has no type; give {'type': 'text', 'text': …}")
    if not isinstance(raw, str | dict):
        raise InvalidArgument(
            argument, f"{_name_value(raw)} is not a block; give text or an object"
        )
    block = block_from_wire(raw)
    check_block(block, argument)
    return block


def check_block(block: Block, argument: str) -> None:
    inside = block.content if isinstance(block, ToolResult) else ()
    for one in (block, *(() if isinstance(inside, str) else inside)):
        if is_malformed(one):
            wire = block_to_wire(one)
            raise InvalidArgument(
                argument,
                f"a block of type {wire.get('type')!r} lacks required fields: {wire!r:.200}",
            )


def check_result(output: object, argument: str) -> ResultContent:
    """Return a tool's output. Empty output is allowed. Reject None, probably a forgotten return."""
    raw = _to_plain(output, argument)
    if raw is None:
        raise InvalidArgument(argument, "None is not a result; give text, or '' if it is empty")
    if isinstance(raw, dict):
        raw = [raw] if isinstance(raw.get("type"), str) else raw
    content = result_content_from_wire(raw)
    check_block(ToolResult(tool_use_id="", content=content), argument)
    return content


def check_sections(system: object) -> tuple[Section, ...]:
    if isinstance(system, str):
        return (Section(name="system", text=str.__str__(system)),) if system.strip() else ()
    parts = as_list(system, "system", "text blocks")
    sections = [_section(part, i) for i, part in enumerate(parts)]
    return tuple(section for section in sections if section.text.strip())


def _section(part: object, i: int) -> Section:
    if isinstance(part, Section):
        return part
    match _to_plain(part, f"system[{i}]"):
        case str(text) | {"type": "text", "text": str(text)}:
            return Section(name="system" if i == 0 else f"system {i + 1}", text=text)
    raise InvalidArgument(f"system[{i}]", "give text or {'type': 'text', 'text': …}")


def check_options(options: object) -> JsonObject:
    found = to_plain_object(options, "options") if options is not None else {}
    if taken := sorted(_RESERVED & set(found)):
        raise InvalidArgument(
            "options", f"the session sets {', '.join(taken)}; use the argument of that name"
        )
    if taken := sorted(_LIMITS & set(found)):
        raise InvalidArgument("options", f"{', '.join(taken)} is given as max_tokens=")
    return found


def check_names(given: Mapping[str, object], *, without: Sequence[str] = ()) -> None:
    """Raise a `TypeError` for a keyword that is not an option, as a plain signature would."""
    from longhold.session.options import SessionOptions

    known = [name for name in SessionOptions.__annotations__ if name not in without]
    for name in given:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
            raise TypeError(f"unexpected keyword argument {name!r}; {hint}")


def check_model(model: object) -> str:
    if not isinstance(model, str) or not model.strip():
        raise InvalidArgument(
            "model", f"{model!r} is not a model name; give one that the API accepts"
        )
    return str.__str__(model)


def check_limit(value: object, argument: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InvalidArgument(argument, f"{value!r} is not a number of tokens; give a whole number")
    return int(value)


def check_id(id: object) -> str:
    if not isinstance(id, str) or not _SESSION_ID.fullmatch(id) or id == "newest":
        raise InvalidArgument(
            "id", f"{id!r} is not a session id; use up to 200 letters, digits, dots and dashes"
        )
    return str.__str__(id)
