"""What a fork may do that works on memories: look, and change memories; nothing else, ever.

A call comes in with the session's own judgement of it, a pass or a denial goes out. Reading
passes where the session lets it without asking anyone; a command only if every part of it is
proved to change nothing; writing only through the memory tool, whose paths mean memories and
never files. All else is denied by name, whatever a server says its tools are. What is checked is
the input that will run, after hooks had their say.
"""

from holdfast.messages import JsonObject, ToolUse
from holdfast.tools.permissions import is_read_only_command
from holdfast.tools.protocol import Tool
from holdfast.turn.fork import Permit
from holdfast.turn.round import Allowed, Denied

MEMORY = "memory"
READERS = {"Read": "read", "Grep": "search", "Glob": "search"}
"""The tools that look, each with the kind it must be of."""
SHELL = "Bash"
REFUSAL = (
    "Not possible here. You may read (Read, Grep, Glob, commands that change nothing) and change"
    " memories with the memory tool; nothing else."
)
WRITES = "Not possible here: it is not proved that this command changes nothing. Use a plain one."


def memories_only(judge: Permit) -> Permit:
    """Permit looking around and changing memories; `judge` says what the session lets pass."""

    async def permit(use: ToolUse, tool: Tool) -> Allowed | Denied:
        if use.name != tool.name or not is_among(tool):
            return Denied(reason=REFUSAL)
        if tool.name == MEMORY:
            return Allowed(input=use.input)
        if not _is_harmless(tool, use.input):
            return Denied(reason=WRITES)
        verdict = await judge(use, tool)
        if isinstance(verdict, Denied):
            return Denied(reason=verdict.reason)  # a denial never ends what runs beside the talk
        if not _is_harmless(tool, verdict.input):  # a hook may have made another call of it
            return Denied(reason=WRITES)
        return verdict

    return permit


def is_among(tool: Tool) -> bool:
    """Say whether a tool is one of those that may be of use at all."""
    if tool.name == SHELL:
        return tool.kind == "shell" and tool.command_input == "command"
    return tool.name == MEMORY or READERS.get(tool.name) == tool.kind


def _is_harmless(tool: Tool, given: JsonObject) -> bool:
    return tool.name != SHELL or changes_nothing(given)


def changes_nothing(given: JsonObject) -> bool:
    """Say whether a shell call is proved to change nothing, and ends before the fork does."""
    command = given.get("command")
    if given.get("run_in_background") not in (None, False):
        return False
    return isinstance(command, str) and is_read_only_command(command)
