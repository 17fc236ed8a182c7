"""The Bash, BashOutput and KillShell tools.

The working directory persists between commands. Variables and functions do not.
"""

import asyncio
import signal
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from longhold.agent.permissions.readonly import is_read_only_command, is_reading_only
from longhold.agent.tools.git import reading_variables
from longhold.agent.tools.shells import (
    BackgroundCommand,
    Launch,
    RunningCommand,
    shell_arguments,
    shells_of,
)
from longhold.core.messages.text import clean_line
from longhold.core.settings.private_files import private_directory
from longhold.core.tools.context import ToolContext
from longhold.core.tools.describe import SHELL_CHARS
from longhold.core.tools.protocol import Input, Outcome, Refused, Tool, make_tool
from longhold.core.tools.shell_reader import read_script

DEFAULT_TIMEOUT_SECONDS = 120
MAX_TIMEOUT_SECONDS = 600
COMMAND_BYTES = 100_000
REPORT_SECONDS = 1.0


class BashInput(Input, frozen=True, kw_only=True):
    command: Annotated[str, Meta(description="The command line, as for `bash -c`.", min_length=1)]
    description: Annotated[str, Meta(description="What it does, in five to ten words.")] = ""
    timeout: Annotated[
        int,
        Meta(description="Milliseconds to wait, 120000 by default, at most 600000.", ge=1),
    ] = DEFAULT_TIMEOUT_SECONDS * 1_000
    run_in_background: Annotated[
        bool, Meta(description="Do not wait; look at it later with BashOutput.")
    ] = False


async def bash(given: BashInput, tool_context: ToolContext) -> Outcome:
    _check(given, tool_context)
    name = uuid.uuid4().hex[:12]
    # A background command does not move the working directory.
    landing = None if given.run_in_background else tool_context.scratch / f"at-{name}"
    running = await shells_of(tool_context).start(
        Launch(
            arguments=shell_arguments(landing, near=tool_context.root),
            given=given.command,
            directory=tool_context.directory,
            variables=variables_of(given, tool_context.variables),
            output=tool_context.scratch / f"output-{name}.txt",
            is_filed=given.run_in_background,
        )
    )
    if landing is None:
        return _move_to_background(given, running, tool_context)
    try:
        return await _run_to_end(given, running, landing, tool_context)
    finally:
        landing.unlink(missing_ok=True)


def variables_of(given: BashInput, variables: Mapping[str, str]) -> Mapping[str, str]:
    """Return a command's environment. It is smaller if the command could run without a prompt."""
    return (
        reading_variables(variables) if is_reading_only(read_script(given.command)) else variables
    )


def _is_reading(given: BashInput) -> bool:
    return not given.run_in_background and is_read_only_command(given.command)


def _check(given: BashInput, tool_context: ToolContext) -> None:
    if len(given.command.encode()) > COMMAND_BYTES:
        raise Refused("The command is too long for one line. Write it to a file and run that.")
    if not tool_context.directory.is_dir():
        gone = tool_context.directory
        tool_context.move_to(tool_context.root)
        raise Refused(f"{gone} is gone. The working directory is {tool_context.root} again.")
    private_directory(tool_context.scratch)


def _move_to_background(
    given: BashInput, running: RunningCommand, tool_context: ToolContext
) -> Outcome:
    shell = shells_of(tool_context).send_back(running, given.command)
    said = (
        f"Runs in the background as {shell.id}. BashOutput brings what it prints, KillShell "
        f"ends it; its output also goes to {running.capture.file}."
    )
    return Outcome(content=said, note=f"started {shell.id}: {_shorten_command(given.command)}")


async def _run_to_end(
    given: BashInput, running: RunningCommand, landing: Path, tool_context: ToolContext
) -> Outcome:
    limit_seconds = min(given.timeout / 1_000, MAX_TIMEOUT_SECONDS)
    try:
        if not await _wait_reporting(running, limit_seconds, tool_context):
            await shells_of(tool_context).stop(running)
            return _report_timeout(running, limit_seconds)
        await shells_of(tool_context).finish(running)
    except asyncio.CancelledError:
        await shells_of(tool_context).stop(running)
        raise
    remarks = [*_follow_cd(landing, tool_context), *_report_leftovers(running)]
    return _describe_end(given.command, running, remarks)


async def _wait_reporting(
    running: RunningCommand, limit_seconds: float, tool_context: ToolContext
) -> bool:
    """Wait for the end and report the last output line regularly. Return False on timeout."""
    waited = 0.0
    while waited < limit_seconds:
        step = min(REPORT_SECONDS, limit_seconds - waited)
        if await running.wait(step):
            return True
        waited += step
        tool_context.report(running.capture.last_line())
    return False


def _report_timeout(running: RunningCommand, limit_seconds: float) -> Outcome:
    said = f"Stopped after {limit_seconds:g} s without an end."
    advice = "Give it more time with `timeout`, or run it in the background."
    return Outcome(
        content=_join_remarks(running.capture.text(), f"{said} {advice}"), is_error=True, note=said
    )


def _describe_end(command: str, running: RunningCommand, remarks: list[str]) -> Outcome:
    status = running.status
    assert status is not None
    text = running.capture.text()
    if running.is_flood:
        printed = f"{running.capture.total_bytes:,} bytes"
        remarks = [f"Stopped: it had printed {printed} and went on.", *remarks]
    elif status:
        remarks = [_exit_words(status), *remarks]
    elif not text.strip():
        remarks = ["It succeeded and printed nothing.", *remarks]
    note = f"{_shorten_command(command)}: {_exit_words(status) if status else 'ok'}"
    return Outcome(
        content=_join_remarks(text, *remarks), is_error=status != 0, exit_status=status, note=note
    )


def _exit_words(status: int) -> str:
    if status >= 0:
        return f"Exit status {status}."
    try:
        return f"Ended by {signal.Signals(-status).name}."
    except ValueError:
        return f"Ended by signal {-status}."


def _follow_cd(landing: Path, tool_context: ToolContext) -> list[str]:
    """Adopt the command's last directory if it is within the working directories."""
    try:
        reached = Path(landing.read_text(encoding="utf-8").removesuffix("\n"))
    except (OSError, UnicodeDecodeError):
        return []
    if reached == tool_context.directory.resolve() or not reached.is_dir():
        return []
    if not tool_context.is_within(reached):
        return [f"{reached} is outside the working directories; still in {tool_context.directory}."]
    tool_context.move_to(reached)
    return [f"The working directory is now {reached}."]


def _report_leftovers(running: RunningCommand) -> list[str]:
    if not running.left_over:
        return []
    count = "1 process" if running.left_over == 1 else f"{running.left_over} processes"
    return [f"It left {count} running, now ended; use run_in_background to keep such a process."]


def _join_remarks(text: str, *remarks: str) -> str:
    said = "\n".join(f"[{remark}]" for remark in remarks)
    return "\n".join(part for part in (text.rstrip("\n"), said) if part)


def _shorten_command(command: str) -> str:
    return clean_line(command.strip().partition("\n")[0], 60)


BASH: Tool = make_tool(
    "Bash",
    BashInput,
    bash,
    kind="shell",
    command_input="command",
    is_read_only=_is_reading,
    limit_chars=SHELL_CHARS,
)


class ShellInput(Input, frozen=True, kw_only=True):
    shell_id: Annotated[str, Meta(description="The id that Bash gave.")]


async def _bash_output(given: ShellInput, tool_context: ToolContext) -> Outcome:
    shell = _shell(given.shell_id, tool_context)
    if shell.running.status is not None:
        await shell.ending
    news = shell.news()
    state = _state(shell)
    return Outcome(
        content=f"{news.rstrip()}\n[{state}]" if news.strip() else f"[Nothing new. {state}]",
        exit_status=shell.running.status,
        note=f"{shell.id}: {state}",
    )


async def _kill_shell(given: ShellInput, tool_context: ToolContext) -> Outcome:
    shell = _shell(given.shell_id, tool_context)
    if shell.running.status is not None:
        return Outcome(content=f"{shell.id} had already ended. {_state(shell)}")
    await shells_of(tool_context).kill(shell)
    return Outcome(content=f"Stopped {shell.id}: {shell.command}", note=f"stopped {shell.id}")


def _shell(id: str, tool_context: ToolContext) -> BackgroundCommand:
    shells = shells_of(tool_context).background
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
    return _exit_words(status)


BASH_OUTPUT: Tool = make_tool(
    "BashOutput", ShellInput, _bash_output, kind="shell", limit_chars=SHELL_CHARS
)
KILL_SHELL: Tool = make_tool(
    "KillShell", ShellInput, _kill_shell, kind="shell", limit_chars=SHELL_CHARS
)
