"""Runs a program to its end and leaves no process behind. `shells` runs the session's commands.

The process group is killed on timeout, on cancellation, and when the program ends but leaves
children. A child that starts its own session escapes.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

OUTPUT_BYTES = 1 << 20
"""The limit per stream. More output is read and dropped, so that the program does not block."""
GRACE_SECONDS = 0.5
DRAIN_SECONDS = 1.0
"""How long to wait for the last output once every process is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessResult:
    status: int
    """The exit status, which is negative for a signal."""
    stdout: bytes
    stderr: bytes
    is_timed_out: bool = False


class _Output(asyncio.SubprocessProtocol):
    """Collects output and detects the process's end even if children hold its streams."""

    def __init__(self, limit_bytes: int) -> None:
        self.ended = asyncio.Event()
        self.drained = asyncio.Event()
        self.kept = {1: bytearray(), 2: bytearray()}
        self._limit_bytes = limit_bytes
        self._open = {1, 2}

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        kept = self.kept[fd]
        kept += data[: max(0, self._limit_bytes - len(kept))]

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._open.discard(fd)
        if not self._open:
            self.drained.set()

    def process_exited(self) -> None:
        self.ended.set()


async def run(
    arguments: tuple[str, ...],
    *,
    cwd: Path,
    variables: Mapping[str, str],
    timeout_seconds: float | None,
    given: bytes = b"",
    output_bytes: int = OUTPUT_BYTES,
) -> ProcessResult:
    """Run a program until it ends or times out, keeping the start of its output.

    `variables` is the whole environment and `given` is stdin. Raise `OSError` or `ValueError` if
    the program cannot start.
    """
    transport, output = await asyncio.get_running_loop().subprocess_exec(
        lambda: _Output(output_bytes),
        *arguments,
        cwd=cwd,
        env=dict(variables),
        start_new_session=True,
    )
    is_timed_out = False
    try:
        _feed(transport, given)
        await asyncio.wait_for(output.ended.wait(), timeout_seconds)
    except TimeoutError:
        is_timed_out = True
    finally:
        await asyncio.shield(_finish(transport, output))
    return ProcessResult(
        status=transport.get_returncode() or 0,
        stdout=bytes(output.kept[1]),
        stderr=bytes(output.kept[2]),
        is_timed_out=is_timed_out,
    )


def _feed(transport: asyncio.SubprocessTransport, given: bytes) -> None:
    stdin = transport.get_pipe_transport(0)
    assert isinstance(stdin, asyncio.WriteTransport)
    stdin.write(given)
    stdin.write_eof()


async def _finish(transport: asyncio.SubprocessTransport, output: _Output) -> None:
    """End the remaining group, with SIGTERM first if its leader still runs."""
    group = transport.get_pid()
    if not output.ended.is_set():
        signal_group(group, signal.SIGTERM)
        await _wait(output.ended, GRACE_SECONDS)
    signal_group(group, signal.SIGKILL)
    await output.ended.wait()
    await _wait(output.drained, DRAIN_SECONDS)
    transport.close()


async def _wait(event: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)


def signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def group_members(group: int) -> tuple[int, ...]:
    """List the running processes of a group, without zombies."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return ()
    except PermissionError:
        pass
    try:
        numbers = [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    except FileNotFoundError:
        return (group,)  # because without /proc only the group is known
    return tuple(int(number) for number in numbers if _is_member(number, group))


def _is_member(number: str, group: int) -> bool:
    try:
        fields = Path(f"/proc/{number}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    # The name in parentheses may contain anything. State, parent and group follow it.
    state, _parent, its_group = fields.rpartition(")")[2].split()[:3]
    return int(its_group) == group and state not in "ZX"
