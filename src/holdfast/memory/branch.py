"""A branch of the store: changes that are tried out and happen all at once, or not at all.

Reads see the store as it was when the branch began, with the branch's own changes on top.
Nothing is on disk until it is merged; a killed process leaves no trace of it. Merging is one
commit, checked as a whole first; a memory that somebody else changed meanwhile is a conflict,
and then nothing is merged. The dream works on one of these.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from holdfast.memory.commits import Commit, CommitAuthor, MemoryChange, diff
from holdfast.memory.files import sha
from holdfast.memory.index import listed, make_index
from holdfast.memory.memory import Memory, parse
from holdfast.memory.paths import INDEX
from holdfast.memory.refusals import MemoryRefused, NoSuchMemory
from holdfast.memory.store import MemoryStore


class Pages(Protocol):
    """What reads and writes memories: the store at once, a branch later."""

    def versions(self) -> dict[str, str]: ...
    def version(self, file: str) -> str: ...
    def read(self, file: str) -> str: ...
    def change(self, changes: Sequence[MemoryChange], *, why: str) -> str:
        """Make changes; a word goes out if they have not happened yet."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Direct:
    """Pages whose changes are commits, made at once."""

    store: MemoryStore
    by: CommitAuthor

    def versions(self) -> dict[str, str]:
        """Give every memory's file with its version."""
        return self.store.versions()

    def version(self, file: str) -> str:
        """Give the version of a file; '' is none."""
        return self.store.version(file)

    def read(self, file: str) -> str:
        """Give the content of a file."""
        return self.store.read(file)

    def change(self, changes: Sequence[MemoryChange], *, why: str) -> str:
        """Commit."""
        self.store.commit(changes, by=self.by, why=why)
        return ""


class Branch:
    """Changes over a store that have not happened yet."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        store.adopt()
        self.base = store.versions()
        self._changes: dict[str, MemoryChange] = {}

    def versions(self) -> dict[str, str]:
        """Give every memory's file with its version, as this branch has it."""
        found = dict(self.base)
        for file, change in self._changes.items():
            if change.text is None:
                found.pop(file, None)
            else:
                found[file] = sha(change.text)
        return dict(sorted(found.items()))

    def version(self, file: str) -> str:
        """Give the version of a file; '' is none."""
        return self.versions().get(file, "")

    def read(self, file: str) -> str:
        """Give the content of a file as this branch has it; the index as it would be."""
        if file == INDEX:
            return make_index((listed(memory) for memory in self.memories()), self.store.limits)
        change = self._changes.get(file)
        if change is not None and change.text is not None:
            return change.text
        if change is not None or file not in self.base:
            raise NoSuchMemory(f"there is no memory {file!r}")
        return self.store.history.text(self.base[file])

    def memory(self, file: str) -> Memory:
        """Give one memory."""
        return parse(file, self.read(file))

    def memories(self) -> list[Memory]:
        """Give all memories, by file."""
        return [self.memory(file) for file in self.versions()]

    def change(self, changes: Sequence[MemoryChange], *, why: str = "") -> str:
        """Add changes; each is checked by itself as the store would."""
        for change in changes:
            self.store.check(change)
        for change in changes:
            reason = change.reason or why
            expected = self.base.get(change.file, "")
            self._changes[change.file] = replace(change, expected=expected, reason=reason)
        return ""

    def put(self, memory: Memory) -> None:
        """Write one memory."""
        self.change([MemoryChange(file=memory.file, text=memory.text, expected="")])

    def remove(self, file: str, reason: str) -> None:
        """Remove one memory, saying why."""
        self.change([MemoryChange(file=file, text=None, expected="", reason=reason)])

    def changes(self) -> list[MemoryChange]:
        """Give what would happen, by file: what ends as it began is left out."""
        return [
            change
            for file, change in sorted(self._changes.items())
            if ("" if change.text is None else sha(change.text)) != self.base.get(file, "")
        ]

    def diff(self) -> str:
        """Show what would happen."""
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
        """Make it happen at once; what the check finds wrong throws it all away."""
        wrong = check(self) if check else ()
        if wrong:
            raise MemoryRefused(f"nothing was changed: {'; '.join(wrong)}")
        return self.store.commit(self.changes(), by=by, why=why)
