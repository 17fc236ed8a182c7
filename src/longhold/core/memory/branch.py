"""A branch of the store: changes that are merged as one commit, or not at all.

Reads return the store as it was when the branch began, plus the branch's changes. Nothing is on
disk until the merge, so a killed process leaves no trace. If another writer changed the same memory
meanwhile, the merge raises a conflict. Rules prevent models from restoring removed memories and
from removing much of a store.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from longhold.core.log.entries import Said
from longhold.core.memory.commits import Commit, CommitAuthor, MemoryChange, diff, sha
from longhold.core.memory.memory import (
    Memory,
    MemoryRefused,
    NoSuchMemory,
    make_index,
    parse,
)
from longhold.core.memory.memory_tool import NO_REASON
from longhold.core.memory.paths import INDEX
from longhold.core.memory.store import MemoryStore, RemovedByUser
from longhold.core.memory.tidy import dangling_links, most_removed
from longhold.core.messages import text_of
from longhold.core.messages.words import words_of
from longhold.core.settings import DreamSettings

UNDONE = "the user undid a change of it"
REMOVED = "the user removed this memory; leave it out unless they say it again"
KEPT_SHARE = 0.5
"""A rewrite that keeps fewer of a memory's words counts as a removal."""
SAID_SHARE = 0.5
"""Share of a removed memory's words that the user must repeat to restore it."""
LISTED_REMOVED = 40


class Branch:
    def __init__(self, store: MemoryStore, rules: "MemoryRules | None" = None) -> None:
        """Begin a branch. A change that breaks a rule is refused immediately."""
        self.store = store
        self._rules = rules
        store.adopt()
        self.base = store.versions()
        self._changes: dict[str, MemoryChange] = {}
        self.refusals = 0
        """Number of changes that the store or the rules refused, with a reason for the model."""

    def versions(self) -> dict[str, str]:
        found = dict(self.base)
        for file, change in self._changes.items():
            if change.text is None:
                found.pop(file, None)
            else:
                found[file] = sha(change.text)
        return dict(sorted(found.items()))

    def read(self, file: str) -> str:
        """Return a file as this branch has it. The index is generated on request."""
        if file == INDEX:
            return make_index(self.memories())
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
        """Add all changes or none. The store checks them first, and then the rules."""
        before = dict(self._changes)
        self.refusals += 1  # counted until the change is accepted
        self._add(changes, why)
        files = [change.file for change in changes]
        wrong = self._rules.violations(self) if self._rules else {}
        if refused := [f"{file}: {wrong[file]}" for file in files if file in wrong]:
            self._changes = before
            raise MemoryRefused(f"nothing was changed: {'; '.join(refused)}")
        self.refusals -= 1
        return ""

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
        self._add([MemoryChange(file=memory.file, text=memory.text)])

    def remove(self, file: str, reason: str) -> None:
        """Remove a memory, bypassing the branch's rules."""
        self._add([MemoryChange(file=file, text=None, reason=reason)])

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

    def merge(self, *, by: CommitAuthor, why: str) -> Commit | None:
        return self.store.commit(self.changes(), by=by, why=why)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRules:
    settings: DreamSettings
    repository: Path
    said: Sequence[Said] = ()
    """The user's new messages. They may repeat a removed memory."""

    def violations(self, branch: Branch) -> dict[str, str]:
        changes, vetoed = branch.changes(), branch.store.history.list_vetoed()
        removed = branch.store.list_removed()
        found = {one.file: UNDONE for one in changes if one.file in vetoed}
        for one in changes:
            if one.text is not None and self._is_unwanted(parse(one.file, one.text), removed):
                found[one.file] = REMOVED
        count, known = 0, {*branch.base, *branch.versions()}
        most = most_removed(len(known), self.settings)
        for one in sorted(changes, key=lambda one: branch.place(one.file)):
            if one.file in found or not (one.text is None or _is_gutted(branch, one)):
                continue
            count += 1
            if one.text is None and one.reason in ("", NO_REASON):
                found[one.file] = "it is removed without a reason; say `why`"
            elif count > most:
                found[one.file] = (
                    f"only {most} of {len(known)} memories may be removed at a time, or lose"
                    " most of their words (dream.removed_share)"
                )
        return found | _alike_names(branch)

    def _is_unwanted(self, memory: Memory, removed: Sequence[RemovedByUser]) -> bool:
        """Return whether a memory contains only content that the user removed and did not repeat."""
        mine = content_words(memory)
        return any(
            mine <= content_words(parse(one.file, one.text)) and not self._is_said(mine, one.at)
            for one in removed
        )

    def _is_said(self, words: frozenset[str], since: float) -> bool:
        said = {w for one in self.said if one.at > since for w in words_of(text_of(one.content))}
        return bool(words) and len(words & said) >= SAID_SHARE * len(words)


def content_words(memory: Memory) -> frozenset[str]:
    return frozenset(words_of(f"{memory.description}\n{memory.body}"))


def list_removed_lines(store: MemoryStore) -> str:
    """List the content that the user removed, for the prompts of models that write memories."""
    removed = store.list_removed()[:LISTED_REMOVED]
    if not removed:
        return ""
    lines = [f"- {one.file}: {parse(one.file, one.text).description}" for one in removed]
    head = "The user removed these. Do not write them again, under any name, unless the user says so anew:"
    return "\n".join(["", head, "", *lines, ""])


def _is_gutted(branch: Branch, change: MemoryChange) -> bool:
    """Return whether a rewrite loses most of a memory and no other memory has the content."""
    if change.text is None or change.file not in branch.base:
        return False
    before = parse(change.file, branch.store.history.text(branch.base[change.file]))
    words = content_words(before)
    kept = words & content_words(parse(change.file, change.text))
    if len(kept) >= KEPT_SHARE * len(words):
        return False
    others = (branch.memory(one.file) for one in branch.changes() if one.text is not None)
    elsewhere = {w for other in others if other.file != change.file for w in content_words(other)}
    return len(words & (kept | elsewhere)) < KEPT_SHARE * len(words)


def list_dangling(branch: Branch, file: str, known: frozenset[str], repository: Path) -> list[str]:
    memory = branch.memory(file)
    wrong = [
        f"{file} links to {link}, which does not exist"
        for link in dangling_links(memory, known, repository)
    ]
    if memory.superseded_by and memory.superseded_by not in known:
        wrong.append(f"{file} is superseded by {memory.superseded_by}, which does not exist")
    return wrong


def _alike_names(branch: Branch) -> dict[str, str]:
    names: dict[str, str] = {}
    found: dict[str, str] = {}
    for file in sorted(branch.versions(), key=lambda file: (file not in branch.base, file)):
        other = names.setdefault(file.casefold(), file)
        if other != file and file not in branch.base:
            found[file] = f"it differs from {other} only in case"
    return found
