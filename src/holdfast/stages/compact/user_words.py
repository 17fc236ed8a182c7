"""The user's messages as they stand in a summary: whole until their budget is spent.

Then, oldest first: what is done or taken back shrinks to its first words, what was pasted loses its
middle, a request its own, and at last all but its first words. Whatever is shortened says so and
where all of it is, and the model that writes the summary is asked to cover it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from holdfast.log.secrets import Mask
from holdfast.messages.cut import cut, head_and_tail, one_line
from holdfast.stages.compact.directives import Directive, DirectiveLedger
from holdfast.stages.facts.facts import cite
from holdfast.stages.facts.pastes import without_pastes
from holdfast.view.tokens import estimated_tokens

BRIEF_CHARS = 480
"""For a request: its first and last sentences."""
POINTER_CHARS = 80
"""For what is finished."""
FITTING = 4
"""How often a message's size is corrected until it fills the room that is left."""

HEADING = (
    "What the user said, word for word. What is marked cancelled, replaced or done is not to be "
    "taken up again."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownWords:
    text: str = ""
    shortened: tuple[Directive, ...] = ()
    """Those that are not there word for word."""


@dataclass(frozen=True, slots=True)
class _Shorter:
    directive: Directive
    text: str
    fills: bool = False
    """It may be as long as the room allows."""


def show_words(ledger: DirectiveLedger, budget_tokens: int, *, masked: Mask = str) -> ShownWords:
    """Write the ledger within a budget."""
    # masked before anything is cut: half a secret is not recognised
    safe = [replace(each, text=masked(each.text).strip("\n")) for each in ledger.directives]
    if not safe:
        return ShownWords()
    whole = {each.message: _line(each, each.text) for each in safe}
    shown, sizes = dict(whole), {n: estimated_tokens(line) for n, line in whole.items()}
    excess = estimated_tokens(HEADING) + sum(sizes.values()) - budget_tokens
    for shorter in _shorter_forms(safe):
        if excess <= 0:
            break
        n = shorter.directive.message
        line = _line(shorter.directive, shorter.text)
        if shorter.fills:
            line = _filling(shorter.directive, line, sizes[n] - excess)
        saved = sizes[n] - estimated_tokens(line)
        if saved > 0:
            shown[n], sizes[n] = line, sizes[n] - saved
            excess -= saved
    shortened = tuple(each for each in safe if shown[each.message] != whole[each.message])
    return ShownWords(text="\n".join((HEADING, *shown.values())), shortened=shortened)


def trimmed_tokens(ledger: DirectiveLedger, *, masked: Mask = str) -> int:
    """Return what they take once nothing pasted and nothing finished is left in them."""
    safe = (replace(each, text=masked(each.text).strip("\n")) for each in ledger.directives)
    texts = (
        _line(each, without_pastes(each.text, cite(each.message)))
        if each.state == "open"
        else _line(each, _pointer(each))
        for each in safe
    )
    return estimated_tokens(HEADING) + sum(map(estimated_tokens, texts))


def words_tokens(ledger: DirectiveLedger, *, masked: Mask = str) -> int:
    """Return what all of them take, whole."""
    lines = (_line(each, masked(each.text).strip("\n")) for each in ledger.directives)
    return estimated_tokens(HEADING) + sum(map(estimated_tokens, lines))


def _shorter_forms(directives: list[Directive]) -> Iterator[_Shorter]:
    wanted = [each for each in directives if each.state == "open"]
    for each in directives:
        if each.state != "open":
            yield _Shorter(each, _pointer(each))
    for each in wanted:
        yield _Shorter(each, without_pastes(each.text, cite(each.message)))
    for each in wanted:
        yield _Shorter(each, head_and_tail(each.text, BRIEF_CHARS, cite(each.message)), fills=True)
    for each in wanted:
        yield _Shorter(each, _pointer(each))


def _filling(directive: Directive, brief: str, room_tokens: int) -> str:
    """Return as much of a message as its room holds, but no less than its brief form."""
    text, pointer = directive.text, cite(directive.message)
    chars = int(len(text) * room_tokens / max(estimated_tokens(text), 1))
    for _ in range(FITTING):
        if chars <= BRIEF_CHARS:
            break
        line = _line(directive, head_and_tail(text, chars, pointer))
        excess = estimated_tokens(line) - room_tokens
        if excess <= 0:
            return line
        chars -= max(excess * 4, BRIEF_CHARS // 4)
    return brief


def _pointer(directive: Directive) -> str:
    text = one_line(directive.text)
    if len(text) <= POINTER_CHARS:
        return text
    return f"{cut(text, POINTER_CHARS)} [all {len(text):,} characters in {cite(directive.message)}]"


def _line(directive: Directive, text: str) -> str:
    mark = f" ({directive.mark})" if directive.mark else ""
    return f"T{directive.turn} {cite(directive.message)}{mark}: {text}"
