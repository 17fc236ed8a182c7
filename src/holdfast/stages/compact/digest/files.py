"""Section 3, files and code: changed and read files, ordered by use.

A changed file is listed with the number of changes, the definitions touched, and the names and
strings put in or taken out. Files only read are listed by directory.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from holdfast.stages.compact.digest.context import DigestContext
from holdfast.stages.compact.digest.pieces import DigestPiece, Worth, line_piece
from holdfast.stages.facts.facts import ChangeFact, Facts, Look, cite, times
from holdfast.stages.facts.names import beside, put_in, set_to, taken_out, touched

CHANGED = (Worth.CHANGED_FILES, Worth.TOUCHED, Worth.PUT_IN)
PUT_IN = 12
BESIDE = 6
"""Neighbours of what was changed: they are what it is compared with next."""
SETTINGS = 6
"""Constants with their values: the ones set last."""
TAKEN_OUT = 5
"""Enough to know that they are gone."""
SEARCHES = 12
"""The last ones show what was being looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    path: str
    changes: tuple[tuple[int, ChangeFact], ...]
    """With the number of the turn of each."""
    reads: int = 0

    @property
    def last(self) -> ChangeFact:
        return self.changes[-1][1]


def edited(facts: Facts) -> list[Edits]:
    """Group successful changes by file, the most changed first."""
    by_path: dict[str, list[tuple[int, ChangeFact]]] = {}
    reads = read_counts(facts)
    for turn, step in facts.steps():
        if isinstance(step, ChangeFact) and not step.error:
            by_path.setdefault(step.path, []).append((turn, step))
    listed = [Edits(path=p, changes=tuple(c), reads=reads[p]) for p, c in by_path.items()]
    return sorted(listed, key=lambda edits: (-len(edits.changes), -edits.last.id))


def read_counts(facts: Facts) -> Counter[str]:
    return Counter(
        step.path
        for _, step in facts.steps()
        if isinstance(step, Look) and step.kind == "read" and not step.error
    )


def pieces(context: DigestContext) -> Iterator[DigestPiece]:
    yield from _changed(context)
    yield from _read(context)
    yield from _searched(context)


def _changed(context: DigestContext) -> Iterator[DigestPiece]:
    for i, edits in enumerate(edited(context.facts)):
        names, more = _told(context, edits)
        yield DigestPiece(
            section=3,
            place=(0, i),
            forms=(_headline(context, edits), names, more),
            gains=tuple(context.worth(worth, edits.last.id) for worth in CHANGED),
        )


def _headline(context: DigestContext, edits: Edits) -> str:
    actions = Counter(change.action for _, change in edits.changes)
    done = ", ".join(verb + times(n) for verb, n in actions.items())
    read = f", read ×{edits.reads}" if edits.reads else ""
    return f"- {context.short(edits.path)}: {done}{read}"


def _told(context: DigestContext, edits: Edits) -> tuple[str, str]:
    changes = [change for _, change in edits.changes]
    turns = " ".join(f"T{n}" for n in dict.fromkeys(turn for turn, _ in edits.changes))
    head = f"{_headline(context, edits)} in {turns} {cite(changes[-1].id)}"
    newest_first = changes[::-1]
    definitions, constants = touched(newest_first), set_to(changes)[:SETTINGS]
    near = beside(newest_first, context.read_texts.get(edits.path, ()))[:BESIDE]
    names = f"{head}; touched {', '.join(definitions)}" if definitions else head
    names += f"; beside {', '.join(near)}" if near else ""
    names += f"; set {', '.join(constants)}" if constants else ""
    brought = put_in(newest_first, definitions)[:PUT_IN]
    gone = taken_out(changes)[:TAKEN_OUT]
    more = names
    more += f"; put in {', '.join(brought)}" if brought else ""
    more += f"; took out {', '.join(gone)}" if gone else ""
    return names, more


def _read(context: DigestContext) -> Iterator[DigestPiece]:
    changed = {edits.path for edits in edited(context.facts)}
    by_directory: dict[str, list[tuple[str, int]]] = {}
    for path, n in read_counts(context.facts).most_common():
        if path not in changed:
            where = PurePosixPath(context.short(path))
            by_directory.setdefault(str(where.parent), []).append((where.name, n))
    for i, (directory, names) in enumerate(by_directory.items()):
        listed = ", ".join(name + times(n) for name, n in names)
        place = "" if directory == "." else f"{directory}/: "
        line = f"- read: {place}{listed}"
        yield line_piece(3, (1, i), line, Worth.READ_FILES)


def _searched(context: DigestContext) -> Iterator[DigestPiece]:
    patterns = dict.fromkeys(
        f"`{step.pattern}`"
        for _, step in reversed(list(context.facts.steps()))
        if isinstance(step, Look) and step.kind == "search" and step.pattern
    )
    if patterns:
        line = f"- searched for: {', '.join(list(patterns)[:SEARCHES])}"
        yield line_piece(3, (2, 0), line, Worth.SEARCHES)
