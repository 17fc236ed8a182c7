"""Records that the sessions of a project share, stored next to their logs."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec

from longhold.core.log.entries import Said
from longhold.core.log.spending import DayLedger, FileLedger
from longhold.core.settings import home
from longhold.core.settings.private_files import write_private

_SAID = b'{"entry":"said"'


class MemoryBackend(Protocol):
    """The commits of a project's memories, numbered from 1 for all machines together."""

    def after(self, number: int) -> list[tuple[int, bytes]]:
        """Return the commits after a number, in order. Raises immediately on lost connections."""

    def add(self, number: int, commit: bytes) -> bool:
        """Add a commit under a number. Return False if the number is already taken."""


class SharedCommits(MemoryBackend, Protocol):
    @property
    def place(self) -> Path:
        """The directory of the checked-out memories on this machine."""


class SharedRecords(Protocol):
    @property
    def ledger(self) -> DayLedger:
        """Spending of all sessions per day."""

    @property
    def memory(self) -> SharedCommits | None:
        """The commits of the project's memories, or None if the memories are local files."""

    def read(self, name: str) -> bytes:
        """Return the data stored under a name, such as a model's calibration, or b''."""

    def keep(self, name: str, data: bytes) -> None:
        """Store data under a name. The last write wins, and a crash may lose it."""

    def sessions_since(self, since: float) -> list[str]:
        """List the project's sessions that were written since a Unix time, newest first."""

    def read_said(self, session: str) -> Iterator[Said]:
        """Read the `Said` entries of a session, skipping damaged ones."""


class FileRecords:
    """The shared records of the logs in one directory, and those in the home directory."""

    memory: SharedCommits | None = None

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self.ledger: DayLedger = FileLedger()

    def read(self, name: str) -> bytes:
        try:
            return (home() / name).read_bytes()
        except OSError:
            return b""

    def keep(self, name: str, data: bytes) -> None:
        write_private(home() / name, data, is_synced=False)

    def sessions_since(self, since: float) -> list[str]:
        found: list[tuple[float, str]] = []
        with suppress(OSError), os.scandir(self._logs) as listing:
            for entry in listing:
                if entry.name.endswith(".jsonl") and (at := entry.stat().st_mtime) > since:
                    found.append((at, entry.name.removesuffix(".jsonl")))
        return [id for _, id in sorted(found, reverse=True)]

    def read_said(self, session: str) -> Iterator[Said]:
        with suppress(OSError), (self._logs / f"{session}.jsonl").open("rb") as file:
            for line in file:
                yield from decode_said(line)


def decode_said(line: bytes) -> Iterator[Said]:
    if line.startswith(_SAID):
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            yield msgspec.json.decode(line, type=Said)
