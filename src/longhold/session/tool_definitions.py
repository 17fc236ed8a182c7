"""The definitions of a program's tools in any dialect, with traits declared in place.

    Tool({"name": "lookup", …}, kind="fetch")

The kind decides whether old results may be cleared and how long a result may be. Undeclared traits
follow from the tool's name. Results of an unknown tool are never cleared.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import msgspec

from longhold.core.log.entries import ToolTraits
from longhold.core.messages import JsonObject
from longhold.core.tools.describe import Described, describe_kind, description_of
from longhold.errors import InvalidArgument
from longhold.session.arguments import MessageLike, as_list, to_plain_object

Kind: TypeAlias = Literal["", "read", "search", "shell", "fetch", "write", "ask", "other"]


@dataclass(frozen=True, slots=True)
class DeclaredTool:
    """A tool's definition with traits for the session."""

    definition: MessageLike
    kind: Kind = ""
    """The kind of tool, which decides how results are treated."""
    clearable: bool | None = None
    """Whether old results may be cleared. None means that the kind decides."""
    limit_chars: int | None = None
    """Longer results are shown as a preview. None means that the kind decides."""


Tool: TypeAlias = DeclaredTool

ToolLike: TypeAlias = MessageLike | DeclaredTool


@dataclass(frozen=True, slots=True)
class DeclaredTools:
    definitions: tuple[JsonObject, ...]
    traits: Mapping[str, ToolTraits]


def read_tools(tools: Iterable[object]) -> DeclaredTools:
    definitions: list[JsonObject] = []
    traits: dict[str, ToolTraits] = {}
    for i, tool in enumerate(as_list(tools, "tools", "tool definitions")):
        where = f"tools[{i}]"
        given = tool if isinstance(tool, DeclaredTool) else None
        definition = _definition(to_plain_object(given.definition if given else tool, where), where)
        name = str(definition.get("name") or definition.get("type") or "")
        if any(name == other.get("name") for other in definitions):
            raise InvalidArgument(where, f"a second tool is called {name!r}; rename one of them")
        definitions.append(definition)
        if given is not None and (found := _traits(given, where)) != ToolTraits():
            traits[name] = found
    return DeclaredTools(tuple(definitions), traits)


def _traits(given: DeclaredTool, where: str) -> ToolTraits:
    said = {name: getattr(given, name) for name in ToolTraits.__struct_fields__}
    wanted = {name: value for name, value in said.items() if value not in (None, "")}
    try:
        return msgspec.convert(wanted, ToolTraits)
    except msgspec.ValidationError as error:
        raise InvalidArgument(
            where, f"{error}; kinds are read, search, shell, fetch, write, ask, other"
        ) from None


def _definition(raw: JsonObject, where: str) -> JsonObject:
    """Return a definition in the shape of frames. The provider's own tools are left unchanged."""
    match raw:
        case {"type": "function", "function": {"name": str()} as function}:
            return _rename_schema(function)
        case {"type": "function", "name": str()}:
            return _rename_schema({key: value for key, value in raw.items() if key != "type"})
        case {"name": str(name), "input_schema": dict()} if name:
            return {key: value for key, value in raw.items() if key != "cache_control"}
        case {"type": str(kind)} if kind not in ("function", "custom"):
            return {key: value for key, value in raw.items() if key != "cache_control"}
        case {"type": "custom"}:
            return raw
    raise InvalidArgument(
        where,
        "give a definition with name and input_schema, or one of type function; "
        f"this has {', '.join(sorted(raw)) or 'nothing'}",
    )


def _rename_schema(function: JsonObject) -> JsonObject:
    schema = function.get("parameters") or {"type": "object", "properties": {}}
    rest = {key: value for key, value in function.items() if key != "parameters"}
    return rest | {"input_schema": schema}


class ToolRegistry:
    def __init__(self, traits: Mapping[str, ToolTraits]) -> None:
        self.traits = dict(traits)

    def describe(self, name: str) -> Described:
        traits = self.traits.get(name)
        if traits is None:
            return description_of(name)
        found = describe_kind(traits.kind) if traits.kind else description_of(name)
        limit = traits.limit_chars if traits.limit_chars is not None else found.limit_chars
        return replace(found, clearable=traits.clearable, limit_chars=limit)

    def limits(self) -> dict[str, int | None]:
        return {n: t.limit_chars for n, t in self.traits.items() if t.limit_chars is not None}
