"""Background jobs on a session that any machine may run, during or after a turn.

A job is identified by its session and a position in the log. It is done once its entry follows that
position in the log. A job that runs twice therefore takes effect only once.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, get_args

from longhold.core.log.entries import AnyEntry, Dreamt, Failed, Noted, Remembered, Replied, Withheld
from longhold.errors import ConfigError

JobKind: TypeAlias = Literal["resume", "extract", "dream", "notes"]
JOBS: tuple[JobKind, ...] = get_args(JobKind)
"""The kinds of jobs: continue a turn, extract or consolidate memories, update the notes."""
LEAVES: dict[JobKind, tuple[type[AnyEntry], str]] = {
    "extract": (Remembered, "memory"),
    "dream": (Dreamt, "dream"),
    "notes": (Noted, "notes"),
}
"""For each kind, the entry it writes and its name in background work and failures."""


class QueuedJobs(Protocol):
    """A session's queue of jobs for workers."""

    async def put(self, kind: JobKind, position: int) -> bool:
        """Queue a job. Return False if it is already queued."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionJob:
    kind: JobKind
    session: str
    position: int = 0

    def __post_init__(self) -> None:
        if self.kind not in JOBS:
            raise ConfigError(f"there is no job {self.kind!r}; choose one of {', '.join(JOBS)}")

    def is_done(self, later: Iterable[AnyEntry]) -> bool:
        behind = (entry for entry in later if entry.n > self.position)
        if self.kind == "resume":
            return any(isinstance(one, Replied) and one.stop_reason == "end_turn" for one in behind)
        return any(isinstance(one, LEAVES[self.kind][0]) for one in behind)

    def failure(self, later: Iterable[AnyEntry]) -> str:
        if self.kind == "resume":
            return ""
        told = (o for o in later if isinstance(o, Failed | Withheld) and o.n > self.position)
        ours = (one for one in told if one.what == LEAVES[self.kind][1])
        return next((one.error if isinstance(one, Failed) else one.why for one in ours), "")
