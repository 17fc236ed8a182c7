"""Section 4, errors and fixes.

Failed calls and failing commands, repeated ones once. An error counts as mended when the same
command passed later, or the same file was changed later without one.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.messages.cut import cut, one_line
from holdfast.stages.compact.digest.context import DigestContext
from holdfast.stages.compact.digest.pieces import DigestPiece, Rank
from holdfast.stages.facts.facts import Facts, WordsFact, cite, error_of, subject_of
from holdfast.stages.facts.outcome import error_head

COMMAND_CHARS = 100
SHORT_ERROR_CHARS = 220


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One error, however often it occurred."""

    turn: int
    id: int
    what: str
    error: str
    times: int = 1
    mended: int = 0
    """The message that shows it works now."""
    is_refusal: bool = False
    """The user refused it; their words are in section 6."""


def failures(facts: Facts) -> list[Failure]:
    found: dict[tuple[str, str], Failure] = {}
    passed: dict[str, int] = {}
    for _, step in facts.steps():
        if (what := subject_of(step)) and not error_of(step):
            passed[what] = step.id
    for turn, step in facts.steps():
        error = error_of(step)
        if not error:
            continue
        what = subject_of(step)
        before = found.pop((what, error[:SHORT_ERROR_CHARS]), None)
        mended = passed.get(what, 0)
        found[what, error[:SHORT_ERROR_CHARS]] = Failure(
            turn=turn,
            id=step.id,
            what=what,
            error=error,
            times=before.times + 1 if before else 1,
            mended=mended if mended > step.id else 0,
            is_refusal=isinstance(step, WordsFact),
        )
    return list(found.values())


def pieces(context: DigestContext) -> Iterator[DigestPiece]:
    for failure in failures(context.facts):
        lengths = (SHORT_ERROR_CHARS, context.limits.error_chars)
        first, then = _ranks(context, failure)
        age = context.staleness(failure.id)
        yield DigestPiece(
            section=4,
            place=(failure.id,),
            forms=tuple(_told(context, failure, chars) for chars in lengths),
            ranks=(first + age, then + age),
        )


def _ranks(context: DigestContext, failure: Failure) -> tuple[Rank, Rank]:
    if not context.is_recent(failure.id):
        return Rank.OLD_ERRORS, Rank.OLD_ERRORS
    if failure.is_refusal:
        return Rank.RECENT_COMMANDS, Rank.LONG_ERRORS
    return Rank.RECENT_ERRORS if failure.mended else Rank.OPEN_ERRORS, Rank.LONG_ERRORS


def _told(context: DigestContext, failure: Failure, chars: int) -> str:
    subject = cut(context.plain(one_line(failure.what)), COMMAND_CHARS)
    what = f"`{subject}`: " if failure.what else ""
    times = f" (×{failure.times})" if failure.times > 1 else ""
    mended = f" Worked later {cite(failure.mended)}." if failure.mended else ""
    return (
        f"- T{failure.turn} {cite(failure.id)} {what}{error_head(failure.error, chars)}{times}"
        f"{mended}"
    )
