"""Facts of history that was compacted before, as they are carried on: shorter, and not too many.

Whatever is said of them later takes a line or two, so the texts are cut once; the user's words stay
whole. Past a number of steps the oldest turns keep only what the user said and which files changed.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from holdfast.messages.cut import cut, tight
from holdfast.stages.facts.demands import is_document
from holdfast.stages.facts.facts import (
    AnswerFact,
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
from holdfast.stages.facts.gist import conclusions, gist
from holdfast.stages.facts.outcome import error_head, telling_lines

ANSWER_CHARS = 480
THOUGHT_CHARS = 320
OUTPUT_CHARS = 320
LISTED_CHARS = 2_000
"""Of what version control listed: hashes and authors are looked for in it."""
DOCUMENT_CHARS = 8_000
CODE_CHARS = 1_000
MOST_STEPS = 400
"""Of all settled turns; the recorded sessions have fewer."""
MOST_PATHS = 60
"""Changed files of turns that lost their steps, the newest."""


def shortened(turn: TurnFacts) -> TurnFacts:
    return replace(turn, steps=tuple(_shortened(turn.steps)))


def _shortened(steps: Iterable[StepFact]) -> Iterator[StepFact]:
    for step in steps:
        match step:
            case AnswerFact(text=text):
                yield replace(step, text=gist(tight(text), ANSWER_CHARS))
            case Thought(text=text):
                if found := conclusions(text, THOUGHT_CHARS):
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


def bounded(turns: Sequence[TurnFacts]) -> list[TurnFacts]:
    """Take the steps of the oldest turns away until few enough are left."""
    left, kept = MOST_STEPS, list[TurnFacts]()
    paths = set[str]()
    for turn in reversed(turns):
        left -= len(turn.steps)
        if left < 0:
            turn = replace(turn, steps=tuple(_essential(turn.steps, paths)))
        kept.append(turn)
    return kept[::-1]


def _essential(steps: Sequence[StepFact], paths: set[str]) -> list[StepFact]:
    essential: list[StepFact] = []
    for step in reversed(steps):
        is_newest = isinstance(step, ChangeFact) and not step.error and step.path not in paths
        if isinstance(step, WordsFact) or (isinstance(step, PlanFact) and step.is_approved):
            essential.append(step)
        elif is_newest and len(paths) < MOST_PATHS and isinstance(step, ChangeFact):
            paths.add(step.path)
            essential.append(replace(step, added="", removed=""))
    return essential[::-1]
