"""Carry over facts of compacted history, shortened and limited in number.

The user's words stay whole. The oldest turns keep only these words and the changed files.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from longhold.core.messages.text import CUT, cut, one_line, remove_blank_lines, sentences
from longhold.core.stages.facts.facts import (
    AnswerFact,
    Call,
    ChangeFact,
    CommandFact,
    Look,
    PlanFact,
    Report,
    StepFact,
    Thought,
    TurnFacts,
    WordsFact,
)
from longhold.core.stages.facts.gist import conclusions, gist
from longhold.core.stages.facts.outcome import error_head, telling_lines

LINE_CHARS = 240
"""A longer line is cut at the end of a sentence."""
SCANNED_LINES = 600

_BINDS = re.compile(
    r"\b(?:must|never|do not|don'?t|shall|only|exactly|at most|at least|always|no|cannot|may not"
    r"|required?|forbidden|mandatory|remains?)\b",
    re.IGNORECASE,
)
_ADVISES = re.compile(
    r"\b(?:should|keep|ensure|preserve|without|default|fallback|instead|unless|when|if|not|until"
    r"|avoid|use|support|same)\b",
    re.IGNORECASE,
)
_BINDING_HEADING = re.compile(
    r"constraint|no-?gos?\b|not wanted|edge case|limit|rule|require|accept|done|scope|must|spec"
    r"|non-?goal|out of|criteri|caveat",
    re.IGNORECASE,
)
_TERM = re.compile(r"`[^`]+`|\"[^\"]+\"|(?<![-\d])\b\d{1,3}\b(?![-\d])")
_PRESCRIBED = re.compile(r"[\"“](?=[^\"“”]*[A-Za-z]{2})[^\"“”]{6,80}[\"”]")
"""Matches a quoted text that a document prescribes, such as a label or a message."""
_HEADING = re.compile(r"#{1,6} +\S|[A-Z][A-Z &-]{3,40}$|\*\*[^*]+\*\*:?$")
_ITEM = re.compile(r"[-*+•↳←→] |\d{1,2}[.)] |\|")
_REFERENCE = re.compile(
    r"[-*+•] +`?(?:https?://\S+|[\w.@-]*/[\w./@*-]*|[\w-]+\.\w{1,5})`?(?: \([^)]*\))?"
)
"""Matches a line with only a file or page, which requires nothing."""
_FENCE = "```"
_RULE = set("-=*_|: ")


class _Line(NamedTuple):
    number: int
    text: str
    weight: int
    heading: int
    """The number of the line's heading, or -1."""


def is_document(text: str) -> bool:
    """Return whether a text is structured by headings, like a document or a ticket."""
    lines = (line.strip() for line in text.splitlines()[:SCANNED_LINES])
    return sum(bool(_HEADING.match(line)) for line in lines) > 1


def demands(text: str, chars: int) -> str:
    """Keep the most binding lines that fit into `chars`, in their order."""
    weighed = [*_weigh_lines(text)]
    lines = [*{_identify(line): line for line in reversed(weighed)}.values()][::-1]
    if any(line.weight for line in lines):
        lines = [line for line in lines if line.weight or line.number == line.heading]
    headings = {line.number: line.text for line in lines if line.number == line.heading}
    left, chosen = chars, set[int]()
    for line in sorted(lines, key=lambda line: (-line.weight, line.number)):
        price = len(line.text) + 1
        if line.heading >= 0 and line.heading not in chosen:
            price += len(headings[line.heading]) + 1
        if price <= left and line.number != line.heading:
            chosen |= {line.number, line.heading}
            left -= price
    shown = [line for line in lines if line.number in chosen]
    missing = any(line.number not in chosen for line in lines if line.number != line.heading)
    return "\n".join([*(line.text for line in shown), *((CUT,) if missing else ())])


def _identify(line: _Line) -> str | int:
    """Return the key by which duplicate lines are found. For a heading it is the position."""
    return line.number if line.number == line.heading else line.text


def _weigh_lines(text: str) -> Iterator[_Line]:
    heading, binding, leads, in_code, number = -1, 0, list[tuple[int, int]](), False, 0
    for raw in text.splitlines()[:SCANNED_LINES]:
        line = raw.strip()
        if line.startswith(_FENCE):
            in_code = not in_code
        if in_code or line.startswith(_FENCE) or set(line) <= _RULE:
            continue
        if _HEADING.match(line):
            heading, leads = number, []
            binding = int(bool(_BINDING_HEADING.search(line)))
            title = cut(one_line(line).strip("#* :"), LINE_CHARS)
            yield _Line(number, f"{title}:", 0, number)
            number += 1
            continue
        depth = len(raw) - len(raw.lstrip())
        leads = [lead for lead in leads if lead[0] < depth]
        for part in (line,) if _ITEM.match(line) else sentences(line):
            weight = max(_weight(part) + binding, *(lead[1] for lead in leads), 0)
            yield _Line(number, cut(one_line(part), LINE_CHARS), weight, heading)
            number += 1
            if part.endswith(":"):
                leads.append((depth, weight))


def _weight(line: str) -> int:
    if _REFERENCE.fullmatch(line):
        return 0
    worded = 2 if _BINDS.search(line) else int(bool(_ADVISES.search(line)))
    exact = int(bool(_TERM.search(line))) + int(bool(_PRESCRIBED.search(line)))
    return worded + exact + int(bool(_ITEM.match(line)))


ANSWER_CHARS = 480
THOUGHT_CHARS = 320
OUTPUT_CHARS = 320
LISTED_CHARS = 2_000
DOCUMENT_CHARS = 8_000
CODE_CHARS = 1_000
MOST_STEPS = 400
"""Limit for the steps of all carried turns. Recorded sessions have fewer."""
MOST_PATHS = 60


def shorten_turn(turn: TurnFacts) -> TurnFacts:
    return replace(turn, steps=tuple(_shorten_steps(turn.steps)))


def _shorten_steps(steps: Iterable[StepFact]) -> Iterator[StepFact]:
    for step in steps:
        match step:
            case AnswerFact(text=text):
                yield replace(step, text=gist(remove_blank_lines(text), ANSWER_CHARS))
            case Thought(text=text):
                if found := conclusions(text, THOUGHT_CHARS, with_reason=True):
                    yield replace(step, text="\n".join(found))
            case Look(text=text):
                yield replace(step, text=cut(text, DOCUMENT_CHARS) if is_document(text) else "")
            case CommandFact():
                yield replace(step, output=_output(step), is_error=step.has_failed)
            case Report(text=text):
                chars = DOCUMENT_CHARS if is_document(text) else OUTPUT_CHARS
                yield replace(step, text=cut(text, chars))
            case ChangeFact(added=added, removed=removed):
                yield replace(step, added=added[:CODE_CHARS], removed=removed[:CODE_CHARS])
            case _:
                yield step


def _output(step: CommandFact) -> str:
    if is_document(step.output):
        return cut(step.output, DOCUMENT_CHARS)
    if "git " in step.text:
        return cut(step.output, LISTED_CHARS)
    if step.has_failed:
        return error_head(step.output, OUTPUT_CHARS)
    return telling_lines(step.output, OUTPUT_CHARS)


def bound_turns(turns: Sequence[TurnFacts]) -> list[TurnFacts]:
    left, kept = MOST_STEPS, list[TurnFacts]()
    paths = set[str]()
    for turn in reversed(turns):
        left -= len(turn.steps)
        if left < 0 and not kept:  # the turn may be open, so each of its calls matters
            older = (_keep_line(one) for one in turn.steps[:-MOST_STEPS] if isinstance(one, Call))
            turn = replace(turn, steps=(*older, *turn.steps[-MOST_STEPS:]))
        elif left < 0:
            turn = replace(turn, steps=tuple(_choose_essential(turn.steps, paths)))
        kept.append(turn)
    return kept[::-1]


def _keep_line(step: Call) -> Call:
    match step:
        case ChangeFact():
            return replace(step, added="", removed="")
        case CommandFact(output=output):
            return replace(step, output=cut(output, OUTPUT_CHARS))
        case Look() | Report():
            return replace(step, text=cut(step.text, OUTPUT_CHARS))


def _choose_essential(steps: Sequence[StepFact], paths: set[str]) -> list[StepFact]:
    essential: list[StepFact] = []
    for step in reversed(steps):
        match step:
            case WordsFact() | PlanFact(is_approved=True):
                essential.append(step)
            case ChangeFact(path=path, error="") if path not in paths and len(paths) < MOST_PATHS:
                paths.add(path)
                essential.append(replace(step, added="", removed=""))
    return essential[::-1]
