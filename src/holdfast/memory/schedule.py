"""Whether it is time to dream: five conditions, cheapest first, each with its reason.

Sessions are counted only if everything cheaper holds, and not again for some minutes. The lock is
the last condition and is taken by whoever dreams.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from holdfast.memory.lock import LockState
from holdfast.settings import DreamSettings

SCANNED = ".dream-scan"
"""Its mtime is when sessions were last counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamVerdict:
    is_open: bool
    reason: str


def time_to_dream(
    settings: DreamSettings,
    *,
    now: float,
    held: LockState,
    scanned: float,
    count_sessions: Callable[[float], int],
) -> DreamVerdict:
    """Check all conditions; `count_sessions` counts the sessions changed since a time."""
    if not settings.on:
        return _closed("dreaming is off (dream.on)")
    hours = (now - held.last) / 3_600
    if hours < settings.after_hours:
        return _closed(f"the last dream was {hours:.1f} hours ago (dream.after_hours)")
    minutes = (now - scanned) / 60
    if minutes < settings.scan_minutes:
        return _closed(f"sessions were counted {minutes:.0f} minutes ago (dream.scan_minutes)")
    touched = count_sessions(held.last)
    if touched < settings.sessions:
        return _closed(f"{touched} sessions changed since the last dream (dream.sessions)")
    if not held.is_stale(now, settings.stale_minutes * 60):
        return _closed(f"process {held.pid} is dreaming")
    return DreamVerdict(is_open=True, reason=f"{touched} sessions changed since the last dream")


def last_scan(directory: Path) -> float:
    """Return when sessions were last counted; 0 if never."""
    try:
        return (directory / SCANNED).stat().st_mtime
    except OSError:
        return 0.0


def note_scan(directory: Path, at: float | None = None) -> None:
    path = directory / SCANNED
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    moment = time.time() if at is None else at
    os.utime(path, (moment, moment))


def sessions_touched(directory: Path, since: float, *, current: str = "") -> int:
    """Count the logs of a project written since a time, except the current session's."""
    return sum(
        1
        for path in directory.glob("*.jsonl")
        if path.stem != current and path.stat().st_mtime > since
    )


def _closed(reason: str) -> DreamVerdict:
    return DreamVerdict(is_open=False, reason=reason)
