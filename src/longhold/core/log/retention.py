"""Retention of the bodies beside a log: those that are too old go first, then those that are too many.

Every removal leaves an entry, so that a missing body can be explained. The log itself is never
touched: it still has every result that fits into it.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from longhold.core.log import Log
from longhold.core.log.cursor import earliest_now
from longhold.core.log.entries import Swept
from longhold.core.log.results import DIRECTORY, Results, StoredBody
from longhold.core.settings import SpillSettings

DAY_SECONDS = 86_400


def plan_sweep(
    files: Sequence[StoredBody], settings: SpillSettings, now: float
) -> tuple[tuple[StoredBody, ...], tuple[StoredBody, ...]]:
    """Choose what is too old, then what is too much, the oldest first; the newest stays."""
    days = settings.retention_days
    expired = [file for file in files if days and file.modified < now - days * DAY_SECONDS]
    rest = list(files[len(expired) :])
    over_bytes = sum(file.bytes for file in rest) - settings.session_bytes
    excess = []
    while over_bytes > 0 and len(rest) > 1:
        excess.append(rest.pop(0))
        over_bytes -= excess[-1].bytes
    return tuple(expired), tuple(excess)


def sweep(results: Results, settings: SpillSettings, *, now: float | None = None) -> list[Swept]:
    """Remove a session's bodies that are due, and return the entries that say so."""
    expired, excess = plan_sweep(results.stored(), settings, now or earliest_now())
    cap = f"{settings.session_bytes / 1e6:,.0f} MB"
    swept = [
        _remove_bodies(results, expired, f"older than {settings.retention_days} days"),
        _remove_bodies(results, excess, f"more than {cap} in all"),
    ]
    return [entry for entry in swept if entry.files]


def sweep_session(log: Path, settings: SpillSettings, *, now: float | None = None) -> list[Swept]:
    """Sweep a session that is not open; its log gets the entries and keeps its time."""
    results = Results(log.with_suffix(""))
    if not any(plan_sweep(results.stored(), settings, now or earliest_now())):
        return []
    before = log.stat()
    with Log.open(log) as opened:
        swept = sweep(results, settings, now=now)
        for entry in swept:
            opened.append(entry)
    os.utime(log, ns=(before.st_atime_ns, before.st_mtime_ns))
    return swept


def _remove_bodies(results: Results, doomed: Sequence[StoredBody], why: str) -> Swept:
    gone = results.remove(doomed)
    return Swept(
        files=tuple(f"{DIRECTORY}/{file.name}" for file in gone),
        bytes=sum(file.bytes for file in gone),
        why=why,
    )
