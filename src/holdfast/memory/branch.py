"""A branch of the store: changes that are made all at once, or not at all.

Reads see the store as it was when the branch began, with the branch's own changes on top. Nothing
is on disk until it is merged, so a killed process leaves no trace. Merging is one commit, checked
as a whole first; if a memory was changed elsewhere meanwhile, that is a conflict and nothing is
merged. Extractions and dreams work on branches.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from holdfast.memory.commits import Commit, CommitAuthor, MemoryChange, diff, sha
from holdfast.memory.errors import MemoryRefused, NoSuchMemory
from holdfast.memory.index import IndexLine, make_index
from holdfast.memory.memory import Memory, parse
from holdfast.memory.paths import INDEX
from holdfast.memory.store import MemoryStore


class Pages(Protocol):
    """What the memory tool reads and writes: the store directly, or a branch."""

    def versions(self) -> dict[str, str]: ...
    def read(self, file: str) -> str: ...
    def change(self, changes: Sequence[MemoryChange], *, why: str) -> str:
        """Make changes; return a remark for the model if they are not in effect yet."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Direct:
    """Pages on which every change is a commit of its own."""

    store: MemoryStore
    by: CommitAuthor

    def versions(self) -> dict[str, str]:
        return self.store.versions()

    def read(self, file: str) -> str:
        return self.store.read(file)

    def change(self, changes: Sequence[MemoryChange], *, why: str) -> str:
        self.store.commit(changes, by=self.by, why=why)
        return ""


class Branch:
    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        store.adopt()
        self.base = store.versions()
        self._changes: dict[str, MemoryChange] = {}

    def versions(self) -> dict[str, str]:
        found = dict(self.base)
        for file, change in self._changes.items():
            if change.text is None:
                found.pop(file, None)
            else:
                found[file] = sha(change.text)
        return dict(sorted(found.items()))

    def read(self, file: str) -> str:
        """Return a file as this branch has it; the index as it would be."""
        if file == INDEX:
            return make_index(map(IndexLine.of, self.memories()), self.store.limits)
        change = self._changes.get(file)
        if change is not None and change.text is not None:
            return change.text
        if change is not None or file not in self.base:
            raise NoSuchMemory(f"there is no memory {file!r}")
        return self.store.history.text(self.base[file])

    def memory(self, file: str) -> Memory:
        return parse(file, self.read(file))

    def memories(self) -> list[Memory]:
        return [self.memory(file) for file in self.versions()]

    def change(self, changes: Sequence[MemoryChange], *, why: str = "") -> str:
        """Add changes; each is checked as the store would check it."""
        for change in changes:
            self.store.check(change)
        for change in changes:
            reason = change.reason or why
            expected = self.base.get(change.file, "")
            self._changes[change.file] = replace(change, expected=expected, reason=reason)
        return ""

    def put(self, memory: Memory) -> None:
        self.change([MemoryChange(file=memory.file, text=memory.text, expected="")])

    def remove(self, file: str, reason: str) -> None:
        self.change([MemoryChange(file=file, text=None, expected="", reason=reason)])

    def changes(self) -> list[MemoryChange]:
        """Return what a merge would change; files that end as they began are left out."""
        return [
            change
            for file, change in sorted(self._changes.items())
            if ("" if change.text is None else sha(change.text)) != self.base.get(file, "")
        ]

    def diff(self) -> str:
        return "".join(
            diff(one.file, self.store.history.text(one.expected), one.text or "")
            for one in self.changes()
        )

    def merge(
        self,
        *,
        by: CommitAuthor,
        why: str,
        check: Callable[["Branch"], Sequence[str]] | None = None,
    ) -> Commit | None:
        """Commit all changes at once; raise if the check returns reasons not to."""
        wrong = check(self) if check else ()
        if wrong:
            raise MemoryRefused(f"nothing was changed: {'; '.join(wrong)}")
        return self.store.commit(self.changes(), by=by, why=why)
