"""What binds the work: approved plans, and the documents, pages and tickets the user pointed at.

The user points at a document by its name; a document that was pointed at points at others in the
same way. Each is given by what it demands, in its own terms.
"""

import re
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from holdfast.stages.compact.digest.context import DigestContext
from holdfast.stages.compact.digest.pieces import DigestPiece, Worth
from holdfast.stages.facts.demands import demands, is_document
from holdfast.stages.facts.facts import (
    ChangeFact,
    CommandFact,
    Look,
    PlanFact,
    Report,
    StepFact,
    cite,
)
from holdfast.stages.facts.names import PROSE, last_name, suffix_of

SPEC_CHARS = 200
"""A file shorter than this is no specification."""
NAME_CHARS = 5
"""Anything shorter may appear in a message by chance."""

_INSTRUCTIONS = frozenset({"CLAUDE.md", "AGENTS.md", "MEMORY.md"})
"""Read by every session; they need no outline."""
_NAME = re.compile(r"(?<![\w./-])[\w#][\w./:#-]*[\d./:#_-][\w./:#-]*")
"""An argument that may be the name of something: it has more than letters in it."""
_LINE_NUMBER = re.compile(r"^\s*\d+[→\t:|] ?", re.MULTILINE)


class _Document(NamedTuple):
    what: str
    names: tuple[str, ...]
    """What somebody would call it."""
    text: str


def document_pieces(context: DigestContext) -> Iterator[DigestPiece]:
    """Section 1: what plans and documents demand."""
    for turn, step in context.facts.steps():
        if isinstance(step, PlanFact) and step.is_approved:
            lead = f"Plan approved by the user in T{turn} {cite(step.id)}:\n"
            yield _demanded(context, (3, step.id), lead, step)
    yield from _pointed_at(context)


def _pointed_at(context: DigestContext) -> Iterator[DigestPiece]:
    said = deque(context.facts.words())
    written, told, heard = set[str](), set[str](), ""
    for turn, step in context.facts.steps():
        while said and said[0][0] <= turn:
            heard += f"\0{said.popleft()[1].text}"
        if isinstance(step, ChangeFact):  # what the agent writes is its own work, whoever names it
            written.add(last_name(step.path))
        document = _document(context, step)
        if document is None or document.what in told or written & set(document.names):
            continue
        if any(name in heard for name in document.names):
            told.add(document.what)
            heard += f"\0{document.text}"
            lead = (
                f"The user pointed at {document.what}, read in T{turn} {cite(step.id)}; it says:\n"
            )
            yield _demanded(context, (4, step.id), lead, step, document.text)


def _document(context: DigestContext, step: StepFact) -> _Document | None:
    """Return what a step read, if it is a document."""
    match step:
        case Look(kind="read", path=path, text=text) if len(text) >= SPEC_CHARS:
            name = last_name(path)
            if suffix_of(name).lower() in PROSE and name not in _INSTRUCTIONS:
                return _Document(context.short(path), (name,), _without_numbers(text))
        case CommandFact(is_error=False, text=text, output=output) if len(output) >= SPEC_CHARS:
            line = text.removesuffix("2>&1").strip()
            return _Document(f"`{line}`", _names(line, output), output)
        case Report(is_error=False, about=about, text=text, task="") if len(text) >= SPEC_CHARS:
            return _Document(about, _names(about, text), text)
    return None


def _names(line: str, text: str) -> tuple[str, ...]:
    """Return the whole line, and if what it showed is a document, the names in it."""
    named = (name.rstrip(".:/") for name in _NAME.findall(line)) if is_document(text) else ()
    return tuple(name for name in (line, *named) if len(name) >= NAME_CHARS)


def _demanded(
    context: DigestContext,
    place: tuple[float, ...],
    lead: str,
    step: StepFact,
    text: str = "",
) -> DigestPiece:
    text = text or (step.text if isinstance(step, PlanFact) else "")
    forms = tuple(lead + demands(text, chars) for chars in context.limits.demand_chars)
    worths = (Worth.DEMANDS, Worth.MORE_DEMANDS, Worth.OUTLINES)
    gains = tuple(context.worth(worth, step.id) for worth in worths)
    return DigestPiece(section=1, place=place, forms=forms, gains=gains)


def _without_numbers(text: str) -> str:
    """Strip line numbers from a file as a tool shows it, and a harness's reminder after it."""
    return _LINE_NUMBER.sub("", text.partition("<system-reminder>")[0])
