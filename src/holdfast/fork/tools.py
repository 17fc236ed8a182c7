"""Tools that a conversation lists and that run in the caller's program, out of a fork's reach.

A program with a loop of its own runs its tools itself; a fork of its session lists them, because
the list is part of the prefix, and answers whoever calls one that it cannot be had here.
"""

from holdfast.entries import Framed
from holdfast.messages import JsonObject
from holdfast.tools.protocol import Outcome, Tool
from holdfast.tools.workplace import Workplace

OUT_OF_REACH = "This tool cannot be used here. Answer now, in text, from what you already know."


def out_of_reach(frame: Framed) -> dict[str, Tool]:
    """Stand in for every tool a frame lists."""
    return {str(tool.get("name", "")): _stand_in(tool) for tool in frame.tools}


def _stand_in(definition: JsonObject) -> Tool:
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


async def _say_so(given: JsonObject, workplace: Workplace) -> Outcome:
    return Outcome(content=OUT_OF_REACH, is_error=True)
