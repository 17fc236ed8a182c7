"""A summary of a segment without a model: nine sections, from the log alone. Pure.

`FactPieces.digest` writes all nine; `engine_part` writes only additions to a model's summary.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate

from longhold.core.stages.compact.digest import files, state
from longhold.core.stages.compact.digest.context import LIMITS, DigestContext, is_finished
from longhold.core.stages.compact.digest.files import document_pieces
from longhold.core.stages.compact.digest.headings import shorten_sections
from longhold.core.stages.compact.digest.pieces import (
    Count,
    DigestPiece,
    Worth,
    fit,
    line_piece,
    remember_counts,
)
from longhold.core.stages.compact.digest.state import explanation_pieces, last_state_pieces
from longhold.core.stages.compact.digest.timeline import message_pieces, turn_pieces, work_pieces
from longhold.core.stages.facts.facts import Facts, cite
from longhold.core.stages.facts.names import find_names
from longhold.core.view.tokens import estimate_tokens

SECTIONS = {
    1: "Request and intent",
    2: "Technical concepts",
    3: "Files and code",
    4: "Errors and fixes",
    5: "Problem solving",
    6: "All user messages, word for word, and what was done",
    7: "Pending tasks",
    8: "Current work",
    9: "Next step",
}

OPENING = (
    "Told from the log, without a model. T1, T2 … are the user's turns; [#n] is message n of the "
    "log, which has all of it."
)
OPENING_ALONE = (
    "Told from the messages themselves, without a model. T1, T2 … are the user's turns; [#n] was "
    "message n. They are kept nowhere else."
)
NOTHING = "Nothing to tell."
TOKEN_CHARS = 4
"""Average for prose; only used to size carried summaries."""
COVERED_SHARE = 0.8
"""The share of its value a piece loses if the model's summary has all of its names."""
LEAD_TOKENS = 12


def budget_for(segment_tokens: int, facts: Facts, words_tokens: int = LIMITS.words_tokens) -> int:
    """Return a digest's token budget: a share of the segment plus the excess of long messages."""
    share = min(LIMITS.base_tokens + int(segment_tokens * LIMITS.tokens_ratio), LIMITS.most_tokens)
    spoken = _spoken_tokens(facts, remember_counts(estimate_tokens))
    beyond = (words.text[LIMITS.usual_message_chars :] for _, words in facts.words())
    long = sum(estimate_tokens(text) for text in beyond if text)
    return max(share + min(long, words_tokens), LIMITS.least_tokens + min(spoken, words_tokens))


def _spoken_tokens(facts: Facts, count: Count) -> int:
    return sum(count(words.text) + LEAD_TOKENS for _, words in facts.words())


def _choose_whole(
    facts: Facts, words_tokens: int, marks: Mapping[int, str], count: Count
) -> frozenset[int]:
    """Choose the messages to keep whole: open requests before finished ones, newest first."""
    said = sorted(
        (words for _, words in facts.words()),
        key=lambda words: (not is_finished(marks.get(words.id, "")), words.id),
        reverse=True,
    )
    totals = accumulate(count(words.text) for words in said)
    return frozenset(
        words.id for words, total in zip(said, totals, strict=True) if total <= words_tokens
    )


@dataclass(frozen=True, kw_only=True)
class FactPieces:
    """The digest pieces for some facts, computed once however often a draft is shortened."""

    facts: Facts
    marks: Mapping[int, str] = field(default_factory=dict)

    def digest(
        self,
        budget_tokens: int,
        *,
        count: Count = estimate_tokens,
        has_log: bool = True,
        words_tokens: int = 0,
    ) -> str:
        """Write all nine sections. `words_tokens` of the budget are for long user messages."""
        count = remember_counts(estimate_tokens) if count is estimate_tokens else count
        context = self._context_for(budget_tokens, words_tokens, count)
        hidden = context.hidden_turns
        pieces = (
            *_prior(context, budget_tokens),
            *self._about_work,
            *message_pieces(context),
            *(piece for turn, told in self._turns for piece in told if turn not in hidden),
        )
        opening = OPENING if has_log else OPENING_ALONE
        root = self._context.root
        opening = f"{opening}\nPaths are relative to {root}/." if root else opening
        room = budget_tokens - count(_assemble(opening, {}))
        while True:
            text = _assemble(opening, fit(pieces, room, count))
            excess = count(text) - budget_tokens  # joining lines can cost tokens
            if excess <= 0 or room <= 0:
                return text
            room -= excess

    def engine_part(self, budget_tokens: int, written: str = "") -> dict[int, str]:
        """Write the facts from the log that `written`, a model's summary, does not cover."""
        beside = (_discount_covered(piece, written) for piece in self._beside_written)
        return fit((*self._state, *beside), budget_tokens, estimate_tokens)

    def _context_for(self, budget_tokens: int, words_tokens: int, count: Count) -> DigestContext:
        facts, marks = self.facts, self.marks
        return DigestContext(
            facts=facts,
            marks=marks,
            is_tight=_spoken_tokens(facts, count) + LIMITS.least_tokens > budget_tokens,
            whole=_choose_whole(facts, words_tokens, marks, count) if words_tokens else frozenset(),
            most_messages=budget_tokens // LIMITS.message_tokens,
        )

    @cached_property
    def _context(self) -> DigestContext:
        return DigestContext(facts=self.facts, marks=self.marks)

    @cached_property
    def _about_work(self) -> tuple[DigestPiece, ...]:
        context = self._context
        return (
            *document_pieces(context),
            *state.pieces(context),
            *explanation_pieces(context),
            *last_state_pieces(context),
            *files.pieces(context),
        )

    @cached_property
    def _turns(self) -> tuple[tuple[int, tuple[DigestPiece, ...]], ...]:
        turns = self.facts.turns
        return tuple((turn.number, tuple(turn_pieces(self._context, turn))) for turn in turns)

    @cached_property
    def _beside_written(self) -> tuple[DigestPiece, ...]:
        context = DigestContext(facts=self.facts)
        return (
            *document_pieces(context),
            *files.pieces(context),
            *state.error_pieces(context),
            *state.finding_pieces(context),
            *explanation_pieces(context),
            *work_pieces(context),
        )

    @cached_property
    def _state(self) -> tuple[DigestPiece, ...]:
        context = DigestContext(facts=self.facts)
        return (
            *state.pending_pieces(context),
            *state.current_pieces(context),
            *last_state_pieces(context),
        )


def _discount_covered(piece: DigestPiece, written: str) -> DigestPiece:
    names = find_names(piece.forms[0])
    if not names or not written:
        return piece
    covered = sum(name in written for name in names) / len(names)
    gains = tuple(gain * (1 - COVERED_SHARE * covered) for gain in piece.gains)
    return replace(piece, gains=gains)


def _prior(context: DigestContext, budget_tokens: int) -> Iterator[DigestPiece]:
    """Carry over summaries of history that is not in the log, each with an equal share of space."""
    prior = context.facts.prior
    if not prior:
        return
    chars = int(budget_tokens * context.limits.prior_ratio * TOKEN_CHARS / len(prior))
    for i, summary in enumerate(prior):
        text = shorten_sections(summary.text, chars)
        if not text:
            continue
        line = f"From the summary of what came before {cite(summary.id)}:\n{text}"
        yield line_piece(1, (2, i), line, Worth.PRIOR)


def _assemble(opening: str, written: Mapping[int, str]) -> str:
    sections = (f"## {n}. {name}\n{written.get(n, NOTHING)}" for n, name in SECTIONS.items())
    return "\n\n".join((opening, *sections))
