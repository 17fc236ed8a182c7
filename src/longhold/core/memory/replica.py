"""A replica of a memory store that several nodes share.

A node pulls new commits before it adds a commit under the next number. If another node was faster,
the node pulls and tries again.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import msgspec
from msgspec import Struct

from longhold.core.log.shared import MemoryBackend
from longhold.core.memory.commits import (
    CommitAuthor,
    CommitHistory,
    CommitWriter,
    Database,
    MemoryChange,
)
from longhold.core.memory.paths import INDEX
from longhold.errors import StoreError


class SharedChange(Struct, frozen=True, kw_only=True, omit_defaults=True):
    file: str
    text: str | None
    reason: str = ""


class SharedCommit(Struct, frozen=True, kw_only=True, omit_defaults=True):
    at: float
    by: CommitAuthor
    why: str
    changes: tuple[SharedChange, ...]
    undoes: int = 0


class _NumberTaken(Exception):
    pass


@contextmanager
def _explain_failure() -> Iterator[None]:
    """Turn the errors of a plug-in into `StoreError`: memory then works with its copy."""
    try:
        yield
    except (StoreError, _NumberTaken):
        raise
    except Exception as error:
        raise StoreError(f"shared memories: {type(error).__name__}: {error}") from error


class Replica:
    def __init__(self, database: Database, commits: MemoryBackend | None) -> None:
        """`commits` are the shared commits; None for a single node."""
        self._database = database
        self._history = CommitHistory(database)
        self._commits = commits

    def pull(self) -> bool:
        """Apply the commits of other nodes; return whether there were any."""
        if self._commits is None:
            return False
        with _explain_failure():
            found = self._commits.after(self._history.head)
            new = [(n, msgspec.json.decode(data, type=SharedCommit)) for n, data in found]
        if not new:
            return False
        with self._database.writing():
            known = self._history.head
            for number, commit in new:
                if number > known:
                    self._apply(number, commit)
        return True

    def record_commit(self, record: Callable[[], int]) -> int:
        """Record and publish a commit in one transaction. Return its number, or 0 for none."""
        while True:
            self.pull()
            with suppress(_NumberTaken), self._database.writing():
                id = record()
                self._push(id)
                return id

    def _push(self, id: int) -> None:
        if self._commits is None or not id:
            return
        made = self._history.commit(id)
        changes = tuple(
            SharedChange(
                file=one.file,
                text=self._history.text(one.after) if one.after else None,
                reason=one.reason,
            )
            for one in made.changes
        )
        shared = SharedCommit(
            at=made.at, by=made.by, why=made.why, undoes=made.undoes, changes=changes
        )
        with _explain_failure():
            if not self._commits.add(id, msgspec.json.encode(shared)):
                raise _NumberTaken

    def _apply(self, number: int, commit: SharedCommit) -> None:
        writer = CommitWriter(self._database, commit.at)
        writer.begin(commit.by, commit.why, commit.undoes)
        if writer.id != number:
            raise StoreError(
                f"{self._database.path} ends at commit {writer.id - 1} and lacks those before {number}; "
                "move the file away, and it is fetched again from the store"
            )
        for one in commit.changes:
            if one.file == INDEX:
                writer.put_index(one.text or "")
            else:
                change = MemoryChange(file=one.file, text=one.text, expected="", reason=one.reason)
                writer.put(change)
