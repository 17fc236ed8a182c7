"""Where the work stood when the segment ended: the last command and what it printed, the branch,
what the agent had in mind, and the explanations it gave, of which the last one stands.
"""

import re
from collections.abc import Iterator

from holdfast.messages.cut import cut, one_line, sentences, without_code
from holdfast.stages.compact.digest.context import DigestContext
from holdfast.stages.compact.digest.pieces import DigestPiece, Worth, line_piece
from holdfast.stages.facts.facts import AnswerFact, CommandFact, Thought, cite
from holdfast.stages.facts.gist import gist
from holdfast.stages.facts.outcome import branch_in, error_head, telling_lines

LAST = float("inf")
"""Sorts behind everything else in its section."""
EXPLANATIONS = 6
"""The latest; older ones were given up or are known."""
FEWEST_EXPLANATIONS = 2
"""A single one needs no order."""

_CAUSE = re.compile(
    r"root cause|turns out|\bactual(?:ly)? (?:cause|issue|problem|bug|reason)"
    r"|\b(?:bug|issue|problem|cause|reason|culprit)(?:\*\*)? (?:is|was)\b"
    r"|\b(?:bug|issue|problem|cause|reason)(?: is)?:(?:\*\*)?\s",
    re.IGNORECASE,
)


def last_state_pieces(context: DigestContext) -> Iterator[DigestPiece]:
    """Section 8: what was run last, where, and with what in mind."""
    commands = [step for _, step in context.facts.steps() if isinstance(step, CommandFact)]
    if commands:
        line = f"- last command {cite(commands[-1].id)}: {_ended(context, commands[-1])}"
        yield line_piece(8, (LAST, 1), line, Worth.LAST_OUTCOME)
    branch = next(filter(None, (_branch(command) for command in reversed(commands))), "")
    if branch:
        yield line_piece(8, (LAST, 0), f"- on branch {branch}", Worth.LAST_OUTCOME)
    thoughts = [step for _, step in context.facts.steps() if isinstance(step, Thought)]
    if thoughts and context.is_current(thoughts[-1].id):
        last = thoughts[-1]
        line = f"- last thought {cite(last.id)}: {gist(last.text, context.limits.thought_chars)}"
        yield line_piece(8, (LAST, 2), line, Worth.LAST_OUTCOME)


def explanation_pieces(context: DigestContext) -> Iterator[DigestPiece]:
    """Section 5: causes as they were given, so that none is taken for the one that stands."""
    given = []
    for turn, step in context.facts.steps():
        if isinstance(step, AnswerFact) and (cause := _cause(step.text)):
            given.append(f"- T{turn} {cite(step.id)} {cut(cause, context.limits.remark_chars)}")
    if len(given) < FEWEST_EXPLANATIONS:
        return
    forms = tuple(
        "\n".join(("Explanations in the order they were given; the last one stands:", *shown))
        for shown in (given[-FEWEST_EXPLANATIONS:], given[-EXPLANATIONS:])
    )
    gains = (Worth.EXPLANATIONS, Worth.EARLIER_EXPLANATIONS)
    yield DigestPiece(section=5, place=(-1,), forms=forms, gains=gains)


def _cause(text: str) -> str:
    causes = [s for s in sentences(without_code(text)) if _CAUSE.search(s) and not s.endswith("?")]
    return one_line(causes[-1]) if causes else ""


def _ended(context: DigestContext, command: CommandFact) -> str:
    limits = context.limits
    line = cut(one_line(command.text), limits.command_chars)
    if command.task:
        return f"`{line}` runs in the background as {command.task}"
    if command.has_failed:
        return f"`{line}` failed: {error_head(command.output, limits.error_chars[-1])}"
    return f"`{line}` → {telling_lines(command.output, limits.outcome_chars) or 'ok'}"


def _branch(command: CommandFact) -> str:
    return branch_in(command.output) if "git " in command.text else ""
