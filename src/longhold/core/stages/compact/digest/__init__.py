"""A digest: a summary of a segment in nine sections, from the log alone, without a model.

`FactPieces.digest` writes all nine. `engine_part` only writes additions to a model's summary.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import TypeAlias

from longhold.core.messages.text import pluralize, quote_rest
from longhold.core.stages.compact.digest import files, state
from longhold.core.stages.compact.digest.context import (
    LIMITS,
    OLD_SHARE,
    DigestContext,
    is_finished,
)
from longhold.core.stages.compact.digest.files import document_pieces
from longhold.core.stages.compact.digest.headings import shorten_sections
from longhold.core.stages.compact.digest.pieces import (
    SMALL,
    TIGHT,
    Count,
    DigestPiece,
    Worth,
    fit,
    remember_counts,
)
from longhold.core.stages.compact.digest.state import explanation_pieces, last_state_pieces
from longhold.core.stages.compact.digest.timeline import (
    message_pieces,
    open_pieces,
    turn_pieces,
    work_pieces,
)
from longhold.core.stages.facts.facts import Call, Facts, cite
from longhold.core.stages.facts.names import find_names
from longhold.core.stages.facts.user_text import (
    WHOLE_CHARS,
    describe_left_out,
    find_vital,
    shorten_long,
)
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
TOKEN_CHARS = 4
"""Average characters per token in prose, used only to size earlier summaries."""
COVERED_SHARE = 0.8
"""The share of its value that a piece loses if the model's summary has all its names."""
LEAD_TOKENS = 12

_TurnPieces: TypeAlias = tuple[tuple[int, tuple[DigestPiece, ...]], ...]


def budget_for(segment_tokens: int, facts: Facts, words_tokens: int = LIMITS.words_tokens) -> int:
    """Return a digest's token budget, which is a share of the segment minus the user's words."""
    share = LIMITS.base_tokens + int(segment_tokens * LIMITS.tokens_ratio)
    spoken = min(_spoken_tokens(facts, remember_counts(estimate_tokens)), words_tokens)
    return max(min(share, LIMITS.most_tokens + spoken), LIMITS.least_tokens + spoken)


def _spoken_tokens(facts: Facts, count: Count) -> int:
    return sum(count(quote_rest(words.text)) + LEAD_TOKENS for _, words in facts.words())


def _choose_whole(
    facts: Facts, words_tokens: int, marks: Mapping[int, str], count: Count
) -> frozenset[int]:
    """Choose the messages to keep whole: vital messages, the last, and short open requests."""
    said = [words for _, words in facts.words()]
    first = find_vital((words.id, words.text) for words in said) | {w.id for w in said[-1:]}
    said.sort(
        key=lambda words: (
            words.id not in first,
            is_finished(marks.get(words.id, "")),
            words.id < facts.since and len(words.text) > WHOLE_CHARS,
            len(words.text),
        ),
    )
    totals = accumulate(count(quote_rest(words.text)) for words in said)
    return frozenset(
        words.id for words, total in zip(said, totals, strict=True) if total <= words_tokens
    )


@dataclass(frozen=True, kw_only=True)
class FactPieces:
    """The digest pieces for some facts. They are computed only once per draft."""

    facts: Facts
    marks: Mapping[int, str] = field(default_factory=dict)

    def digest(
        self,
        budget_tokens: int,
        *,
        count: Count = estimate_tokens,
        has_log: bool = True,
        can_open: bool = True,
        words_tokens: int = 0,
    ) -> str:
        """Write all nine sections. `words_tokens` of the budget are for long user messages.

        With 0, nothing is reserved, and all lines compete by their value.
        """
        count = remember_counts(estimate_tokens) if count is estimate_tokens else count
        context = self._context_for(budget_tokens, words_tokens, count)
        context = replace(context, can_open=can_open)
        hidden = context.hidden_turns
        keeps_open = words_tokens or self.open_tokens <= budget_tokens * LIMITS.open_ratio
        turns = self._turns if keeps_open else self._turns_by_worth
        tight = TIGHT if words_tokens else SMALL
        pieces = (
            *_prior(context, budget_tokens),
            *self._about_work,
            *message_pieces(context),
            *(piece for turn, told in turns for piece in told if turn not in hidden),
        )
        opening = OPENING if has_log else OPENING_ALONE
        root = self._context.root
        opening += "\n" + quote_rest(f"Paths are relative to {root}/.") if root else ""
        room = budget_tokens - count(_assemble(opening, {}))
        while True:
            sections = fit(pieces, room, count, tight)
            text = _assemble(opening, sections)
            excess = count(text) - budget_tokens  # joining lines can add tokens
            if excess <= 0 or room <= 0:
                break
            room -= excess
        # The budget does not limit this line, because a reader must know about omissions.
        missing = _state_left_out(context, sections.get(6, ""))
        return _assemble(opening, _state_missing(missing, sections))

    @cached_property
    def open_tokens(self) -> int:
        """The tokens of the open turn's calls, one line each."""
        pieces = open_pieces(self._context)
        return sum(estimate_tokens(piece.forms[0]) + 1 for piece in pieces)

    def engine_part(self, budget_tokens: int, written: str = "") -> dict[int, str]:
        """Write the facts from the log that `written`, a model's summary, does not cover."""
        beside = (_discount_covered(piece, written) for piece in self._beside_written)
        sections = fit((*self._state, *beside), budget_tokens, estimate_tokens)
        return _state_missing(_state_left_out_steps(self._context, sections.get(6, "")), sections)

    def _context_for(self, budget_tokens: int, words_tokens: int, count: Count) -> DigestContext:
        facts, marks = self.facts, self.marks
        is_tight = _spoken_tokens(facts, count) > budget_tokens * LIMITS.spoken_ratio
        if is_tight and words_tokens:
            least = sum(count(shorten_long(words.text)) for _, words in facts.words())
            is_tight = least > words_tokens
        return DigestContext(
            facts=facts,
            marks=marks,
            is_tight=is_tight,
            is_small=is_tight and not words_tokens,
            whole=_choose_whole(facts, words_tokens, marks, count) if words_tokens else frozenset(),
            most_messages=budget_tokens // LIMITS.message_tokens,
            vital=find_vital((words.id, words.text) for _, words in facts.words()),
        )

    @cached_property
    def _context(self) -> DigestContext:
        context = DigestContext(facts=self.facts, marks=self.marks)
        return replace(context, quoted=files.find_quoted(context))

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
    def _turns(self) -> _TurnPieces:
        return _make_turns(self._context)

    @cached_property
    def _turns_by_worth(self) -> _TurnPieces:
        return _make_turns(replace(self._context, keeps_open=False))

    @cached_property
    def _beside_written(self) -> tuple[DigestPiece, ...]:
        context = DigestContext(facts=self.facts)
        return (
            *document_pieces(context),
            *files.pieces(context),
            *state.error_pieces(context),
            *(replace(piece, tight_share=1.0) for piece in state.finding_pieces(context)),
            *explanation_pieces(context),
            *work_pieces(context),
        )

    @cached_property
    def _state(self) -> tuple[DigestPiece, ...]:
        context = DigestContext(facts=self.facts)
        return (*state.pending_pieces(context), *last_state_pieces(context))


def _make_turns(context: DigestContext) -> _TurnPieces:
    turns = context.facts.turns
    return tuple((turn.number, tuple(turn_pieces(context, turn))) for turn in turns)


def _discount_covered(piece: DigestPiece, written: str) -> DigestPiece:
    names = find_names(piece.forms[0])
    if not names or not written:
        return piece
    covered = sum(name in written for name in names) / len(names)
    gains = tuple(gain * (1 - COVERED_SHARE * covered) for gain in piece.gains)
    return replace(piece, gains=gains)


def _prior(context: DigestContext, budget_tokens: int) -> Iterator[DigestPiece]:
    """Yield summaries of history that is not in the log, each with an equal share of space."""
    prior = context.facts.prior
    if not prior:
        return
    for i, summary in enumerate(prior):
        texts = [
            shorten_sections(summary.text, int(budget_tokens * ratio * TOKEN_CHARS / len(prior)))
            for ratio in context.limits.prior_ratios
        ]
        if texts[0]:
            lead = f"From the summary of what came before {cite(summary.id)}:\n"
            share = OLD_SHARE if context.facts.since else 1.0  # the log has the later turns
            gains = (share * Worth.PRIOR, share * Worth.MORE_PRIOR)
            yield DigestPiece(1, (2, i), tuple(lead + text for text in texts), gains)


def _state_missing(missing: Iterable[str], sections: dict[int, str]) -> dict[int, str]:
    told = "\n".join(filter(None, (*missing, sections.get(6, ""))))
    return {**sections, 6: told} if told else sections


def _state_left_out(context: DigestContext, shown: str) -> Iterator[str]:
    said = [words.id for _, words in context.facts.words() if cite(words.id) not in shown]
    if said:
        yield describe_left_out(said, can_open=context.can_open)
    yield from _state_left_out_steps(context, shown)


def _state_left_out_steps(context: DigestContext, shown: str) -> Iterator[str]:
    steps = [step for turn in context.facts.turns[-1:] for step in turn.steps]
    steps = [one for one in steps if isinstance(one, Call) and cite(one.id) not in shown]
    if steps and context.open_turn >= 0:
        yield f"{pluralize(len(steps), 'call')} of the open turn left out, the oldest first."


def _assemble(opening: str, written: Mapping[int, str]) -> str:
    sections = (f"## {n}. {name}\n{written[n]}" for n, name in SECTIONS.items() if n in written)
    return "\n\n".join((opening, *sections))
