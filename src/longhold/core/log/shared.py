"""What the sessions of a project have in common beside their logs, where all of them reach it."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec

from longhold.core.log.entries import Said
from longhold.core.log.spending import DayLedger, FileLedger
from longhold.core.settings import home
from longhold.core.settings.files import write_private

_SAID = b'{"entry":"said"'
"""How such an entry begins in a log."""


class SharedCommits(Protocol):
    """The commits of a project's memories, numbered from 1 for all machines."""

    @property
    def place(self) -> Path:
        """The directory of what they add up to on this machine."""

    def after(self, number: int) -> list[tuple[int, bytes]]:
        """Return what was committed behind a number, in order; raises at once while that is away."""

    def add(self, number: int, commit: bytes) -> bool:
        """Commit under a number; False if it is taken."""


class SharedRecords(Protocol):
    @property
    def ledger(self) -> DayLedger:
        """What all sessions spend in a day."""

    @property
    def memory(self) -> SharedCommits | None:
        """The commits of the project's memories; None where they are files of this machine."""

    def read(self, name: str) -> bytes:
        """Return what is kept under a name, such as a model's calibration; b'' if nothing is."""

    def keep(self, name: str, data: bytes) -> None:
        """Keep something under a name; the last one counts, and a crash may lose it."""

    def sessions_since(self, since: float) -> list[str]:
        """Return the project's sessions that were written since a time, the newest first."""

    def said(self, session: str) -> Iterator[Said]:
        """Read what was said in one of them; damaged entries are passed over."""


class FileRecords:
    """Those of the logs in one directory, and of everything below the home directory."""

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

    def said(self, session: str) -> Iterator[Said]:
        with suppress(OSError), (self._logs / f"{session}.jsonl").open("rb") as file:
            for line in file:
                yield from decode_said(line)


def decode_said(line: bytes) -> Iterator[Said]:
    if line.startswith(_SAID):
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            yield msgspec.json.decode(line, type=Said)
