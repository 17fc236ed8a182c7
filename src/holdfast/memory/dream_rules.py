"""What a dream may do to memories: told to the model as it works, enforced when the dream ends.

A change that breaks a rule is refused while the model can still do something else. What breaks one
only later, because the user or another session changed the same memory meanwhile, is left out with
the reason; the rest of the dream is kept. Evidence is never lost: a memory that is rewritten keeps
its own, one that replaces others takes over theirs, and a tombstone keeps that of what was removed.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from holdfast.memory.branch import Branch
from holdfast.memory.index import IndexLine, loaded, make_index
from holdfast.memory.memory import parse
from holdfast.memory.tidy import dangling_links, most_removed
from holdfast.memory.tool import NO_REASON
from holdfast.settings import DreamSettings

UNDONE = "the user undid what a dream did to it"
_NAMED = re.compile(r"(?<![\w./-])[\w./-]+\.md\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamRules:
    settings: DreamSettings
    repository: Path

    def violations(self, branch: Branch) -> dict[str, str]:
        """Return the changed files that may not be changed so, each with the reason."""
        vetoed = branch.store.history.vetoed("dream")
        found = {one.file: UNDONE for one in branch.changes() if one.file in vetoed}
        removed = [one for one in branch.changes() if one.text is None and one.file not in found]
        most = most_removed(len(branch.base), self.settings)
        for count, one in enumerate(sorted(removed, key=lambda one: branch.place(one.file)), 1):
            if one.reason in ("", NO_REASON):
                found[one.file] = "it is removed without a reason; say `why`"
            elif count > most:
                found[one.file] = (
                    f"one dream may remove {most} of {len(branch.base)} memories"
                    " (dream.removed_share)"
                )
        return found | _alike_names(branch)

    def remarks(self, branch: Branch, files: Iterable[str]) -> list[str]:
        """Say what is amiss with these files and would be mended when the dream ends."""
        known = frozenset(branch.versions())
        return [
            remark
            for file in files
            if file in known
            for remark in _dangling(branch, file, known, self.repository)
        ]


def leave_out(branch: Branch, rules: DreamRules, *, is_unfinished: bool) -> dict[str, str]:
    """Take back what may not be merged; return those files with the reasons.

    A dream that was cut short removes nothing: what was to replace it may not be written yet.
    """
    found: dict[str, str] = {}
    while wrong := rules.violations(branch) | _overtaken(branch):
        found |= wrong
        branch.take_back(wrong)
    if is_unfinished:
        cut = [one.file for one in branch.changes() if one.text is None]
        found |= dict.fromkeys(cut, "the dream ran out of turns before it was done (dream.turns)")
        branch.take_back(cut)
    branch.catch_up()
    return found


def keep_evidence(branch: Branch) -> dict[str, str]:
    """Give rewritten memories their evidence back, and replacements that of what they replace.

    Return the removed files, each with the memory that its reason names as the one that stays.
    """
    known = branch.versions()
    replaced: dict[str, str] = {}
    for change in branch.changes():
        if change.file not in branch.base:
            continue
        kept = change.file if change.text is not None else _named_in(change.reason, known)
        if change.text is None:
            replaced[change.file] = kept
        if kept:
            before = parse(change.file, branch.store.history.text(branch.base[change.file]))
            memory = branch.memory(kept)
            evidence = tuple(dict.fromkeys((*memory.evidence, *before.evidence)))
            if evidence != memory.evidence:
                branch.put(replace(memory, evidence=evidence))
    return replaced


def unsound(branch: Branch, repository: Path) -> list[str]:
    """List what is wrong with the memories as a branch would leave them."""
    memories = branch.memories()
    files = frozenset(memory.file for memory in memories)
    limits = branch.store.limits
    index = make_index(map(IndexLine.of, memories), limits)
    wrong = [] if loaded(index, limits) == index else ["the index is over its limits"]
    for memory in memories:
        wrong += _dangling(branch, memory.file, files, repository)
        before = branch.store.history.text(branch.base.get(memory.file, ""))
        lost = {*parse(memory.file, before).evidence} - {*memory.evidence}
        if lost:
            wrong.append(f"{memory.file} loses evidence: {', '.join(sorted(lost))}")
    return wrong


def _dangling(branch: Branch, file: str, known: frozenset[str], repository: Path) -> list[str]:
    memory = branch.memory(file)
    wrong = [
        f"{file} links to {link}, which does not exist"
        for link in dangling_links(memory, known, repository)
    ]
    if memory.superseded_by and memory.superseded_by not in known:
        wrong.append(f"{file} is superseded by {memory.superseded_by}, which does not exist")
    return wrong


def _alike_names(branch: Branch) -> dict[str, str]:
    """Find new files whose names differ from others only in case, which no commit may add."""
    names: dict[str, str] = {}
    found: dict[str, str] = {}
    for file in sorted(branch.versions(), key=lambda file: (file not in branch.base, file)):
        other = names.setdefault(file.casefold(), file)
        if other != file and file not in branch.base:
            found[file] = f"it differs from {other} only in case"
    return found


def _overtaken(branch: Branch) -> dict[str, str]:
    """Find changes to memories that somebody else changed since the branch began."""
    branch.store.adopt()
    return {
        one.file: "it was changed elsewhere meanwhile"
        for one in branch.changes()
        if branch.store.version(one.file) != one.expected
    }


def _named_in(reason: str, known: Iterable[str]) -> str:
    there = set(known)
    return next((name for name in _NAMED.findall(reason) if name in there), "")
