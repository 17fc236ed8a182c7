"""A clock that jumps back or forth at each of its readings while a session runs."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from faults.disk import MODEL, work
from faults.tally import Tally
from harness import temporary_home
from longhold.core.log import load
from longhold.core.log.entries import AnyEntry, Swept
from longhold.core.log.store import FileStore
from longhold.core.messages.rules import violations
from longhold.core.settings import Settings
from longhold.errors import LongholdError
from longhold.session.session import Session

HOUR, YEAR = 3_600.0, 31_557_600.0
JUMPS = (HOUR, -HOUR, 10 * YEAR, -10 * YEAR)
"""Summer time and a dead battery, in both directions."""
BACK_AFTER = 7
"""Readings after which the clock is right again."""


@contextmanager
def jumping(at: int, seconds: float) -> Iterator[list[int]]:
    """Let the wall clock be wrong from its k-th reading on, for some readings; yields which were."""
    real, number, struck = time.time, count(1), list[int]()

    def reading() -> float:
        reads = next(number)
        if at <= reads < at + BACK_AFTER:
            struck.append(reads)
            return real() + seconds
        return real()

    time.time = reading
    try:
        yield struck
    finally:
        time.time = real


async def clock_faults(most: int) -> Tally:
    """Let the clock jump at each reading of a short session, up to `most` readings."""
    tally = Tally()
    for seconds in JUMPS:
        for at in range(1, most + 1):
            with temporary_home() as place:
                if not await _strike(place, at, seconds, tally):
                    break
    return tally


async def _strike(place: Path, at: int, seconds: float, tally: Tally) -> bool:
    store, written = FileStore(), list[AnyEntry]()
    where = f"clock {seconds:+.0f} s at {at}"
    with jumping(at, seconds) as struck:
        try:
            session = Session.open(
                model=MODEL,
                directory=place,
                settings=Settings(),
                store=store,
                clock=lambda: time.time(),
            )
            await work(session, written)
            with suppress(LongholdError):
                session.close()
            tally.false_statements += len(session.view.history) < len(written)
            with Session.resume(session.id, settings=Settings(), store=store) as again:
                tally.crashes += bool(violations(again.view.messages()) or again.view.damage)
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            tally.crashed(where, error)
            return bool(struck)
    tally.faults += bool(struck)
    entries = load(session._engine.log.path).entries
    kept = {entry.n for entry in entries}
    tally.data_lost += sum(entry.n not in kept for entry in written)
    tally.data_lost += sum(isinstance(entry, Swept) for entry in entries)  # nothing is old here
    return bool(struck)
