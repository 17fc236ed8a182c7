"""The tool protocol. `make_tool` builds JSON Schema and validation from one type."""

import os
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Struct, structs

from longhold.core.messages import Json, JsonObject, ResultContent, ToolUse
from longhold.core.tools.context import ToolContext

if TYPE_CHECKING:
    from longhold.core.tools.context import ToolContext


ToolKind: TypeAlias = Literal["read", "search", "shell", "fetch", "write", "ask", "other"]

LIMIT_CHARS = 50_000  # longer results, over about 12,000 tokens, are spilled

_UNSOUND = re.compile("[\0\ud800-\udfff]")  # in no path, argument or text file


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    content: ResultContent
    is_error: bool = False
    exit_status: int | None = None  # negative after a signal; None if Longhold stopped the command
    note: str = ""  # one line for the user
    is_denied: bool = False  # permissions or a hook denied the call, so the tool did not run


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    name: str
    description: str
    input_schema: JsonObject
    kind: ToolKind
    run: Callable[[JsonObject, "ToolContext"], Awaitable[Outcome]]
    path_inputs: tuple[str, ...] = ()
    command_input: str = ""
    is_read_only: Callable[[JsonObject], bool] = lambda _given: False
    """Whether this call changes nothing. Such calls may run in parallel."""
    limit_chars: int | None = LIMIT_CHARS  # longer results are spilled, unless this is None

    def definition(self) -> JsonObject:
        return {
            "name": self.name,
            "description": self.description,
            "input_schema": self.input_schema,
        }


class Refused(Exception):
    """The tool refuses the call or cannot run it. The message is for the model."""


class Input(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base class of all tool inputs. An unknown field is an error."""


Taken = TypeVar("Taken", bound=Input)


def make_tool(
    name: str,
    takes: type[Taken],
    does: Callable[[Taken, "ToolContext"], Awaitable[Outcome]],
    *,
    kind: ToolKind,
    path_inputs: tuple[str, ...] = (),
    command_input: str = "",
    is_read_only: Callable[[Taken], bool] | bool = False,
    limit_chars: int | None = LIMIT_CHARS,
    description: str = "",
) -> Tool:
    """Declare a tool. By default its description is read from `prompts`."""

    async def run(given: JsonObject, tool_context: "ToolContext") -> Outcome:
        try:
            return _escape_outcome(await does(_convert_input(name, takes, given), tool_context))
        except Refused as refusal:
            said = str(refusal)
        except OSError as error:
            said = f"{name} failed: {_reason(error)}."
        return _escape_outcome(Outcome(content=said, is_error=True, note=said.partition("\n")[0]))

    def changes_nothing(given: JsonObject) -> bool:
        if isinstance(is_read_only, bool):
            return is_read_only
        try:
            return is_read_only(_convert_input(name, takes, given))
        except Refused:
            return True  # a call that will be refused changes nothing

    return Tool(
        name=name,
        description=description or prompt(name),
        input_schema=schema_of(takes),
        kind=kind,
        path_inputs=path_inputs,
        command_input=command_input,
        is_read_only=changes_nothing,
        limit_chars=limit_chars,
        run=run,
    )


def prompt(name: str) -> str:
    # This is imported here because it is slow and a program's own tools do not need it.
    from importlib.resources import files

    file = files("longhold.core.tools") / "prompts" / f"{name.lower()}.md"
    return file.read_text(encoding="utf-8").strip()


def schema_of(takes: type[Struct]) -> JsonObject:
    schema = msgspec.json.schema(takes)
    parts = schema.pop("$defs", {})
    written: JsonObject = _inline_refs(schema, parts)
    return written


def _inline_refs(node: Json, parts: JsonObject) -> Json:
    if isinstance(node, list | tuple):
        return [_inline_refs(item, parts) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _inline_refs(parts[node["$ref"].rpartition("/")[2]], parts)
    # The title repeats the class name, and the description repeats the docstring.
    names = {"title", "description"} if node.get("type") == "object" else set()
    return {key: _inline_refs(value, parts) for key, value in node.items() if key not in names}


def _convert_input(name: str, takes: type[Taken], given: JsonObject) -> Taken:
    """Validate an input. Accept numbers and booleans written as text."""
    if not _is_sound(given):
        raise Refused(
            f"{name} was called with a zero byte or half a character, which no file holds."
        )
    try:
        return msgspec.convert(given, takes, strict=False)
    except msgspec.ValidationError as error:
        raise Refused(f"{name} was called with a wrong input: {error}.") from None


def _reason(error: OSError) -> str:
    words = os.strerror(error.errno).lower() if error.errno else str(error)
    return f"{words}: {error.filename}" if error.filename else words


def _is_sound(value: Json) -> bool:
    match value:
        case str():
            return _UNSOUND.search(value) is None
        case dict():
            return all(map(_is_sound, value.values()))
        case list():
            return all(map(_is_sound, value))
    return True


def _escape_outcome(outcome: Outcome) -> Outcome:
    """Escape surrogates, because file names may contain bytes that are not UTF-8."""
    if not isinstance(outcome.content, str):
        return outcome
    return replace(outcome, content=_escape(outcome.content), note=_escape(outcome.note))


def _escape(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


NAME = "CallTool"


class CallToolInput(Input, frozen=True, kw_only=True):
    name: Annotated[str, Meta(description="The tool's name, as listed.", min_length=1)]
    input: Annotated[JsonObject, Meta(description="Its input, as ToolSearch shows the schema.")]


async def _refuse(given: CallToolInput, _tool_context: ToolContext) -> Outcome:
    raise Refused(f"{given.name!r} cannot be called through {NAME}.")


CALL_TOOL = make_tool(NAME, CallToolInput, _refuse, kind="other", is_read_only=True)


def unwrap_call(use: ToolUse) -> ToolUse:
    if use.name != NAME:
        return use
    name, given = use.input.get("name"), use.input.get("input")
    if not isinstance(name, str) or not isinstance(given, dict) or name == NAME:
        return use
    return structs.replace(use, name=name, input=given)
