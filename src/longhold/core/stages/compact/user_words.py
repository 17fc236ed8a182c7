"""The user's messages in a summary: whole until their budget is spent.

Then, oldest first: finished requests shrink to their first words, pastes and open requests lose
their middle, then all but their first words. Finally the oldest are left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from longhold.core.messages.text import CUT, cut, head_and_tail, one_line, pluralize
from longhold.core.stages.compact.digest.pieces import remember_counts
from longhold.core.stages.compact.directives import Directive, DirectiveLedger
from longhold.core.stages.facts.facts import cite
from longhold.core.stages.facts.user_text import without_pastes
from longhold.core.view.tokens import estimate_tokens

BRIEF_CHARS = 480
"""Enough for the first and last sentences of a request."""
POINTER_CHARS = 80
FITTING = 4
"""How often a message's size is corrected to fill the space left."""

HEADING = (
    "What the user said, word for word. What is marked cancelled, replaced or done is not to be "
    "taken up again."
)
SHORTENED = (
    f"Where {CUT} stands words are left out; all of them are in the message cited before it."
)
LEAST_LINE_TOKENS = 10
"""The size of the shortest message with its turn and number. It limits how many are shown."""
LEFT_OUT_TOKENS = 30


tokens = remember_counts(estimate_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownWords:
    text: str = ""
    shortened: tuple[Directive, ...] = ()


@dataclass(frozen=True, slots=True)
class _Shorter:
    directive: Directive
    text: str
    fills: bool = False


def render_user_messages(ledger: DirectiveLedger, budget_tokens: int) -> ShownWords:
    if not ledger.directives:
        return ShownWords()
    most = max(1, budget_tokens // LEAST_LINE_TOKENS)
    beyond, directives = ledger.directives[:-most], ledger.directives[-most:]
    whole = {each.message: _line(each, each.text.strip("\n")) for each in directives}
    shown, sizes = dict(whole), {n: tokens(line) for n, line in whole.items()}
    spent = estimate_tokens(HEADING) + (LEFT_OUT_TOKENS if beyond else 0)
    excess = spent + sum(sizes.values()) - budget_tokens
    if excess > 0:
        excess += estimate_tokens(SHORTENED)
    for shorter in _shorter_forms(directives):
        if excess <= 0:
            break
        n = shorter.directive.message
        line = _line(shorter.directive, shorter.text)
        if shorter.fills:
            line = _fill_room(shorter.directive, line, sizes[n] - excess)
        saved = sizes[n] - estimate_tokens(line)
        if saved > 0:
            shown[n], sizes[n] = line, sizes[n] - saved
            excess -= saved
    oldest = _choose_oldest(directives, sizes, excess)
    kept, left_out = directives[len(oldest) :], (*beyond, *oldest)
    lines = [HEADING, *(shown[each.message] for each in kept)]
    if left_out:
        lines.insert(1, _note_left_out(left_out))
    shortened = [each for each in kept if shown[each.message] != whole[each.message]]
    if shortened:
        lines.insert(1, SHORTENED)
    return ShownWords(text="\n".join(lines), shortened=(*left_out, *shortened))


def words_tokens(ledger: DirectiveLedger) -> int:
    lines = (_line(each, each.text.strip("\n")) for each in ledger.directives)
    return estimate_tokens(HEADING) + sum(map(tokens, lines))


def trimmed_tokens(ledger: DirectiveLedger) -> int:
    """Return the size of the messages without pastes and finished requests."""
    texts = (
        _line(each, without_pastes(each.text.strip("\n"), cite(each.message)))
        if each.state == "open"
        else _line(each, _pointer(each))
        for each in ledger.directives
    )
    return estimate_tokens(HEADING) + sum(map(tokens, texts))


def _choose_oldest(
    directives: Sequence[Directive], sizes: Mapping[int, int], excess: int
) -> Sequence[Directive]:
    """Choose the messages to omit if even all first words are too long. The latest stays."""
    if excess <= 0:
        return ()
    freed = accumulate(sizes[each.message] for each in directives)
    enough = (
        i for i, freed_tokens in enumerate(freed, 1) if freed_tokens >= excess + LEFT_OUT_TOKENS
    )
    return directives[: min(next(enough, len(directives)), len(directives) - 1)]


def _note_left_out(directives: Sequence[Directive]) -> str:
    first, last = cite(directives[0].message), cite(directives[-1].message)
    return f"{pluralize(len(directives), 'older message')} from {first} to {last} left out; the log has them."


def _shorter_forms(directives: Sequence[Directive]) -> Iterator[_Shorter]:
    wanted = [each for each in directives if each.state == "open"]
    for each in directives:
        if each.state != "open":
            yield _Shorter(each, _pointer(each))
    long = [each for each in wanted if len(each.text) > POINTER_CHARS]
    for each in long:
        yield _Shorter(each, without_pastes(each.text, cite(each.message)))
    for each in long:
        yield _Shorter(each, head_and_tail(each.text, BRIEF_CHARS, cite(each.message)), fills=True)
    for each in long:
        yield _Shorter(each, _pointer(each))


def _fill_room(directive: Directive, brief: str, room_tokens: int) -> str:
    """Return as much of a message as fits, but at least its brief form."""
    text, pointer = directive.text, cite(directive.message)
    chars = int(len(text) * room_tokens / max(estimate_tokens(text), 1))
    for _ in range(FITTING):
        if chars <= BRIEF_CHARS:
            break
        line = _line(directive, head_and_tail(text, chars, pointer))
        excess = estimate_tokens(line) - room_tokens
        if excess <= 0:
            return line
        chars -= max(excess * 4, BRIEF_CHARS // 4)
    return brief


def _pointer(directive: Directive) -> str:
    return cut(one_line(directive.text), POINTER_CHARS)


def _line(directive: Directive, text: str) -> str:
    mark = f" ({directive.mark})" if directive.mark else ""
    return f"T{directive.turn} {cite(directive.message)}{mark}: {text}"
