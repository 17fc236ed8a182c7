"""The shell commands of one session, in the foreground and background.

Closing the session ends them all. If this process dies first, a watcher process kills them. The
watcher reads the live process groups from a pipe that only this process holds open.
"""

import asyncio
import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BufferedWriter
from pathlib import Path

from longhold.agent.tools.process import group_members, signal_group
from longhold.core.settings.private_files import private_directory
from longhold.core.tools.context import ToolContext
from longhold.core.tools.environment import find_program

GRACE_SECONDS = 2.0
"""Time between SIGTERM and SIGKILL, in which servers can close their files."""
LINGER_SECONDS = 0.3
"""Processes that outlive their command by less than this are not reported."""
POLL_SECONDS = 0.02
DRAIN_SECONDS = 0.2
CHUNK_BYTES = 1 << 16
FLOOD_BYTES = 5_000_000_000

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
"""Stops programs from prompting, paging, colouring or opening an editor. `CDPATH` is empty, so `cd`
leads where the permissions expect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureLimits:
    head_bytes: int = 512 << 10
    """Head and tail together fit a log entry. The model's view is cut later."""
    tail_bytes: int = 512 << 10
    file_bytes: int = 64 << 20


LIMITS = CaptureLimits()


class Capture:
    """A command's output: beginning and end in memory, and long output on disk."""

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
        """Write to the file up to its limit. A full disk loses output but not the command."""
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
    given: str = ""
    """Stdin, passed through an unnamed file, so it may be long."""
    is_filed: bool = False
    limits: CaptureLimits = LIMITS
    flood_bytes: int = FLOOD_BYTES


class RunningCommand:
    def __init__(self, launch: Launch, process: asyncio.subprocess.Process, pipe: int) -> None:
        self.launch = launch
        self.capture = Capture(launch.output, limits=launch.limits, is_filed=launch.is_filed)
        self.is_flood = False
        self.left_over = 0
        """The number of processes that outlived the command."""
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
        """The exit status, negative for a signal, or None while running."""
        return self._process.returncode

    async def wait(self, timeout_seconds: float | None) -> bool:
        try:
            await asyncio.wait_for(self._process.wait(), timeout_seconds)
        except TimeoutError:
            return False
        return True

    async def finish(self) -> None:
        await self._wait_for_group(LINGER_SECONDS)
        self.left_over = len(group_members(self.group))
        await self.stop()

    async def stop(self) -> None:
        """End the whole group, with SIGTERM first. No process remains even if this is cancelled."""
        try:
            try:
                if group_members(self.group):
                    signal_group(self.group, signal.SIGTERM)
                    await self._wait_for_group(GRACE_SECONDS)
            finally:
                # A cancelled call also arrives here and kills the group immediately.
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
        await self._process.wait()
        await self._wait_for_group(GRACE_SECONDS)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._closed.wait(), DRAIN_SECONDS)

    async def _wait_for_group(self, patience_seconds: float) -> None:

        deadline = time.monotonic() + patience_seconds
        while group_members(self.group) and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(POLL_SECONDS)  # because nothing announces a group's end

    def _read(self) -> None:
        """Read one piece at a time, so that a flood does not starve other tasks."""
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


def shell_arguments(landing: Path | None, *, near: Path | None = None) -> tuple[str, ...]:
    """Return arguments for a shell that runs its stdin and writes its last directory to `landing`.

    The command is not an argument, because every user of the machine can see those.
    """
    bash = find_program("bash", near=near)
    take = 'read -r -d ""; set -- "$REPLY"; unset REPLY' if bash else 'set -- "$(cat)"'
    leave = shlex.quote(f"pwd -P > {shlex.quote(str(landing))}")
    trap = f"trap {leave} EXIT; " if landing else ""
    shell = bash or "/bin/sh"
    return (shell, "-c", f'{trap}{take}; exec </dev/null; eval "$1"', shell)


_SCRIPT = """
live=' '
while read -r sign group; do
  case $sign in
    +) live="$live$group " ;;
    -) live="${live%% $group *} ${live#* $group }" ;;
  esac
done
for group in $live; do kill -s KILL -- "-$group" 2>/dev/null; done
"""


class Lifeline:
    def __init__(self) -> None:
        self._pipe = -1
        self._held: set[int] = set()
        self._let_go: weakref.finalize[[int, subprocess.Popen[bytes]], Lifeline] | None = None

    def hold(self, group: int) -> None:
        if self._let_go is None:
            self._start()
        self._held.add(group)
        self._write(f"+ {group}\n")

    def release(self, group: int) -> None:
        if group in self._held:
            self._held.discard(group)
            self._write(f"- {group}\n")

    def close(self) -> None:
        """End the watcher, which kills the groups still on its list."""
        if self._let_go is not None:
            self._let_go()
            self._let_go = None
            self._held.clear()

    def _start(self) -> None:
        theirs, self._pipe = os.pipe()
        # The watcher has its own session, so that signals to Longhold's group do not reach it.
        watcher = subprocess.Popen(
            ("/bin/sh", "-c", _SCRIPT),
            stdin=theirs,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs)
        # This ends the watcher even if the session is never closed.
        self._let_go = weakref.finalize(self, _let_go, self._pipe, watcher)

    def _write(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):
            os.write(self._pipe, line.encode())


def _let_go(pipe: int, watcher: "subprocess.Popen[bytes]") -> None:
    os.close(pipe)
    watcher.wait()


GIVEN_BYTES = 1 << 20
"""Limit per BashOutput call. Older output remains in the file."""


@dataclass(slots=True, kw_only=True)
class BackgroundCommand:
    id: str
    command: str
    running: RunningCommand
    ending: "asyncio.Task[None]"
    """Waits for the command and its group to end."""
    given_bytes: int = 0
    is_stopped: bool = False

    def news(self) -> str:
        capture = self.running.capture
        capture.flush()
        with capture.file.open("rb") as file:
            file.seek(self.given_bytes)
            new = file.read()
        self.given_bytes += len(new)
        if len(new) <= GIVEN_BYTES:
            return new.decode("utf-8", "replace")
        skipped = f"[{len(new) - GIVEN_BYTES:,} bytes before this are in {capture.file}]\n"
        return skipped + new[-GIVEN_BYTES:].decode("utf-8", "replace")

    def mark_stopped(self) -> None:
        self.is_stopped = True

    def has_news(self) -> bool:
        capture = self.running.capture
        capture.flush()
        return capture.file.stat().st_size > self.given_bytes


@dataclass(slots=True)
class Shells:
    background: dict[str, BackgroundCommand] = field(default_factory=dict)
    _lifeline: Lifeline = field(default_factory=Lifeline)
    _foreground: set[RunningCommand] = field(default_factory=set)
    _count: int = 0

    async def start(self, launch: Launch) -> RunningCommand:
        running = await start(launch)
        self._lifeline.hold(running.group)
        self._foreground.add(running)
        return running

    async def finish(self, running: RunningCommand) -> None:
        try:
            await running.finish()
        finally:
            self._release(running)

    async def stop(self, running: RunningCommand) -> None:
        try:
            await running.stop()
        finally:
            self._release(running)

    def send_back(self, running: RunningCommand, command: str) -> BackgroundCommand:
        self._count += 1
        id = f"shell-{self._count}"
        ending = asyncio.create_task(self._wait_and_finish(running), name=id)
        self.background[id] = BackgroundCommand(
            id=id, command=command, running=running, ending=ending
        )
        return self.background[id]

    async def kill(self, shell: BackgroundCommand) -> None:
        shell.mark_stopped()
        await self.stop(shell.running)
        await shell.ending

    async def stop_all(self) -> None:
        await asyncio.gather(*(self.stop(running) for running in tuple(self._foreground)))
        await asyncio.gather(*(shell.ending for shell in self.background.values()))
        self._lifeline.close()

    async def _wait_and_finish(self, running: RunningCommand) -> None:
        await running.wait(None)
        await self.finish(running)

    def _release(self, running: RunningCommand) -> None:
        self._lifeline.release(running.group)
        self._foreground.discard(running)


def shells_of(tool_context: ToolContext) -> Shells:
    if not isinstance(tool_context.shells, Shells):
        tool_context.set_shells(Shells())
    assert isinstance(tool_context.shells, Shells)
    return tool_context.shells
