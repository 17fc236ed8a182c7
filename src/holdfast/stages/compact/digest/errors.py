"""Section 4, errors and fixes: what went wrong, and whether it works since.

Failed calls and commands that report failure come in as steps; each is told with its beginning
and its telling line, repeated ones once. An error counts as mended when the same command passed
later, or the same file was changed later without one.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.messages.cut import cut, one_line
from holdfast.stages.compact.digest.context import DigestContext, cite
from holdfast.stages.compact.digest.facts import (
    ChangeFact,
    CommandFact,
    Facts,
    Look,
    Report,
    StepFact,
    WordsFact,
)
from holdfast.stages.compact.digest.outcome import error_head, has_failed, only_looks
from holdfast.stages.compact.digest.pieces import DigestPiece
from holdfast.stages.compact.digest.ranks import Rank

COMMAND_CHARS = 100
"""Of the command beside its error: it stands in full where it was run."""
SHORT_ERROR_CHARS = 220
"""How an error begins, and the line that says where it went wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One thing that went wrong, however often."""

    turn: int
    id: int
    what: str
    """The command or the call."""
    error: str
    times: int = 1
    mended: int = 0
    """The message that shows it works since."""
    is_refusal: bool = False
    """The user would not have it; what the user said stands in section 6."""


def troubles(facts: Facts) -> list[Failure]:
    """List what went wrong, oldest first."""
    found: dict[tuple[str, str], Failure] = {}
    passed: dict[str, int] = {}
    for _, step in facts.steps():
        if (what := _subject(step)) and not _error(step):
            passed[what] = step.id
    for turn, step in facts.steps():
        error = _error(step)
        if not error:
            continue
        what = _subject(step)
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


def has_error(command: CommandFact) -> bool:
    """Say whether a command failed, by its status or by what it reports."""
    if command.is_error:
        return True
    return not only_looks(command.text) and has_failed(command.output)


def pieces(scene: DigestContext) -> Iterator[DigestPiece]:
    """Tell what went wrong."""
    for trouble in troubles(scene.facts):
        lengths = (SHORT_ERROR_CHARS, scene.limits.error_chars)
        first, then = _ranks(scene, trouble)
        age = scene.staleness(trouble.id)
        yield DigestPiece(
            section=4,
            place=(trouble.id,),
            forms=tuple(_told(scene, trouble, chars) for chars in lengths),
            ranks=(first + age, then + age),
        )


def _ranks(scene: DigestContext, trouble: Failure) -> tuple[Rank, Rank]:
    """Say when an error is told: one that still stands comes first, one long past last."""
    if not scene.is_recent(trouble.id):
        return Rank.OLD_ERRORS, Rank.OLD_ERRORS
    if trouble.is_refusal:
        return Rank.RECENT_COMMANDS, Rank.LONG_ERRORS
    return Rank.RECENT_ERRORS if trouble.mended else Rank.OPEN_ERRORS, Rank.LONG_ERRORS


def _told(scene: DigestContext, trouble: Failure, chars: int) -> str:
    subject = cut(scene.plain(one_line(trouble.what)), COMMAND_CHARS)
    what = f"`{subject}`: " if trouble.what else ""
    times = f" (×{trouble.times})" if trouble.times > 1 else ""
    mended = f" Worked later {cite(trouble.mended)}." if trouble.mended else ""
    return (
        f"- T{trouble.turn} {cite(trouble.id)} {what}{error_head(trouble.error, chars)}{times}"
        f"{mended}"
    )


def _subject(step: StepFact) -> str:
    match step:
        case CommandFact(text=text):
            return text
        case ChangeFact(path=path):
            return f"change {path}"
        case Look(kind="read", path=path):
            return f"read {path}"
        case Look(pattern=pattern):
            return f"search {pattern}"
        case Report(tool=tool, about=about):
            return f"{tool} {about}"
        case WordsFact(about=about, error=error) if error:
            return about
    return ""


def _error(step: StepFact) -> str:
    match step:
        case CommandFact() if has_error(step):
            return step.output
        case ChangeFact(error=error) | Look(error=error) | WordsFact(error=error):
            return error
        case Report(is_error=True, text=text):
            return text
    return ""
