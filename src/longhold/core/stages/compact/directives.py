"""The ledger of the user's requests, with their words, states and rendering.

A message is an open directive until the user's words or a command change its state. A model may
change the state only by citing a message. The ledger is folded from the log, so compactions cannot
degrade it.

Messages are shown whole until their budget is spent. Then finished requests shrink to their first
words. Among the others, the longest first lose their middle, then all but their first words.
Finally the oldest are omitted. The first request and lists of requirements are shortened last.
"""

import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Literal, TypeAlias

from longhold.core.log.entries import Directed
from longhold.core.messages.text import CUT, cut, head_and_tail, one_line, quote_rest, sentences
from longhold.core.stages.compact.digest.pieces import remember_counts
from longhold.core.stages.facts.facts import WordsFact, cite
from longhold.core.stages.facts.user_text import (
    BRIEF_CHARS,
    WHOLE_CHARS,
    describe_left_out,
    find_vital,
    shorten_long,
    without_pastes,
)
from longhold.core.view.tokens import estimate_tokens

ENOUGH = 2 / 3
"""Share of the cancelled words that a request must contain to match, as users abbreviate."""

_LEAD = r"^\W*(?:(?:oh|ah|hmm+|ok(?:ay)?|no|wait|actually|sorry|please|so|and|also|well|right|on second thought|but)\b[\s,.:;!-]*)*(?:let'?s |please |you can |we can |could you )?"
_BARE = re.compile(
    _LEAD
    + r"(?:never ?mind|(?:forget|cancel|scrap|drop|skip|ignore|disregard|abandon|undo) (?:it|that|this|about (?:it|that|this)|what i (?:just )?said|my (?:last|previous) (?:message|request)|that (?:last )?request)|don'?t do (?:it|that|this)(?: after all| any ?more)?|stop (?:that|this|it))"
    r"(?:,? (?:please|then|for now|after all|instead))?\s*(?=$|[,.!;:—-]|\bwe\b|\bi\b|\blet)",
    re.IGNORECASE,
)
_NAMING = re.compile(
    _LEAD + r"(?:(?P<plain>never ?mind(?: about)?|forget about"
    r"|(?:don'?t|do not) bother (?:with|about)?|(?:there(?:'s| is) )?no (?:more )?need (?:for|to)"
    r"|(?:we|i) (?:no longer (?:need|want)|(?:don'?t|do not) (?:need|want)(?= .*\b(?:any ?more|after all)\b)))"
    r"|(?P<verb>cancel|scrap|abandon|disregard|forget)|drop|skip|stop|ignore|undo)"
    r"\s+(?P<what>[^.,!?;:\n—]+)",
    re.IGNORECASE,
)
"""`plain` matches are clear. A verb may name work (`cancel buttons`), so it needs an article."""
_ARTICLE = re.compile(r"^(?:the|a|an|my|that|this|those|these|our|your|all|both)\s+", re.IGNORECASE)
_POINTS = re.compile(r"^(?:the|my|that|this|those|these|our|your|all|both)\s", re.IGNORECASE)
_NUMBERED = re.compile(r"(?:#|\bmessage |\bturn |\bT)(\d+)\b")
_CONDITION = re.compile(r"\b(?:when(?:ever)?|if|unless|until|once|while)\b", re.IGNORECASE)
"""Matches a condition, which describes behaviour to build or an open decision."""
_STATED = re.compile(
    r"\b(?:should|must|needs?|shall|can|cannot|could|will|would|may|might|is|are|was|were|has|have"
    r"|had|does|do|did|gets?|goes|works?|looks?|shows?|says?|fails?|breaks?|ha[sd]n'?t|isn'?t"
    r"|aren'?t|doesn'?t|don'?t|can'?t|won'?t)\b",
    re.IGNORECASE,
)
"""Matches a verb in a statement about a thing, as in `the cancel page needs a title`."""
_TAIL = re.compile(
    r"\b(?:any ?more|after all|for now|please|then|instead|because|since|as we)\b.*$", re.I
)
_WORD = re.compile(r"[a-z0-9_][\w./-]+")
_STOP = frozenset(
    [
        *("the", "and", "that", "this", "those", "these", "with", "for", "from", "into", "about"),
        *("any", "all", "your", "our", "can", "you", "please", "just", "have", "has", "will"),
        *("would", "should", "could", "not", "more", "need", "want", "let", "make", "being"),
        *("to", "of", "in", "it", "is", "on", "at", "by", "we", "so", "do", "an", "or", "as", "be"),
        *("my", "us", "me", "up", "request", "message", "task", "thing", "part", "idea", "plan"),
        *("work", "doing", "adding", "using"),
    ]
)

_ASKS = re.compile(r",? (?:and|then|also|plus) |;|, (?=\w+ (?:the|a|an)\b)")
_WRAPPED = re.compile(r"\n(?=[a-z])")
_REMARK = re.compile(
    r"(?:it|its|this|that|see|the|there|they|i|we|you|because|since|as|which|note|for)\b", re.I
)
LONGEST_CHARS = 1_500
"""A longer message contains pasted text, whose words are not the user's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancelling:
    words: frozenset[str] = frozenset()
    """The words that identify the request. They are empty if the previous request is meant."""
    phrase: str = ""
    """The exact wording. Requests that contain it are preferred."""
    number: int = 0
    is_replacing: bool = False


def cancellings(text: str) -> Iterator[Cancelling]:
    for sentence in sentences(text) if len(text) <= LONGEST_CHARS else ():
        if sentence.endswith("?") or _CONDITION.search(sentence):
            continue
        is_replacing = bool(re.search(r"\binstead\b|\brather\b", sentence, re.IGNORECASE))
        if _BARE.match(sentence):
            yield Cancelling(is_replacing=is_replacing)
        elif naming := _NAMING.match(sentence):
            found = _read_naming(naming)
            if found is not None:
                yield replace(found, is_replacing=is_replacing)


def _read_naming(naming: re.Match[str]) -> Cancelling | None:
    """Return the named request, or None if the sentence only makes a statement."""
    what = _TAIL.sub("", naming["what"]).strip()
    phrase = _ARTICLE.sub("", what)
    number = _NUMBERED.search(phrase)
    if number and not find_stems(phrase.replace(number[0], "")):
        return Cancelling(number=int(number[1]))
    if _STATED.search(phrase) or not (naming["plain"] or _POINTS.match(what)):
        return None
    named = find_stems(phrase)
    least = 1 if naming["plain"] or naming["verb"] else 2  # an ambiguous verb needs two words
    return Cancelling(words=named, phrase=phrase.lower()) if len(named) >= least else None


def find_stems(text: str) -> frozenset[str]:
    words = (word.strip(".-/") for word in _WORD.findall(text.lower()))
    return frozenset(_stem(word) for word in words if len(word) > 1 and word not in _STOP)


def likeness(cancelling: Cancelling, text: str) -> float:
    return len(cancelling.words & find_stems(text)) / len(cancelling.words)


def clauses(text: str) -> list[str]:
    asked = sentences(_WRAPPED.sub(" ", text))
    parts = (part.strip() for sentence in asked for part in _ASKS.split(sentence))
    return [part for part in parts if find_stems(part) and not _REMARK.match(part)]


def _stem(word: str) -> str:
    for ending, stem in (("ing", ""), ("ies", "y"), ("ed", ""), ("es", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) > 2:
            return word.removesuffix(ending) + stem
    return word


DirectiveState: TypeAlias = Literal["open", "done", "cancelled", "replaced"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Directive:
    message: int
    turn: int
    text: str
    state: DirectiveState = "open"
    rests_on: int = 0
    """The number of the message that changed the state."""
    in_part: tuple[int, ...] = ()
    """Messages that cancelled part of the request."""

    @property
    def mark(self) -> str:
        if self.state != "open":
            return f"{self.state} by #{self.rests_on}" if self.rests_on else self.state
        if self.in_part:
            return f"in part cancelled by {', '.join(f'#{n}' for n in self.in_part)}"
        return ""


@dataclass(slots=True)
class DirectiveLedger:
    """The directives by message. The ledger reads each message and each change once."""

    by_message: dict[int, Directive] = field(default_factory=dict)
    _changed: int = field(default=0, compare=False)

    @property
    def directives(self) -> tuple[Directive, ...]:
        return tuple(self.by_message.values())

    def marks(self) -> Mapping[int, str]:
        return {n: each.mark for n, each in self.by_message.items() if each.mark}

    def open_texts(self) -> list[str]:
        return [each.text for each in self.by_message.values() if each.state == "open"]

    def without_words(self, messages: frozenset[int], instead: str) -> "DirectiveLedger":
        hidden = {
            n: replace(self.by_message[n], text=instead) for n in self.by_message if n in messages
        }
        return DirectiveLedger(self.by_message | hidden, self._changed)

    def copy(self) -> "DirectiveLedger":
        return DirectiveLedger(dict(self.by_message), self._changed)

    def follow(
        self, said: Iterable[tuple[int, WordsFact]], directed: Iterable[Directed] = ()
    ) -> "DirectiveLedger":
        new = (entry for entry in directed if entry.n > self._changed)
        changes = deque(sorted(new, key=lambda entry: entry.n))
        for turn, words in said:
            if words.via == "shell" or not words.text.strip():
                continue
            while changes and changes[0].n < words.id:
                self.direct(changes.popleft())
            self.hear(turn, words)
        for change in changes:
            self.direct(change)
        return self

    def hear(self, turn: int, words: WordsFact) -> None:
        for cancelling in cancellings(words.text):
            self._cancel(cancelling, words.id)
        text = f"{words.about}: {words.text}" if words.via == "answer" else words.text
        known = self.by_message.get(words.id)
        if known is not None:  # one round has two answers
            text = f"{known.text}\n{text}"
        self.by_message[words.id] = Directive(message=words.id, turn=turn, text=text)

    def direct(self, entry: Directed) -> None:
        self._changed = max(self._changed, entry.n)
        known, n = self.by_message.get(entry.message), entry.message
        if known is not None and (entry.by != "model" or entry.rests_on):
            self.by_message[n] = replace(known, state=entry.state, rests_on=entry.rests_on)

    def _cancel(self, cancelling: Cancelling, by: int) -> None:
        for target in self._find_meant(cancelling):
            asked = clauses(target.text) if cancelling.words else []
            if len(asked) > 1 and not all(likeness(cancelling, each) for each in asked):
                changed = replace(target, in_part=(*target.in_part, by))
            else:
                state: DirectiveState = "replaced" if cancelling.is_replacing else "cancelled"
                changed = replace(target, state=state, rests_on=by)
            self.by_message[target.message] = changed

    def _find_meant(self, cancelling: Cancelling) -> list[Directive]:
        """Find the directives to cancel: the newest of the best matches.

        If two or more words all match, every match is cancelled, including corrections of the
        request.
        """
        still_open = [each for each in self.by_message.values() if each.state == "open"]
        if cancelling.number:
            return [d for d in still_open if cancelling.number in (d.message, d.turn)][:1]
        requests = [
            each
            for each in still_open
            if len(clauses(each.text)) > 1 or not any(cancellings(each.text))
        ]
        if not cancelling.words:
            return requests[-1:]
        literal = [each for each in requests if cancelling.phrase in each.text.lower()]
        alike = [(likeness(cancelling, each.text), each) for each in literal or requests]
        best = max((share for share, _ in alike), default=0.0)
        found = [each for share, each in alike if share == best >= ENOUGH]
        return found if best == 1 and len(cancelling.words) > 1 else found[-1:]


_CLAIM = re.compile(
    r"#(?P<message>\d+)\W+(?P<state>open|done|cancelled|replaced)\b[^#\n]*#(?P<rests_on>\d+)",
    re.IGNORECASE,
)


def read_claims(text: str) -> Iterator[Directed]:
    """Parse state changes from a model's answer, one per line: `#12 done, see #40`."""
    for found in filter(None, map(_CLAIM.search, text.splitlines())):
        state: DirectiveState = found["state"].lower()  # type: ignore[assignment]
        yield Directed(
            message=int(found["message"]), state=state, rests_on=int(found["rests_on"]), by="model"
        )


def accept(
    claims: Iterable[Directed],
    ledger: DirectiveLedger,
    *,
    said: Collection[int],
    known: Collection[int],
) -> Iterator[Directed]:
    """Yield the valid claims, which cite an existing, later message.

    Only the user may cancel, replace or reopen a request, so such claims must cite one of `said`.
    """
    for claim in claims:
        directive = ledger.by_message.get(claim.message)
        citable = known if claim.state == "done" else said
        if directive is None or directive.state == claim.state or claim.rests_on not in citable:
            continue
        if claim.rests_on > max(claim.message, directive.rests_on):
            yield claim


POINTER_CHARS = 80
FITTING = 4
"""Number of attempts to fit a message's size to the space left."""

HEADING = (
    "What the user said, word for word. What is marked cancelled, replaced or done is not to be "
    "taken up again."
)
SHORTENED = f"Where {CUT} stands words are left out"
CAN_OPEN = "; all of them are in the message cited before it."
LEAST_LINE_TOKENS = 10
"""Tokens of the shortest message with its turn and number. It limits how many are shown."""
LEFT_OUT_TOKENS = 30


tokens = remember_counts(estimate_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownWords:
    text: str = ""
    shortened: tuple[Directive, ...] = ()


def render_user_messages(
    ledger: DirectiveLedger, budget_tokens: int, *, can_open: bool = True
) -> ShownWords:
    """Render the messages. `can_open` means that the model has a tool to show them in full."""
    if not ledger.directives:
        return ShownWords()
    vital = find_vital((each.message, each.text) for each in ledger.directives)
    most = max(1, budget_tokens // LEAST_LINE_TOKENS)
    beyond = [each for each in ledger.directives[:-most] if each.message not in vital]
    gone = {each.message for each in beyond}
    directives = [each for each in ledger.directives if each.message not in gone]
    whole = {each.message: _line(each, each.text.strip("\n")) for each in directives}
    shown, sizes = dict(whole), {n: tokens(line) for n, line in whole.items()}
    spent = estimate_tokens(HEADING) + (LEFT_OUT_TOKENS if beyond else 0)
    excess = spent + sum(sizes.values()) - budget_tokens
    if excess > 0:
        excess += estimate_tokens(SHORTENED)
    for each, text, can_fill in _shorter_forms(directives, vital, can_open=can_open):
        if excess <= 0:
            break
        n, line = each.message, _line(each, text)
        if can_fill:
            line = _fill_room(each, line, sizes[n] - excess, cite(n) if can_open else "")
        saved = sizes[n] - estimate_tokens(line)
        if saved > 0:
            shown[n], sizes[n] = line, sizes[n] - saved
            excess -= saved
    others = [each for each in directives[:-1] if each.message not in vital]
    oldest = _choose_oldest(others, sizes, excess)
    kept = [each for each in directives if each not in oldest]
    left_out = [*beyond, *oldest]
    lines = [HEADING, *(shown[each.message] for each in kept)]
    if left_out:
        left = [each.message for each in left_out]
        lines.insert(1, describe_left_out(left, can_open=can_open))
    shortened = [each for each in kept if shown[each.message] != whole[each.message]]
    if shortened:
        lines.insert(1, SHORTENED + (CAN_OPEN if can_open else "."))
    return ShownWords(text="\n".join(lines), shortened=(*left_out, *shortened))


def words_tokens(ledger: DirectiveLedger, most_old_tokens: int | None = None) -> int:
    """Return the size of the messages. Other than vital ones count up to `most_old_tokens`."""
    sizes = {each.message: tokens(_line(each, each.text.strip("\n"))) for each in ledger.directives}
    vital = find_vital((each.message, each.text) for each in ledger.directives)
    others = sum(size for message, size in sizes.items() if message not in vital)
    most = others if most_old_tokens is None else min(others, most_old_tokens)
    return estimate_tokens(HEADING) + sum(sizes.values()) - others + most


def bounded_tokens(ledger: DirectiveLedger, most_tokens: int) -> int:
    """Return the size of the messages if long ones are shortened, at most `most_tokens`.

    The first message, the last message and lists of requirements are never shortened.
    """
    vital = find_vital((each.message, each.text) for each in ledger.directives)
    last = ledger.directives[-1:]
    texts = (
        each.text if each.message in vital or each in last else shorten_long(each.text, CUT)
        for each in ledger.directives
    )
    lines = (_line(each, text) for each, text in zip(ledger.directives, texts, strict=True))
    return max(
        most_tokens, estimate_tokens(HEADING + SHORTENED + CAN_OPEN) + sum(map(tokens, lines))
    )


def trimmed_tokens(ledger: DirectiveLedger) -> int:
    """Return the size of the messages without pasted text and finished requests."""
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
    """Choose the messages to omit, oldest first, if even the first words of all do not fit."""
    if excess <= 0:
        return ()
    freed = accumulate(sizes[each.message] for each in directives)
    enough = (
        i for i, freed_tokens in enumerate(freed, 1) if freed_tokens >= excess + LEFT_OUT_TOKENS
    )
    return directives[: next(enough, len(directives))]


def _shorter_forms(
    directives: Sequence[Directive], vital: frozenset[int], *, can_open: bool
) -> Iterator[tuple[Directive, str, bool]]:
    """Yield shorter texts in the order of use. The flag means that a text may fill the space."""
    wheres = {each.message: cite(each.message) if can_open else "" for each in directives}
    longer = [each for each in directives[:-1] if len(each.text) > WHOLE_CHARS]
    longer = sorted(
        (each for each in longer if each.message not in vital),
        key=lambda each: (each.state == "open", -len(each.text).bit_length()),
    )
    for each in longer:
        yield each, without_pastes(each.text, wheres[each.message]), False
    for each in longer:
        yield each, shorten_long(each.text, wheres[each.message]), True
    yield from ((each, _pointer(each), False) for each in directives if each.state != "open")
    # Among messages of about the same length, the oldest come first.
    longest = sorted(directives, key=lambda each: -len(each.text).bit_length())
    long = [one for one in longest if one.state == "open" and len(one.text) > POINTER_CHARS]
    for is_vital in (False, True):
        group = [
            (each, wheres[each.message]) for each in long if (each.message in vital) == is_vital
        ]
        yield from ((each, without_pastes(each.text, where), False) for each, where in group)
        yield from (
            (each, head_and_tail(each.text, BRIEF_CHARS, where), True) for each, where in group
        )
        yield from ((each, _pointer(each), False) for each, _ in group)


def _fill_room(directive: Directive, brief: str, room_tokens: int, pointer: str) -> str:
    """Return as much of a message as fits, but at least its brief form."""
    text = directive.text
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
    return quote_rest(f"T{directive.turn} {cite(directive.message)}{mark}: {text}")
