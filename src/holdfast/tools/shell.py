"""Commands as processes: started in a group of their own, captured, and ended for good.

The whole process group of a `RunningCommand` ends when it ends, is stopped, or its task is
cancelled: asked first, then killed. Its input is empty and it has no terminal. A process that
starts a session of its own (a daemon) leaves the group and is left alone. Memory stays bounded
however much a command prints: head and tail are kept, and longer output also goes to a file.
"""

import asyncio
import contextlib
import os
import shlex
import signal
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from io import BufferedWriter
from pathlib import Path

from holdfast.settings.files import private_directory
from holdfast.tools.process import find_program, group_members, signal_group

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
    "CDPATH": "",
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
"""Makes programs that would ask, page, colour or open an editor fail or go on instead.

Without a `CDPATH`, `cd` leads where the permissions think.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureLimits:
    head_bytes: int = 512 << 10
    """With the tail as much as a log entry holds; what the model sees of it is cut later."""
    tail_bytes: int = 512 << 10
    file_bytes: int = 64 << 20
    """Enough for any log that will be read; a disk has room for it."""


LIMITS = CaptureLimits()


class Capture:
    """The output of a command: its beginning and end in memory, a long one also on disk."""

    def __init__(
        self, file: Path, *, limits: CaptureLimits = LIMITS, is_filed: bool = False
    ) -> None:
        self.file = file
        self.total_bytes = 0
        self._limits = limits
        self._head = bytearray()
        self._tail = bytearray()
        self._sink: BufferedWriter | None = None
        self._filed_bytes = 0
        if is_filed:
            self._open()

    @property
    def is_filed(self) -> bool:
        return self._filed_bytes > 0 or self._sink is not None

    def feed(self, data: bytes) -> None:
        limits = self._limits
        over = self.total_bytes + len(data) > limits.head_bytes + limits.tail_bytes
        if over and not self.is_filed:
            self._open()
            self._file(bytes(self._head + self._tail))
        self._file(data)
        self.total_bytes += len(data)
        room = limits.head_bytes - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        if len(self._tail) > 2 * limits.tail_bytes:
            del self._tail[: -limits.tail_bytes]

    def text(self) -> str:
        """Return what is kept, with a line where the middle is missing."""
        head, tail = bytes(self._head), bytes(self._tail[-self._limits.tail_bytes :])
        missing = self.total_bytes - len(head) - len(tail)
        if not missing:
            return (head + tail).decode("utf-8", "replace")
        is_whole = self.total_bytes <= self._filed_bytes
        filed = "everything is" if is_whole else f"the first {self._filed_bytes:,} bytes are"
        gap = f"\n[{missing:,} bytes left out here; {filed} in {self.file}]\n"
        return head.decode("utf-8", "replace") + gap + tail.decode("utf-8", "replace")

    def last_line(self) -> str:
        end = bytes((self._tail or self._head)[-400:]).decode("utf-8", "replace").rstrip()
        return end.rpartition("\n")[2].rpartition("\r")[2]

    def close(self) -> None:
        if self._sink is not None:
            self._sink.close()
            self._sink = None

    def flush(self) -> None:
        if self._sink is not None:
            self._sink.flush()

    def _open(self) -> None:
        private_directory(self.file.parent)
        self._sink = self.file.open("wb")
        self.file.chmod(0o600)

    def _file(self, data: bytes) -> None:
        """Write to the file while it has room; a full disk costs the middle, not the command."""
        data = data[: self._limits.file_bytes - self._filed_bytes]
        if self._sink is None or not data:
            return
        try:
            self._sink.write(data)
            self._filed_bytes += len(data)
        except OSError:
            self._sink = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    arguments: tuple[str, ...]
    directory: Path
    variables: Mapping[str, str]
    output: Path
    """Where the whole output goes if it is long."""
    given: str = ""
    """Standard input; it comes from a file without a name, so it may be long."""
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
        await self._wait_for_group(LINGER_SECONDS)
        self.left_over = len(group_members(self.group))
        await self.stop()

    async def stop(self) -> None:
        """End the whole group, asking first; nothing is left, even if this is cancelled."""
        try:
            try:
                if group_members(self.group):
                    signal_group(self.group, signal.SIGTERM)
                    await self._wait_for_group(GRACE_SECONDS)
            finally:
                # Reached by cancellation, too: then the group dies at once.
                if group_members(self.group):
                    self.kill()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wait_for_end(), GRACE_SECONDS)
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

    async def _wait_for_end(self) -> None:
        """Wait until the command is reaped, its group gone and its last output read."""
        await self._process.wait()
        await self._wait_for_group(GRACE_SECONDS)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._closed.wait(), DRAIN_SECONDS)

    async def _wait_for_group(self, patience_seconds: float) -> None:

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
        with tempfile.TemporaryFile() as given:
            given.write(launch.given.encode("utf-8", "surrogateescape"))
            given.seek(0)
            process = await asyncio.create_subprocess_exec(
                *launch.arguments,
                cwd=launch.directory,
                env={**launch.variables, **UNATTENDED, "PWD": str(launch.directory)},
                stdin=given,
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


def shell_arguments(landing: Path | None) -> tuple[str, ...]:
    """Return the arguments of a shell that runs its input; its last directory goes to `landing`.

    Arguments are visible to every user of the machine, so the command is not among them. It has
    no input of its own.
    """
    bash = find_program("bash")
    take = 'read -r -d ""; set -- "$REPLY"; unset REPLY' if bash else 'set -- "$(cat)"'
    leave = shlex.quote(f"pwd -P > {shlex.quote(str(landing))}")
    trap = f"trap {leave} EXIT; " if landing else ""
    shell = bash or "/bin/sh"
    return (shell, "-c", f'{trap}{take}; exec </dev/null; eval "$1"', shell)
