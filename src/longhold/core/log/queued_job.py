"""Work on a session that any machine may do, beside or after a turn.

A job is named by its session and the position in the log from which it is wanted. It is done once
the log holds what it leaves behind that position, so that running one twice does it once.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias, get_args

from longhold.core.log.entries import AnyEntry, Dreamt, Failed, Noted, Remembered, Replied
from longhold.errors import ConfigError

JobKind: TypeAlias = Literal["resume", "extract", "dream", "notes"]
JOBS: tuple[JobKind, ...] = get_args(JobKind)
"""Go on with a turn; look for memories; tidy the project's; bring the notes up to date."""
LEAVES: dict[JobKind, tuple[type[AnyEntry], str]] = {
    "extract": (Remembered, "memory"),
    "dream": (Dreamt, "dream"),
    "notes": (Noted, "notes"),
}
"""What a job leaves in the log, and its name in the background of a session and in its failures."""


class QueuedJobs(Protocol):
    """Jobs of a session that wait for a worker."""

    async def put(self, kind: JobKind, position: int) -> bool:
        """Queue one; False if it waits already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionJob:
    kind: JobKind
    session: str
    position: int = 0
    """The last entry when the job was asked for."""

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
        failed = [one for one in later if isinstance(one, Failed) and one.n > self.position]
        return next((one.error for one in failed if one.what == LEAVES[self.kind][1]), "")
