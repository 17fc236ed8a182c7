"""What a fork that works on memories may do: read, and change memories through the memory tool.

Reads are allowed where the session allows them without asking. A shell command is allowed only if
every part of it provably changes nothing. Everything else is denied by name, whatever a server
claims its tools are. The check applies to the input that will run, after hooks may have changed it.
"""

from holdfast.messages import JsonObject, ToolUse
from holdfast.tools.permissions import is_read_only_command
from holdfast.tools.protocol import Tool
from holdfast.turn.fork import Permit
from holdfast.turn.round import Allowed, Denied

MEMORY = "memory"
READERS = {"Read": "read", "Grep": "search", "Glob": "search"}
"""The tools that read, each with the kind it must have."""
SHELL = "Bash"
REFUSAL = (
    "Not possible here. You may read (Read, Grep, Glob, commands that change nothing) and change"
    " memories with the memory tool; nothing else."
)
WRITES = "Not possible here: this command is not known to change nothing. Use a simpler one."


def memories_only(judge: Permit) -> Permit:
    """Permit reads and memory changes; `judge` decides what the session itself allows."""

    async def permit(use: ToolUse, tool: Tool) -> Allowed | Denied:
        if use.name != tool.name or not _is_usable(tool):
            return Denied(reason=REFUSAL)
        if tool.name == MEMORY:
            return Allowed(input=use.input)
        if not _is_harmless(tool, use.input):
            return Denied(reason=WRITES)
        verdict = await judge(use, tool)
        if isinstance(verdict, Denied):
            return Denied(reason=verdict.reason)  # without ending the fork
        if not _is_harmless(tool, verdict.input):  # a hook may have changed the input
            return Denied(reason=WRITES)
        return verdict

    return permit


def _is_usable(tool: Tool) -> bool:
    if tool.name == SHELL:
        return tool.kind == "shell" and tool.command_input == "command"
    return tool.name == MEMORY or READERS.get(tool.name) == tool.kind


def _is_harmless(tool: Tool, given: JsonObject) -> bool:
    """Return whether a shell call provably changes nothing and ends before the fork does."""
    if tool.name != SHELL:
        return True
    command = given.get("command")
    if given.get("run_in_background") not in (None, False):
        return False
    return isinstance(command, str) and is_read_only_command(command)
