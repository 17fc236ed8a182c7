"""What must hold before a dream becomes true, whoever dreamt it.

A branch comes in, a list of what is wrong with it goes out; an empty one lets it happen. The
index is in its limits, no link leads nowhere, whatever goes has a reason, not too much goes
at once, and the evidence that memories rested on is still named by one of them.
"""

from collections.abc import Callable

from holdfast.memory.branch import Branch
from holdfast.memory.index import listed, loaded, make_index
from holdfast.memory.memory import parse
from holdfast.memory.tidy import dangling_links
from holdfast.settings import DreamSettings


def wrong_with(
    branch: Branch, settings: DreamSettings, *, exists: Callable[[str], bool]
) -> list[str]:
    """List what forbids a branch to be merged."""
    memories = branch.memories()
    files = frozenset(memory.file for memory in memories)
    limits = branch.store.limits
    wrong: list[str] = []
    index = make_index((listed(memory) for memory in memories), limits)
    if loaded(index, limits) != index:
        wrong.append("the index is over its limits")
    for memory in memories:
        wrong += [
            f"{memory.file} links to {link}, which is not there"
            for link in dangling_links(memory, files, exists)
        ]
        if memory.superseded_by and memory.superseded_by not in files:
            wrong.append(
                f"{memory.file} is superseded by {memory.superseded_by}, which is not there"
            )
    return wrong + _wrong_removals(branch, settings) + _lost_evidence(branch)


def _wrong_removals(branch: Branch, settings: DreamSettings) -> list[str]:
    removed = [change for change in branch.changes() if change.text is None]
    wrong = [f"{one.file} is removed without a reason" for one in removed if not one.reason]
    most = max(settings.removed_floor, int(len(branch.base) * settings.removed_share))
    if len(removed) > most:
        wrong.append(
            f"{len(removed)} of {len(branch.base)} memories are removed, more than {most}"
            " (dream.removed_share)"
        )
    return wrong


def _lost_evidence(branch: Branch) -> list[str]:
    kept = {one for memory in branch.memories() for one in memory.evidence}
    lost = [
        one
        for file, version in branch.base.items()
        for one in parse(file, branch.store.history.text(version)).evidence
        if one not in kept
    ]
    return [f"evidence is lost: {', '.join(dict.fromkeys(lost))}"] if lost else []
