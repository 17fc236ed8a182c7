"""A session's outbox: how background jobs add entries to a log that has one writer.

A job writes each entry to a file. The writer later adds the entry to the log. After a crash, an
entry that was already recorded is recognised by its time. Only entries that do not change the view
are allowed.
"""

import contextlib
import os
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec import structs

from longhold.core.log.entries import (
    AnyEntry,
    Dreamt,
    Ended,
    Failed,
    Forked,
    Noted,
    Recalled,
    Remembered,
    Withheld,
)
from longhold.core.settings.private_files import write_private

NAME = "outbox"
UNREADABLE = ".unreadable"
"""Suffix for the name of an invalid file, so that the file is examined only once."""

LEFT = (Noted, Remembered, Recalled, Dreamt, Forked, Failed, Withheld, Ended)
"""The allowed entries: reports that do not change the model's view."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(AnyEntry).decode


def leave(directory: Path, entry: AnyEntry) -> Path:
    path = directory / NAME / f"{time.time_ns():020d}-{secrets.token_hex(4)}.json"
    write_private(path, encode_report(entry))
    return path


def encode_report(entry: AnyEntry) -> bytes:
    if not isinstance(entry, LEFT):
        raise TypeError(f"{type(entry).__name__} is not a report; only a log's writer records it")
    return _encode(structs.replace(entry, at=entry.at or time.time()))


def take(
    directory: Path, history: Sequence[AnyEntry], record: Callable[[AnyEntry], AnyEntry]
) -> list[AnyEntry]:
    taken: list[AnyEntry] = []
    for path in _list_waiting(directory):
        try:
            entry = decode_report(path.read_bytes())
        except OSError:
            entry = None
        if entry is None:
            with contextlib.suppress(OSError):
                path.replace(path.with_suffix(UNREADABLE))
            continue
        taken += record_once(entry, history, record)
        with contextlib.suppress(OSError):  # a file that remains is still recorded only once
            path.unlink()
    return taken


def _list_waiting(directory: Path) -> Iterable[Path]:
    place = f"{directory}/{NAME}"  # faster than a Path, because this runs after every answer
    try:
        names = os.listdir(place) if os.access(place, os.F_OK) else ()  # noqa: PTH208
    except OSError:
        return ()
    return [directory / NAME / name for name in sorted(names) if name.endswith(".json")]


def decode_report(data: bytes) -> AnyEntry | None:
    try:
        entry = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return entry if isinstance(entry, LEFT) and entry.at else None


def record_once(
    entry: AnyEntry, history: Sequence[AnyEntry], record: Callable[[AnyEntry], AnyEntry]
) -> list[AnyEntry]:
    """Record a report, unless an entry of the same kind and time was recorded before a crash."""
    if any(one.at == entry.at and type(one) is type(entry) for one in reversed(history)):
        return []
    return [record(structs.replace(entry, n=0))]
