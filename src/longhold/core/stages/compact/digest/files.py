"""Section 3, files and code. It lists changed and read files, ordered by use.

A changed file is listed with the definitions, names and strings that changed.
"""

import re
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import NamedTuple

from longhold.core.stages.compact.digest.context import CURRENT_SHARE, FINISHED_SHARE, DigestContext
from longhold.core.stages.compact.digest.pieces import DigestPiece, Worth, line_piece
from longhold.core.stages.facts.carried import demands, is_document
from longhold.core.stages.facts.facts import (
    ChangeFact,
    CommandFact,
    Facts,
    Look,
    PlanFact,
    Report,
    StepFact,
    cite,
    times,
)
from longhold.core.stages.facts.names import (
    PROSE,
    last_name,
    list_added,
    list_touched,
    suffix_of,
)

SPEC_CHARS = 200
"""A shorter file is not a specification."""
LISTING_SHARE = 0.1
"""Weight of output without headings, which contains few requirements."""
NAME_CHARS = 5
"""A shorter name may appear in a message by chance."""

_INSTRUCTIONS = frozenset({"CLAUDE.md", "AGENTS.md", "MEMORY.md"})
"""Every session reads these files, so they need no outline."""
_NAME = re.compile(r"(?<![\w./-])[\w#][\w./:#-]*[\d./:#_-][\w./:#-]*")
"""Matches an argument that may be a name, because it contains more than letters."""
_CLOSES = re.compile(r"\b(?:close|done|complete|finish|resolve)", re.IGNORECASE)
_LINE_NUMBER = re.compile(r"^[ \t]*+\d++[→\t:|] ?", re.MULTILINE)


class _Document(NamedTuple):
    what: str
    names: tuple[str, ...]
    text: str


def document_pieces(context: DigestContext) -> Iterator[DigestPiece]:
    """Section 1: requirements in approved plans and in documents that the user named."""
    for turn, step in context.facts.find(PlanFact):
        if step.is_approved:
            lead = f"Plan approved by the user in T{turn} {cite(step.id)}:\n"
            yield _demand_piece(context, 3, context.task_share(turn), step.id, lead, step.text)
    yield from _pointed_pieces(context)


def _pointed_pieces(context: DigestContext) -> Iterator[DigestPiece]:
    found = _find_pointed(context)
    is_open = {
        what: context.task_share(turn) >= 1 and not _is_closed(context, step, document)
        for what, (turn, step, document) in found.items()
    }
    current = next((what for what in reversed(found) if is_open[what]), "")
    for what, (turn, step, document) in found.items():
        share = CURRENT_SHARE if what == current else context.task_share(turn)
        share *= FINISHED_SHARE if _is_closed(context, step, document) else 1.0
        share *= 1.0 if is_document(document.text) else LISTING_SHARE
        lead = f"The user pointed at {what}, read in T{turn} {cite(step.id)}; it says:\n"
        yield _demand_piece(context, 4, share, step.id, lead, document.text)


def find_quoted(context: DigestContext) -> frozenset[int]:
    """Find the calls whose output is a document that section 1 quotes."""
    return frozenset(step.id for _, step, _ in _find_pointed(context).values())


def _find_pointed(context: DigestContext) -> dict[str, tuple[int, StepFact, _Document]]:
    """Find documents that the user or such a document named, in the version last read."""
    said = deque(context.facts.words())
    found: dict[str, tuple[int, StepFact, _Document]] = {}
    written, heard, read = set[str](), "", ""
    for turn, step in context.facts.steps():
        while said and said[0][0] <= turn:
            heard += f"\0{said.popleft()[1].text}"
        if isinstance(step, ChangeFact):  # the agent's own work, even if the user names it
            written.add(last_name(step.path))
        document = _document(context, step)
        if document is None or written & set(document.names):
            continue
        named = heard if isinstance(step, Report) else heard + read
        if any(name in named for name in document.names):
            if document.what not in found:
                read += f"\0{document.text}"
            found.pop(document.what, None)
            found[document.what] = turn, step, document
    return found


def _is_closed(context: DigestContext, step: StepFact, document: _Document) -> bool:
    """Return whether a later command closes the subject of a document, such as a ticket."""
    names = "|".join(re.escape(name) for name in document.names[1:])
    named = re.compile(rf"(?<![\w.-])(?:{names})(?![\w.-])") if names else None
    return named is not None and any(
        command.id > step.id
        and not command.has_failed
        and _CLOSES.search(command.text)
        and named.search(command.text)
        for _, command in context.facts.find(CommandFact)
    )


def _document(context: DigestContext, step: StepFact) -> _Document | None:
    match step:
        case Look(kind="read", path=path, text=text) if len(text) >= SPEC_CHARS:
            name = last_name(path)
            if suffix_of(name).lower() in PROSE and name not in _INSTRUCTIONS:
                return _Document(context.short(path), (name,), strip_line_numbers(text))
        case CommandFact(is_error=False, text=text, output=output) if len(output) >= SPEC_CHARS:
            line = text.removesuffix("2>&1").strip()
            return _Document(f"`{line}`", _names(line, output), output)
        case Report(is_error=False, about=about, text=text, task="") if len(text) >= SPEC_CHARS:
            return _Document(about, _names(about, text), text)
    return None


def _names(line: str, text: str) -> tuple[str, ...]:
    named = (name.rstrip(".:/") for name in _NAME.findall(line)) if is_document(text) else ()
    return tuple(name for name in (line, *named) if len(name) >= NAME_CHARS)


def _demand_piece(
    context: DigestContext, rank: int, share: float, id: int, lead: str, text: str
) -> DigestPiece:
    forms = tuple(lead + demands(text, chars) for chars in context.limits.demand_chars)
    worths = (Worth.DEMANDS, Worth.MORE_DEMANDS, Worth.OUTLINES)
    gains = tuple(share * context.worth(worth, id) for worth in worths)
    return DigestPiece(1, (rank, id), forms, gains)


def strip_line_numbers(text: str) -> str:
    """Strip the line numbers that a tool adds, and a client's reminder at the end."""
    return _LINE_NUMBER.sub("", text.partition("<system-reminder>")[0])


CHANGED = (Worth.CHANGED_FILES, Worth.TOUCHED, Worth.PUT_IN)
NAMELESS = (Worth.CHANGED_FILES, Worth.TOUCHED, Worth.NEW_NAMES)
PUT_IN = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits:
    path: str
    changes: tuple[tuple[int, ChangeFact], ...]

    @property
    def last(self) -> ChangeFact:
        return self.changes[-1][1]


def group_edits(facts: Facts) -> list[Edits]:
    by_path: dict[str, list[tuple[int, ChangeFact]]] = {}
    for turn, step in facts.find(ChangeFact):
        if not step.error:
            by_path.setdefault(step.path, []).append((turn, step))
    listed = [Edits(path=p, changes=tuple(c)) for p, c in by_path.items()]
    return sorted(listed, key=lambda edits: (-len(edits.changes), -edits.last.id))


def _read_counts(facts: Facts) -> Counter[str]:
    reads = (step for _, step in facts.find(Look) if step.kind == "read" and not step.error)
    return Counter(step.path for step in reads)


def pieces(context: DigestContext) -> Iterator[DigestPiece]:
    yield from _change_pieces(context)
    yield from _read_pieces(context)


def _change_pieces(context: DigestContext) -> Iterator[DigestPiece]:
    for i, edits in enumerate(group_edits(context.facts)):
        forms = (_headline(context, edits), *_name_edits(context, edits))
        # A file without definitions, such as a settings file, is described by its new names.
        worths = CHANGED if forms[1] != forms[0] else NAMELESS
        gains = tuple(context.worth(worth, edits.last.id) for worth in worths)
        yield DigestPiece(3, (0, i), forms, gains)


def _headline(context: DigestContext, edits: Edits) -> str:
    actions = Counter(change.action for _, change in edits.changes)
    done = ", ".join(verb + times(n) for verb, n in actions.items())
    return f"- {context.short(edits.path)}: {done}"


def _name_edits(context: DigestContext, edits: Edits) -> tuple[str, str]:
    changes = [change for _, change in edits.changes]
    turns = " ".join(f"T{n}" for n in dict.fromkeys(turn for turn, _ in edits.changes))
    where = f" in {turns}" if len(context.facts.turns) > 1 else ""
    newest_first = changes[::-1]
    definitions = list_touched(newest_first)
    names = f"; touched {', '.join(definitions)}" if definitions else ""
    brought = list_added(newest_first, definitions)[:PUT_IN]
    more = f"; put in {', '.join(brought)}" if brought else ""
    headline = _headline(context, edits)
    return f"{headline}{names}", f"{headline}{where} {cite(changes[-1].id)}{names}{more}"


def _read_pieces(context: DigestContext) -> Iterator[DigestPiece]:
    changed = {edits.path for edits in group_edits(context.facts)}
    by_directory: dict[str, list[str]] = {}
    for path, n in _read_counts(context.facts).most_common():
        if path not in changed:
            where = PurePosixPath(context.short(path))
            place = "" if str(where.parent) == "." else f"{where.parent}/: "
            by_directory.setdefault(place, []).append(where.name + times(n))
    if by_directory:
        lists = "; ".join(place + ", ".join(names) for place, names in by_directory.items())
        yield line_piece(3, (1, 0), f"- read: {lists}", Worth.READ_FILES)
