"""Commands as processes: started in a group of their own, watched, and ended for good.

The output of a `RunningCommand` is captured as it comes, and its whole process group ends when
it ends, is stopped, or its task is cancelled: asked first, then killed. Its input is empty and
it has no terminal. A process that starts a session of its own (a daemon) leaves the group and
is left alone.
"""

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast.tools.capture import LIMITS, Capture, CaptureLimits
from holdfast.tools.process import group_members, signal_group

GRACE_SECONDS = 2.0
"""Between asking a group to end and killing it: servers close their files in less."""
LINGER_SECONDS = 0.3
"""What outlives its command by less than this, like the end of a pipe, ended by itself."""
POLL_SECONDS = 0.02
"""How often a dying group is looked at; short beside the grace."""
DRAIN_SECONDS = 0.2
"""How long the last output may take to arrive once every process is gone."""
CHUNK_BYTES = 1 << 16
"""A pipe holds as much."""
FLOOD_BYTES = 5_000_000_000
"""A command that prints more than this has gone wild."""

UNATTENDED = {
    "DEBIAN_FRONTEND": "noninteractive",
    "EDITOR": "false",
    "GIT_EDITOR": "false",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "SSH_ASKPASS_REQUIRE": "never",
    "TERM": "dumb",
    "VISUAL": "false",
}
"""Makes programs that would ask, page, colour or open an editor fail or go on instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    arguments: tuple[str, ...]
    directory: Path
    variables: Mapping[str, str]
    output: Path
    """Where the whole output goes if it is long."""
    is_filed: bool = False
    """Write the output to the file from the start."""
    limits: CaptureLimits = LIMITS
    flood_bytes: int = FLOOD_BYTES


class RunningCommand:
    """A started command and the group of processes it became."""

    def __init__(self, launch: Launch, process: asyncio.subprocess.Process, pipe: int) -> None:
        self.launch = launch
        self.capture = Capture(launch.output, limits=launch.limits, is_filed=launch.is_filed)
        self.is_flood = False
        self.left_over = 0
        """Processes that were still running when the command itself had ended."""
        self._process = process
        self._pipe = pipe
        self._closed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        os.set_blocking(pipe, False)
        self._loop.add_reader(pipe, self._read)

    @property
    def group(self) -> int:
        return self._process.pid

    @property
    def status(self) -> int | None:
        """The exit status, negative for a signal, or None while it runs."""
        return self._process.returncode

    async def wait(self, timeout_seconds: float | None) -> bool:
        """Wait for the command itself to end; return whether it did."""
        try:
            await asyncio.wait_for(self._process.wait(), timeout_seconds)
        except TimeoutError:
            return False
        return True

    async def finish(self) -> None:
        """Read the last output and end what the command left running."""
        await self._gone(LINGER_SECONDS)
        self.left_over = len(group_members(self.group))
        await self.stop()

    async def stop(self) -> None:
        """End the whole group, asking first; nothing is left, even if this is cancelled."""
        try:
            try:
                if group_members(self.group):
                    signal_group(self.group, signal.SIGTERM)
                    await self._gone(GRACE_SECONDS)
            finally:
                # Reached by cancellation, too: then the group dies at once.
                if group_members(self.group):
                    self.kill()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._settle(), GRACE_SECONDS)
        finally:
            self.close()

    def kill(self) -> None:
        signal_group(self.group, signal.SIGKILL)

    def close(self) -> None:
        if not self._closed.is_set():
            self._loop.remove_reader(self._pipe)
            os.close(self._pipe)
            self.capture.close()
            self._closed.set()

    async def _settle(self) -> None:
        """Wait until the command is reaped, its group gone and its last output read."""
        await self._process.wait()
        await self._gone(GRACE_SECONDS)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._closed.wait(), DRAIN_SECONDS)

    async def _gone(self, patience_seconds: float) -> None:
        deadline = time.monotonic() + patience_seconds
        while group_members(self.group) and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(POLL_SECONDS)  # nothing announces a group's end

    def _read(self) -> None:
        """Read one piece of output at a time, so that a flood leaves others their turn."""
        try:
            data = os.read(self._pipe, CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        self.capture.feed(data)
        if self.capture.total_bytes > self.launch.flood_bytes and not self.is_flood:
            self.is_flood = True
            self.kill()


async def start(launch: Launch) -> RunningCommand:
    ours, theirs = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *launch.arguments,
            cwd=launch.directory,
            env={**launch.variables, **UNATTENDED, "PWD": str(launch.directory)},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    return RunningCommand(launch, process, ours)


def shell_arguments(command: str, landing: Path | None) -> tuple[str, ...]:
    """Return the arguments that run a command line; its last directory goes to the landing file."""
    shell = shutil.which("bash") or "/bin/sh"
    leave = shlex.quote(f"pwd -P > {shlex.quote(str(landing))}")
    trap = f"trap {leave} EXIT; " if landing else ""
    return (shell, "-c", f'{trap}eval "$1"', shell, command)
