"""Tools in a fork: results that stay short, and tools that are out of its reach.

No stage makes room in a fork, so a long result is cut when it comes, and says so. A program with
a loop of its own runs its tools itself; a fork of its session lists them, because the list is
part of the prefix, and answers each call that it cannot be used here.
"""

from dataclasses import replace

from holdfast.log.entries import Framed
from holdfast.messages import JsonObject, Text, ToolUse, text_of
from holdfast.tools.context import ToolContext
from holdfast.tools.protocol import LIMIT_CHARS, Outcome, Tool

OUT_OF_REACH = "This tool cannot be used here. Answer now, in text, from what you already know."


async def bounded(use: ToolUse, outcome: Outcome, seconds: float) -> Outcome:
    """Keep the beginning of a long result, and say how much is not there."""
    text = text_of(outcome.content)
    if len(text) <= LIMIT_CHARS:
        return outcome
    left_out = len(text) - LIMIT_CHARS
    note = f"\n[{left_out:,} more characters were left out here; ask for a smaller part]"
    head = text[:LIMIT_CHARS] + note
    if isinstance(outcome.content, str):
        return replace(outcome, content=head)
    rest = (block for block in outcome.content if not isinstance(block, Text))
    return replace(outcome, content=(Text(text=head), *rest))


def out_of_reach(frame: Framed) -> dict[str, Tool]:
    """Make a placeholder for every tool a frame lists."""
    return {str(tool.get("name", "")): _placeholder(tool) for tool in frame.tools}


def _placeholder(definition: JsonObject) -> Tool:
    return Tool(
        name=str(definition.get("name", "")),
        description=str(definition.get("description", "")),
        input_schema=definition.get("input_schema") or {},
        kind="other",
        path_inputs=(),
        command_input="",
        is_read_only=lambda given: True,
        limit_chars=None,
        run=_say_so,
    )


async def _say_so(given: JsonObject, tool_context: ToolContext) -> Outcome:
    return Outcome(content=OUT_OF_REACH, is_error=True)
