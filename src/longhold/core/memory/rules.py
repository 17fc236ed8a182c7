"""Rules that keep models from restoring removed memories and from removing much of a store."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from longhold.core.log.entries import Said
from longhold.core.memory.branch import Branch
from longhold.core.memory.commits import MemoryChange
from longhold.core.memory.memory import Memory, parse
from longhold.core.memory.memory_tool import NO_REASON
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


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRules:
    settings: DreamSettings
    repository: Path
    said: Sequence[Said] = ()
    """The user's new messages, which may repeat a removed memory."""

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

    def remarks(self, branch: Branch, files: Iterable[str]) -> list[str]:
        known = frozenset(branch.versions())
        return [
            remark
            for file in files
            if file in known
            for remark in list_dangling(branch, file, known, self.repository)
        ]

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
    """Return whether a rewrite loses most of a memory that no other memory has taken over."""
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
