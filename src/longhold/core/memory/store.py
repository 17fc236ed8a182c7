"""The memories of one project: a versioned store that keeps every version.

The store checks the names, size, secrets and base version of changes. It then makes one commit with
author and reason. If two writers change the same memory, the later one gets a conflict. Manual
edits of the files become commits by the user.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

from longhold.core.log.shared import MemoryBackend
from longhold.core.memory.checkout import Checkout, CheckoutStep, no_step
from longhold.core.memory.commits import (
    Commit,
    CommitAuthor,
    CommitHistory,
    CommitWriter,
    Database,
    MemoryChange,
    Replica,
)
from longhold.core.memory.memory import (
    BUSY_SECONDS,
    Memory,
    MemoryBusy,
    MemoryRefused,
    NoSuchMemory,
    make_index,
    parse,
)
from longhold.core.memory.paths import INDEX, check_new_name, check_place
from longhold.core.memory.search import MemoryHit, MemorySearch
from longhold.core.messages.secrets import find_secrets
from longhold.core.settings import MemorySettings
from longhold.core.settings.private_files import private_directory
from longhold.errors import StoreError

DATABASE = ".history.db"
"""The name is hidden, so that the file is not mistaken for a memory."""
SLACK = 1.0
"""Seconds by which the clock of a file system may differ from the process's clock."""
FILE_BYTES = 65_536
"""Limit for one memory, sixteen times the part that recall shows."""
LISTED_MEMORIES = 200
"""Number of newest descriptions from which a model chooses."""

SHARED = "shared with the team"
"""The reason for removing a memory that moved to the repository."""
SEARCHED = "searched:"


class RemovedByUser(NamedTuple):
    file: str
    text: str
    at: float


def refuse_secret(what: str, text: str) -> None:
    """Raise if a text has a secret, because the history would keep it forever."""
    for found in find_secrets(text):
        line = text.count("\n", 0, found.start) + 1
        raise MemoryRefused(
            f"{what} contains a secret in line {line} ({found.rule}); write where it is kept"
            " instead"
        )


class MemoryStore:
    """The memories of one project. Many processes may use it, each from one thread."""

    def __init__(
        self,
        root: Path,
        limits: MemorySettings | None = None,
        *,
        history: Path | None = None,
        commits: MemoryBackend | None = None,
        wait_seconds: float = BUSY_SECONDS,
        clock: Callable[[], float] = time.time,
        step: CheckoutStep = no_step,
    ) -> None:
        """Open a store. `history` is its database, by default next to the files.

        With `commits`, the store is one of several nodes that share them. While another process
        writes, a call blocks up to `wait_seconds` and then raises `MemoryBusy`. On an event loop,
        use `retry_while_busy` instead.
        """
        self.root = root
        self.limits = limits or MemorySettings()
        self.clock = clock
        self._step = step
        private_directory(root)
        self.database = Database(history or root / DATABASE, wait_seconds=wait_seconds)
        self.history = CommitHistory(self.database)
        self._search = MemorySearch(self.database)
        self._checkout = Checkout(root, self.database, self.index, step)
        self._replica = Replica(self.database, commits)
        self._checkout.recover()
        self.refresh()

    def refresh(self) -> None:
        # While the shared commits cannot be reached, this node works with its own copy.
        with suppress(StoreError):
            if self._replica.pull():
                self._checkout.bring_up()

    def close(self) -> None:
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def problems(self) -> dict[str, str]:
        return dict(self._checkout.problems)

    def versions(self) -> dict[str, str]:
        return dict(self.database.all("SELECT file, sha FROM tree ORDER BY file"))

    def version(self, file: str) -> str:
        return self.history.version(file)

    def read(self, file: str) -> str:
        if file == INDEX:
            return self.index()
        if not (version := self.version(file)):
            raise NoSuchMemory(f"there is no memory {file!r}; `longhold memory show` lists them")
        return self.history.text(version)

    def memory(self, file: str) -> Memory:
        return parse(file, self.read(file))

    def memories(self) -> list[Memory]:
        rows = self.database.all("SELECT file, text FROM tree JOIN texts USING (sha) ORDER BY file")
        return [parse(file, text) for file, text in rows]

    def list_lines(self, limit: int = -1) -> list[Memory]:
        """Return each memory as the index shows it, newest first, without reading the texts."""
        rows = self.database.all(
            "SELECT t.file, name, description, type, modified, coalesce(count, 0), superseded_by"
            " FROM tree t LEFT JOIN uses u ON u.file = t.file"
            " ORDER BY modified DESC, t.file LIMIT ?",
            limit,
        )
        names = ("file", "name", "description", "type", "modified", "uses", "superseded_by")
        return [Memory(**dict(zip(names, row, strict=True))) for row in rows]

    def index(self) -> str:
        return make_index(self.list_lines())

    def search(self, query: str, limit: int = 5) -> list[MemoryHit]:
        return self._search.find(query, limit)

    def find(self, query: str, limit: int) -> dict[str, str]:
        return {hit.file: hit.description for hit in self.search(query, limit)}

    def count_uses(self, counts: Mapping[str, int]) -> None:
        """Add to the use counts. The most used memories come first in the index."""
        # Losing a count does no harm, so a turn does not wait for the disk.
        with self.database.writing(is_lasting=False):
            for file, count in counts.items():
                self.database.all(
                    "INSERT INTO uses VALUES (?, ?, ?) ON CONFLICT (file)"
                    " DO UPDATE SET count = count + excluded.count, last = excluded.last",
                    *(file, count, self.clock()),
                )

    def commit(
        self, changes: Sequence[MemoryChange], *, by: CommitAuthor, why: str
    ) -> Commit | None:
        """Make all changes or none. Return None if there was nothing to change."""
        for change in changes:
            self.check(change)
        refuse_secret("the reason for this", why)
        self.adopt()
        # Manual edits were adopted first. A change of an older version is therefore a conflict and
        # does not overwrite them.
        return self._commit(lambda: changes, by, why)

    def check(self, change: MemoryChange) -> None:
        """Raise if a change may not be stored."""
        check_place(self.root, change.file)
        if not change.expected:
            check_new_name(change.file)
        refuse_secret(f"the reason for {change.file}", change.reason)
        if change.text is None:
            if not change.reason.strip():
                raise MemoryRefused(f"{change.file} cannot be removed without a reason")
            return
        try:
            size = len(change.text.encode())
        except UnicodeEncodeError:
            raise MemoryRefused(
                f"{change.file} contains an unpaired surrogate; a memory is text"
            ) from None
        if "\0" in change.text:
            raise MemoryRefused(f"{change.file} contains a zero byte; a memory is text")
        if size > FILE_BYTES:
            raise MemoryRefused(
                f"{change.file} has {size:,} bytes; shorten it to at most {FILE_BYTES:,}"
            )
        refuse_secret(change.file, change.text)

    def undo(self, id: int = 0) -> Commit:
        """Revert a commit, by default the last one. Undoing an undo applies the commit again."""
        self.adopt()
        reverted = self.history.commit(id or self.history.head)
        changes = [
            MemoryChange(
                file=one.file,
                text=self.history.text(one.before) if one.before else None,
                # A file that changed since then is a conflict.
                expected=one.after,
                reason=f"commit {reverted.id} was undone",
            )
            for one in reverted.changes
            if one.file != INDEX
        ]
        why = f"undo of {reverted.id}: {reverted.why}"
        done = self._commit(lambda: changes, "person", why, undoes=reverted.id)
        if done is None:
            raise NoSuchMemory(f"commit {reverted.id} changed nothing that could be undone")
        return done

    def bring_back(self, file: str) -> Commit:
        found = [stone for stone in self.history.tombstones() if stone.file == file]
        if not found:
            raise NoSuchMemory(f"no memory {file!r} was removed; see `longhold memory log`")
        text = self.history.text(found[0].version)
        change = MemoryChange(file=file, text=text)
        self.check(change)
        self.adopt()
        why = f"brought back: {found[0].reason}"
        done = self._commit(lambda: [change], "person", why, undoes=found[0].commit)
        assert done is not None
        return done

    def list_removed(self) -> list[RemovedByUser]:
        """Return the memories that the user removed, undid or declined, newest first."""
        removed = self.database.all(
            'SELECT c.file, t.text, k.at FROM changes c JOIN commits k ON k.id = c."commit"'
            " JOIN texts t ON t.sha = c.before WHERE c.after IS NULL AND k.by = 'person'"
            " AND c.file != ? AND c.before NOT IN (SELECT sha FROM tree) AND c.reason NOT LIKE ?"
            ' AND NOT EXISTS (SELECT 1 FROM changes d JOIN commits l ON l.id = d."commit" WHERE'
            " d.file = c.file AND d.after IS NOT NULL AND l.id > k.id AND l.by != 'dream')"
            " UNION SELECT file, text, at FROM inbox WHERE state = 'declined'"
            " ORDER BY 3 DESC",
            *(INDEX, f"{SHARED}%"),
        )
        return [RemovedByUser(*row) for row in removed]

    def mark_searched(self, session: str, cursor: int) -> None:
        with self.database.writing():
            self.database.all(
                "INSERT OR REPLACE INTO state VALUES (?, ?)", f"{SEARCHED}{session}", str(cursor)
            )

    def adopt(self, by: CommitAuthor = "person", why: str = "changed by hand") -> Commit | None:
        """Commit manual edits of the files. Report edits that may not be stored as problems."""
        if not self._checkout.drift():
            return None
        # This repeats the search inside the transaction, when no other process writes files.
        return self._commit(lambda: self._list_drifted(self._checkout.drift()), by, why)

    def take_edits(self, written: Mapping[str, float]) -> list[MemoryChange]:
        """Remove edits of these files from disk, and return them as changes to be made.

        `written` has the time at which the caller wrote each file. `adopt` handles later edits, and
        reports texts that may not be stored.
        """
        with self.database.writing():
            found = {
                file: text
                for file, text in self._checkout.drift().items()
                if text is not None
                and self._checkout.changed_at(file) <= written.get(file, -SLACK) + SLACK
            }
            changes = self._list_drifted(found)
            for change in changes:
                self._checkout.put(change.file, change.expected)
        return changes

    def _list_drifted(self, drifted: Mapping[str, str | None]) -> list[MemoryChange]:
        changes: list[MemoryChange] = []
        names = CommitWriter(self.database, self.clock())
        for file, text in drifted.items():
            version = self.version(file)
            change = MemoryChange(file=file, text=text, expected=version, reason="removed by hand")
            try:
                self.check(change)
                if not version:
                    names.check_new(file)
            except MemoryRefused as refusal:
                self._checkout.problems[file] = str(refusal)
            else:
                changes.append(change)
        return changes

    def _commit(
        self,
        find_changes: Callable[[], Sequence[MemoryChange]],
        by: CommitAuthor,
        why: str,
        *,
        undoes: int = 0,
    ) -> Commit | None:
        def record() -> int:
            self._step("begun")
            writer = CommitWriter(self.database, self.clock())
            if due := writer.due(find_changes()):
                writer.begin(by, why, undoes)
                for change in due:
                    writer.put(change)
            self._step("recorded")
            return writer.id

        id = self._replica.record_commit(record)
        self._step("committed")
        with suppress(MemoryBusy):  # the next commit or opening writes the committed files
            self._checkout.bring_up()
        return self.history.commit(id) if id else None


def erase_memories(root: Path, names: Sequence[str], limits: MemorySettings) -> None:
    """Erase memories permanently, along with the history of all memories in `root`."""
    with MemoryStore(root, limits) as store:
        store.adopt()
        known = [name for name in names if name in store.versions()]
        changes = [
            MemoryChange(file=one, text=None, expected=store.version(one), reason="erased")
            for one in known
        ]
        if changes:
            store.commit(changes, by="person", why="erased")
    for path in root.glob(f"{DATABASE}*"):
        path.unlink()
    with MemoryStore(root, limits) as store:
        store.adopt()
