"""The memories of one project: a versioned store in which nothing is ever lost.

Changes come in as a set, are checked (names, size, secrets, the version each was made from)
and happen at once, as a commit that says who and why. Two writers: the later one is told of
the conflict. The index is made anew with every commit. What people change in the files by
hand is taken in as their commit. What happened is read from `history`.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from holdfast.log.secrets import find_secrets
from holdfast.memory.checkout import Checkout, CheckoutStep, Drift
from holdfast.memory.commit_writer import CommitWriter
from holdfast.memory.commits import Commit, CommitAuthor, MemoryChange
from holdfast.memory.database import Database
from holdfast.memory.history import CommitHistory
from holdfast.memory.index import IndexLine, links_in, loaded, make_index
from holdfast.memory.memory import Memory, parse
from holdfast.memory.paths import INDEX, checked_place
from holdfast.memory.refusals import MemoryRefused, NoSuchMemory
from holdfast.memory.search import MemoryHit, search
from holdfast.settings import MemorySettings
from holdfast.settings.files import private_directory

DATABASE = ".history.db"
"""Hidden, so that it is no memory."""


def _go_on(_point: str) -> None:
    """Do nothing at a point where a test might end the process."""


def refuse_secret(what: str, text: str) -> None:
    """Refuse a text that would keep a secret for good: no history forgets."""
    for found in find_secrets(text):
        line = text.count("\n", 0, found.start) + 1
        raise MemoryRefused(
            f"{what} holds a secret in line {line} ({found.rule}); say where it is kept"
            " instead of what it is"
        )


class MemoryStore:
    """The memories of one project; used from one thread, by as many processes as like."""

    def __init__(
        self,
        root: Path,
        limits: MemorySettings | None = None,
        *,
        clock: Callable[[], float] = time.time,
        step: CheckoutStep = _go_on,
    ) -> None:
        self.root = root
        self.limits = limits or MemorySettings()
        self.clock = clock
        self._step = step
        private_directory(root)
        self.database = Database(root / DATABASE)
        self.history = CommitHistory(self.database)
        self._checkout = Checkout(root, self.database, step)
        self._checkout.recover()

    def close(self) -> None:
        """Let the store go."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def problems(self) -> dict[str, str]:
        """Files on disk that could not be taken in, and why."""
        return dict(self._checkout.problems)

    def versions(self) -> dict[str, str]:
        """Give every memory's file with its version."""
        return dict(self.database.all("SELECT file, sha FROM tree ORDER BY file"))

    def version(self, file: str) -> str:
        """Give the version of a file; '' is none."""
        rows = self.database.all("SELECT sha FROM current WHERE file = ?", file)
        return rows[0][0] if rows else ""

    def read(self, file: str) -> str:
        """Give the content of a memory's file, or of the index."""
        if not (version := self.version(file)):
            raise NoSuchMemory(f"there is no memory {file!r}; `holdfast memory show` lists them")
        return self.history.text(version)

    def memory(self, file: str) -> Memory:
        """Give one memory."""
        return parse(file, self.read(file))

    def memories(self) -> list[Memory]:
        """Give all memories, by file."""
        rows = self.database.all("SELECT file, text FROM tree JOIN texts USING (sha) ORDER BY file")
        return [parse(file, text) for file, text in rows]

    def listed(self, limit: int = -1) -> list[IndexLine]:
        """Give what is known of each memory without reading it, the newest first."""
        rows = self.database.all(
            "SELECT t.file, name, description, type, modified, coalesce(count, 0), superseded_by"
            " FROM tree t LEFT JOIN uses u ON u.file = t.file"
            " ORDER BY modified DESC, t.file LIMIT ?",
            limit,
        )
        names = ("file", "name", "description", "type", "modified", "uses", "superseded_by")
        return [IndexLine(**dict(zip(names, row, strict=True))) for row in rows]

    def index(self) -> str:
        """Give the index as a session takes it in."""
        return loaded(self.history.text(self.version(INDEX)), self.limits)

    def search(self, query: str, limit: int = 5) -> list[MemoryHit]:
        """Find memories by the words of a question, the best first."""
        return search(self.database, query, limit)

    def uses(self) -> dict[str, int]:
        """Say how often each memory was of use."""
        return dict(self.database.all("SELECT file, count FROM uses"))

    def count_uses(self, counts: Mapping[str, int]) -> None:
        """Remember that memories were of use; the most used keep their place in the index."""
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
        """Make changes at once, or none of them; None means there was nothing to change."""
        for change in changes:
            self.check(change)
        refuse_secret("the reason given for this", why)
        self.adopt()
        return self._commit(changes, by=by, why=why)

    def check(self, change: MemoryChange) -> None:
        """Refuse what may not be kept, before anything is touched."""
        checked_place(self.root, change.file)
        refuse_secret(f"the reason given for {change.file}", change.reason)
        if change.text is None:
            if not change.reason.strip():
                raise MemoryRefused(f"{change.file} is not removed without a reason; say why")
            return
        try:
            size = len(change.text.encode())
        except UnicodeEncodeError:
            raise MemoryRefused(f"{change.file} holds half a character; a memory is text") from None
        if "\0" in change.text:
            raise MemoryRefused(f"{change.file} holds a zero byte; a memory is text")
        if size > self.limits.file_bytes:
            raise MemoryRefused(
                f"{change.file} has {size:,} bytes, over memory.file_bytes"
                f" ({self.limits.file_bytes:,}); keep what matters"
            )
        refuse_secret(change.file, change.text)

    def undo(self, id: int = 0, *, by: CommitAuthor = "person", why: str = "") -> Commit:
        """Take a commit back, the last one by default; to undo an undo is to redo."""
        self.adopt()
        taken = self.history.commit(id or self.history.head)
        is_last = taken.id == self.history.head
        changes = [
            MemoryChange(
                file=one.file,
                text=self.history.text(one.before) if one.before else None,
                expected=one.after,
                reason=f"commit {taken.id} was undone",
            )
            for one in taken.changes
            if one.file != INDEX
        ]
        index = next((one.before for one in taken.changes if one.file == INDEX), None)
        done = self._commit(
            changes,
            by=by,
            why=why or f"undo of {taken.id}: {taken.why}",
            undoes=taken.id,
            index=self.history.text(index) if is_last and index is not None else None,
        )
        if done is None:
            raise NoSuchMemory(f"commit {taken.id} changed nothing that could be undone")
        return done

    def bring_back(self, file: str, *, by: CommitAuthor = "person") -> Commit:
        """Restore a memory that was removed, as it was."""
        found = [stone for stone in self.history.tombstones() if stone.file == file]
        if not found:
            raise NoSuchMemory(f"no memory {file!r} was removed; `holdfast memory log` tells more")
        text = self.history.text(found[0].version)
        change = MemoryChange(file=file, text=text, expected="")
        done = self.commit([change], by=by, why=f"brought back: {found[0].reason}")
        assert done is not None
        return done

    def adopt(self, *, by: CommitAuthor = "person") -> Commit | None:
        """Take in what was changed in the files by hand; what may not be kept is a problem told."""
        if not self._checkout.drift():
            return None
        with (
            self.database.writing()
        ):  # nobody else writes files meanwhile: what differs is a hand's
            drifted = self._checkout.drift()
            index = next((one.text or "" for one in drifted if one.file == INDEX), None)
            id = self._record(self._drifted(drifted), by, "changed by hand", index=index)
        done = self._published(id)
        if index is not None and not self._is_sound(index):
            self._commit([], by="dream", why="the index was made anew: it was not in its limits")
        return done

    def _drifted(self, drifted: Sequence[Drift]) -> list[MemoryChange]:
        """Make changes of what is on disk."""
        changes: list[MemoryChange] = []
        for one in drifted:
            if one.file == INDEX:
                continue
            version = self.version(one.file)
            change = MemoryChange(
                file=one.file, text=one.text, expected=version, reason="removed by hand"
            )
            try:
                self.check(change)
            except MemoryRefused as refusal:
                self._checkout.problems[one.file] = str(refusal)
            else:
                changes.append(change)
        return changes

    def _commit(
        self,
        changes: Sequence[MemoryChange],
        *,
        by: CommitAuthor,
        why: str,
        undoes: int = 0,
        index: str | None = None,
    ) -> Commit | None:
        with self.database.writing():
            self._step("begun")
            id = self._record(changes, by, why, undoes=undoes, index=index)
            self._step("recorded")
        return self._published(id)

    def _record(
        self,
        changes: Sequence[MemoryChange],
        by: CommitAuthor,
        why: str,
        *,
        undoes: int = 0,
        index: str | None = None,
    ) -> int:
        """Write a commit inside a transaction; 0 means there was nothing to write."""
        recording = CommitWriter(self.database, self.clock())
        due = recording.due(changes)
        if due or self._is_new_index(index):
            recording.begin(by, why, undoes)
            for change in due:
                recording.put(change)
            recording.put_index(self._made_index() if index is None else index)
        return recording.id

    def _published(self, id: int) -> Commit | None:
        """Let the files follow a commit."""
        self._step("committed")
        self._checkout.bring_up()
        return self.history.commit(id) if id else None

    def _made_index(self) -> str:
        return make_index(self.listed(), self.limits)

    def _is_new_index(self, index: str | None) -> bool:
        current = self.history.text(self.version(INDEX))
        return current != (self._made_index() if index is None else index)

    def _is_sound(self, index: str) -> bool:
        """Tell whether an index is in its limits and leads nowhere but to memories."""
        is_short = all(len(line) < self.limits.index_line_chars for line in index.splitlines())
        files = self.versions()
        return (
            is_short
            and loaded(index, self.limits) == index
            and all(file in files for file in links_in(index))
        )
