"""BashOutput and KillShell: looking after commands in the background."""

from typing import Annotated

from msgspec import Meta

from holdfast.tools.bash import LIMIT_CHARS
from holdfast.tools.context import ToolContext
from holdfast.tools.protocol import Input, Outcome, Refused, Tool, make_tool
from holdfast.tools.shells import BackgroundCommand


class ShellInput(Input, frozen=True, kw_only=True):
    """What both take."""

    shell_id: Annotated[str, Meta(description="The id that Bash gave.")]


async def bash_output(given: ShellInput, tool_context: ToolContext) -> Outcome:
    """Give what a command printed since the last look, and whether it still runs."""
    shell = _shell(given.shell_id, tool_context)
    if shell.running.status is not None:
        await shell.ending
    news = shell.news()
    state = _state(shell)
    status = shell.running.status
    return Outcome(
        content=f"{news.rstrip()}\n[{state}]" if news.strip() else f"[Nothing new. {state}]",
        exit_status=status,
        note=f"{shell.id}: {state}",
    )


async def kill_shell(given: ShellInput, tool_context: ToolContext) -> Outcome:
    """End a command and everything it started."""
    shell = _shell(given.shell_id, tool_context)
    if shell.running.status is not None:
        return Outcome(content=f"{shell.id} had already ended. {_state(shell)}")
    shell.is_stopped = True
    await tool_context.shells.stop(shell.running)
    await shell.ending
    return Outcome(content=f"Stopped {shell.id}: {shell.command}", note=f"stopped {shell.id}")


def _shell(id: str, tool_context: ToolContext) -> BackgroundCommand:
    shells = tool_context.shells.background
    if id not in shells:
        known = ", ".join(shells) or "none"
        raise Refused(f"No background command is called {id!r}; there are: {known}.")
    return shells[id]


def _state(shell: BackgroundCommand) -> str:
    status = shell.running.status
    if status is None:
        return "Still running."
    if shell.is_stopped:
        return "Stopped by KillShell."
    if shell.running.is_flood:
        return "Stopped: it printed without end."
    return f"Exit status {status}." if status >= 0 else f"Ended by signal {-status}."


BASH_OUTPUT: Tool = make_tool(
    "BashOutput", ShellInput, bash_output, kind="shell", limit_chars=LIMIT_CHARS
)
KILL_SHELL: Tool = make_tool(
    "KillShell", ShellInput, kill_shell, kind="shell", limit_chars=LIMIT_CHARS
)
