"""The fixed tool through which deferred tools are called.

A request's tools must not change while its prompt is cached, so a tool whose definition they lack is
called by name through this one. Whatever judges, runs or clears a call looks at the inner call.
"""

from typing import Annotated

from msgspec import Meta, structs

from holdfast.messages import JsonObject, ToolUse
from holdfast.tools.context import ToolContext
from holdfast.tools.protocol import Input, Outcome, Refused, make_tool

NAME = "CallTool"


class CallToolInput(Input, frozen=True, kw_only=True):
    name: Annotated[str, Meta(description="The tool's name, as listed.", min_length=1)]
    input: Annotated[JsonObject, Meta(description="Its input, as ToolSearch shows the schema.")]


async def _refuse(given: CallToolInput, _tool_context: ToolContext) -> Outcome:
    raise Refused(f"{given.name!r} cannot be called through {NAME}.")


CALL_TOOL = make_tool(NAME, CallToolInput, _refuse, kind="other", is_read_only=True)


def called(use: ToolUse) -> ToolUse:
    """Return the call that is meant: the inner one, if it is made through the fixed tool."""
    if use.name != NAME:
        return use
    name, given = use.input.get("name"), use.input.get("input")
    if not isinstance(name, str) or not isinstance(given, dict) or name == NAME:
        return use
    return structs.replace(use, name=name, input=given)
