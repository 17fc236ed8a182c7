"""Runs one hook as a process and leaves nothing of it behind.

A command and a text for its standard input come in; its exit status and what it printed go
out. It has a process group of its own, which is ended when its time is up, when we are
cancelled, and also when the hook itself has ended but left children. A child that starts a
session of its own leaves the group and is not found.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

OUTPUT_BYTES = 1 << 20
"""More than anyone reads of one stream; the rest is read and dropped, so no hook blocks on it."""
GRACE_SECONDS = 0.5
"""Between asking a hook to end and killing it."""
DRAIN_SECONDS = 1.0
"""How long the last output may take to arrive once every process is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookEnded:
    """How a hook's process came to its end."""

    status: int
    stdout: str
    stderr: str
    is_timed_out: bool = False


class _Watched(asyncio.SubprocessProtocol):
    """Keeps what a process prints and notices its end, whoever still holds its streams."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.drained = asyncio.Event()
        self._kept = {1: bytearray(), 2: bytearray()}
        self._open = {1, 2}

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Keep output up to its limit."""
        kept = self._kept[fd]
        kept += data[: max(0, OUTPUT_BYTES - len(kept))]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Notice the end of a stream."""
        self._open.discard(fd)
        if not self._open:
            self.drained.set()

    def process_exited(self) -> None:
        """Notice the end of the process."""
        self.ended.set()

    def text(self, fd: int) -> str:
        """Give what was printed."""
        return self._kept[fd].decode("utf-8", "replace")


async def run_process(
    arguments: tuple[str, ...],
    *,
    given: bytes,
    cwd: Path,
    variables: Mapping[str, str],
    timeout_seconds: float,
) -> HookEnded:
    """Run a program to its end or to the end of its time."""
    transport, watched = await asyncio.get_running_loop().subprocess_exec(
        _Watched, *arguments, cwd=cwd, env=dict(variables), start_new_session=True
    )
    timed_out = False
    try:
        _feed(transport, given)
        await asyncio.wait_for(watched.ended.wait(), timeout_seconds)
    except TimeoutError:
        timed_out = True
    finally:
        await asyncio.shield(_finish(transport, watched))
    return HookEnded(
        status=transport.get_returncode() or 0,
        stdout=watched.text(1),
        stderr=watched.text(2),
        is_timed_out=timed_out,
    )


def _feed(transport: asyncio.SubprocessTransport, given: bytes) -> None:
    """Write the input; a hook that does not read it is no error."""
    stdin = transport.get_pipe_transport(0)
    assert isinstance(stdin, asyncio.WriteTransport)
    stdin.write(given)
    stdin.write_eof()


async def _finish(transport: asyncio.SubprocessTransport, watched: _Watched) -> None:
    """End what is left of the group, asking first if its leader still runs."""
    group = transport.get_pid()
    if not watched.ended.is_set():
        _signal(group, signal.SIGTERM)
        await _wait(watched.ended, GRACE_SECONDS)
    _signal(group, signal.SIGKILL)
    await watched.ended.wait()
    await _wait(watched.drained, DRAIN_SECONDS)
    transport.close()


async def _wait(event: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
