"""A branch of the store: changes that are merged as one commit, or not at all.

Reads return the store as it was when the branch began, plus the branch's changes. Nothing is on
disk until the merge, so a killed process leaves no trace. If a memory was changed elsewhere
meanwhile, the merge is a conflict.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from longhold.core.memory.commits import Commit, CommitAuthor, MemoryChange, diff, sha
from longhold.core.memory.index import IndexLine, make_index
from longhold.core.memory.memory import Memory, MemoryRefused, NoSuchMemory, parse
from longhold.core.memory.paths import INDEX
from longhold.core.memory.store import MemoryStore
from longhold.core.messages.words import words_of


class Pages(Protocol):
    """The store or a branch, as the memory tool uses it."""

    def versions(self) -> dict[str, str]: ...
    def read(self, file: str) -> str: ...
    def search(self, query: str, limit: int) -> Mapping[str, str]:
        """Return the matching files, best first, with descriptions."""
        ...

    def change(self, changes: Sequence[MemoryChange], *, why: str) -> str:
        """Make changes; return a remark for the model, or ''."""
        ...


class ChangeRules(Protocol):
    def violations(self, branch: "Branch") -> Mapping[str, str]:
        """Return the files whose changes are forbidden, each with the reason."""
        ...

    def remarks(self, branch: "Branch", files: Iterable[str]) -> Sequence[str]:
        """Return problems with these files that do not forbid the changes."""
        ...


class Branch:
    def __init__(self, store: MemoryStore, rules: ChangeRules | None = None) -> None:
        """Begin a branch. A change that breaks a rule is refused immediately."""
        self.store = store
        self._rules = rules
        store.adopt()
        self.base = store.versions()
        self._changes: dict[str, MemoryChange] = {}
        self.refusals = 0
        """Changes that the store or the rules refused. The model got the reason."""

    def versions(self) -> dict[str, str]:
        found = dict(self.base)
        for file, change in self._changes.items():
            if change.text is None:
                found.pop(file, None)
            else:
                found[file] = sha(change.text)
        return dict(sorted(found.items()))

    def read(self, file: str) -> str:
        """Return a file as this branch has it. The index is generated."""
        if file == INDEX:
            return make_index(map(IndexLine.of, self.memories()))
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

    def search(self, query: str, limit: int) -> Mapping[str, str]:
        known, words = self.versions(), words_of(query)
        found = [file for file in self.store.find(query, limit) if file in known]
        changed = [one.file for one in self.changes() if one.text is not None]
        found += [file for file in changed if any(w in self.read(file).lower() for w in words)]
        return {file: self.memory(file).description for file in dict.fromkeys(found)}

    def change(self, changes: Sequence[MemoryChange], *, why: str = "") -> str:
        """Add changes, all or none, checked by the store and then by the rules."""
        before = dict(self._changes)
        self.refusals += 1  # until it is accepted
        self._add(changes, why)
        if self._rules is None:
            self.refusals -= 1
            return ""
        wrong = self._rules.violations(self)
        files = [change.file for change in changes]
        if refused := [f"{file}: {wrong[file]}" for file in files if file in wrong]:
            self._changes = before
            raise MemoryRefused(f"nothing was changed: {'; '.join(refused)}")
        self.refusals -= 1
        remarks = self._rules.remarks(self, files)
        return f"This is changed, but fix it: {'; '.join(remarks)}." if remarks else ""

    def _add(self, changes: Sequence[MemoryChange], why: str = "") -> None:
        for change in changes:
            self.store.check(change)
        for change in changes:
            reason = change.reason or why
            expected = self.base.get(change.file, "")
            self._changes[change.file] = replace(change, expected=expected, reason=reason)

    def catch_up(self) -> None:
        own = {file: version for file, version in self.base.items() if file in self._changes}
        now = self.store.versions().items()
        self.base = {file: version for file, version in now if file not in self._changes} | own

    def take_back(self, files: Iterable[str]) -> None:
        for file in files:
            self._changes.pop(file, None)

    def place(self, file: str) -> int:
        return list(self._changes).index(file)

    def put(self, memory: Memory) -> None:
        self._add([MemoryChange(file=memory.file, text=memory.text, expected="")])

    def remove(self, file: str, reason: str) -> None:
        """Remove a memory, bypassing the branch's rules."""
        self._add([MemoryChange(file=file, text=None, expected="", reason=reason)])

    def changes(self) -> list[MemoryChange]:
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
        wrong = check(self) if check else ()
        if wrong:
            raise MemoryRefused(f"nothing was changed: {'; '.join(wrong)}")
        return self.store.commit(self.changes(), by=by, why=why)
