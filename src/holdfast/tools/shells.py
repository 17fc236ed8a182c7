"""The commands of one session, in the foreground and in the background.

Every command is started and ended here, so that closing the session ends them all. Should this
process die without closing, a small watcher process, which reads the live process groups from a
pipe only we hold open, kills them. A background command has a short id and an output file.
"""

import asyncio
import contextlib
import os
import subprocess
import weakref
from dataclasses import dataclass, field

from holdfast.tools.shell import Launch, RunningCommand, start

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
        """End the watcher; it kills what is still on its list."""
        if self._let_go is not None:
            self._let_go()
            self._let_go = None
            self._held.clear()

    def _start(self) -> None:
        theirs, self._pipe = os.pipe()
        # Its own session, so that a signal to our group does not take it along.
        watcher = subprocess.Popen(
            ("/bin/sh", "-c", _SCRIPT),
            stdin=theirs,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs)
        # A session that is never closed leaves no watcher behind either.
        self._let_go = weakref.finalize(self, _let_go, self._pipe, watcher)

    def _write(self, line: str) -> None:

        with contextlib.suppress(BrokenPipeError):
            os.write(self._pipe, line.encode())


def _let_go(pipe: int, watcher: "subprocess.Popen[bytes]") -> None:
    os.close(pipe)
    watcher.wait()


GIVEN_BYTES = 1 << 20
"""The most that one look at a background command brings; older output stays in its file."""


@dataclass(slots=True, kw_only=True)
class BackgroundCommand:
    id: str
    command: str
    running: RunningCommand
    ending: "asyncio.Task[None]"
    """Waits for the command to end and then for its group."""
    given_bytes: int = 0
    is_stopped: bool = False

    def news(self) -> str:
        """Return the output since the last look."""
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
        self.hold(running.group)
        self._foreground.add(running)
        return running

    def hold(self, group: int) -> None:
        """Kill this process group should we die."""
        self._lifeline.hold(group)

    def release(self, group: int) -> None:
        self._lifeline.release(group)

    async def finish(self, running: RunningCommand) -> None:
        """End what a command has left running, and forget it."""
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
        """Continue a command in the background, under an id."""
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
        self.release(running.group)
        self._foreground.discard(running)
