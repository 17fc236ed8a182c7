"""What a session was spent on: by model, source, kind of token and turn, and without a cache.

Each answer and each call of a fork is paid once, at the prices of its day. A model without a price
is counted in tokens and named, never priced at a guess. What a transcript shows and did not count,
an answer recorded in mid-stream or the call that wrote a summary, is estimated and kept apart.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import msgspec
from msgspec import Struct

from longhold.core.log.entries import AnyEntry, Compacted, Forked, Said
from longhold.core.log.spending import is_own
from longhold.core.log.unique_answers import MAIN, UniqueAnswer, answers_of, day_of
from longhold.core.messages.usage import add_fields
from longhold.core.models.prices import Cost, cost, usage_cost
from longhold.core.stages.facts.user_text import read_typed
from longhold.core.view.tokens import default_weights, weigh


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """Tokens by how they were billed."""

    uncached: int = 0
    read: int = 0
    write_5m: int = 0
    write_1h: int = 0
    output: int = 0

    @property
    def prompt(self) -> int:
        return self.uncached + self.read + self.write_5m + self.write_1h

    @property
    def all(self) -> int:
        return self.prompt + self.output

    def __add__(self, other: "Tokens") -> "Tokens":
        return add_fields(self, other)


class SessionCall(Struct, frozen=True, kw_only=True, array_like=True):
    key: str
    """The same for copies of one call in several files."""
    at: float
    model: str
    source: str
    uncached: int = 0
    read: int = 0
    write_5m: int = 0
    write_1h: int = 0
    output: int = 0
    usd: float = 0.0
    is_priced: bool = True
    unrecorded_output: int = 0
    unrecorded_calls: int = 0
    unrecorded_usd: float = 0.0
    cause: str = ""
    """Why it read less from the cache than it could; '' if it did not."""
    is_expected: bool = False
    idle_seconds: float = 0.0
    lost_tokens: int = 0
    lost_usd: float = 0.0
    hour_usd: float = 0.0
    """What writing for an hour instead of five minutes would have added."""


class SessionCalls(Struct, frozen=True, kw_only=True, array_like=True):
    agent: str = ""
    """Whose session it is; '' for a file that is none."""
    session: str = ""
    directory: str = ""
    title: str = ""
    window_tokens: int = 0
    """As far as the file proves it."""
    turns: int = 0
    calls: tuple[SessionCall, ...] = ()
    is_import: bool = False
    """It is our copy of another agent's session."""
    problem: str = ""


encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(SessionCalls).decode


UNFINISHED = ("", "aborted", "broken")
"""What an answer that did not come to its end stopped for."""
BELIEVED_SHARE = 0.5
"""Estimates are within a third of a provider's count; less than half of one is not a count."""
COMPACT = "compact"
"""The source of the calls that write summaries."""
UNKNOWN = "unknown model"


@dataclass(frozen=True, slots=True, kw_only=True)
class CostItem:
    """A sum of calls."""

    name: str = ""
    calls: int = 0
    tokens: Tokens = field(default_factory=Tokens)
    cost: Cost = field(default_factory=Cost)
    bare_usd: float = 0.0
    """The same calls if nothing had been cached."""
    unpriced_calls: int = 0
    unrecorded_output: int = 0
    """Estimated tokens of answers whose usage was recorded in mid-stream, beyond what that says."""
    unrecorded_calls: int = 0
    """Summaries that a client had written without recording the call."""
    unrecorded_usd: float = 0.0
    """About what both cost; not part of `cost`."""

    @property
    def usd(self) -> float:
        return self.cost.total + self.unrecorded_usd

    def __add__(self, other: "CostItem") -> "CostItem":
        return add_fields(self, other, name=self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnItem:
    number: int
    """Its place among the turns, from 1, as `explain` counts them."""
    n: int
    said: str
    item: CostItem = field(default_factory=CostItem)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    total: CostItem
    models: tuple[CostItem, ...]
    """Dearest first."""
    sources: tuple[CostItem, ...]
    """Who asked: the conversation itself (`main`) and its forks; dearest first."""
    turns: tuple[TurnItem, ...]
    """In order; turns without a call are left out."""

    @property
    def own(self) -> CostItem:
        return sum((item for item in self.sources if is_own(item.name)), CostItem(name="own"))

    @property
    def own_share(self) -> float:
        total = self.total.cost.total
        return self.own.cost.total / total if total else 0.0


def bill(entries: Iterable[AnyEntry]) -> Bill:
    history = list(entries)
    answers, unpaid = answers_of(history), unrecorded_summaries(history)
    model = ""
    turns: list[TurnItem] = []
    models: dict[str, CostItem] = {}
    sources: dict[str, CostItem] = {}
    for at, entry in enumerate(history):
        if not turns or begins_turn(entry):
            turns.append(TurnItem(number=len(turns) + 1, n=entry.n, said=words_of(entry)))
        if at in answers:
            item, source = price_answer(answers[at]), MAIN
            model = answers[at].model
        elif isinstance(entry, Forked):
            item, source = price_answer(entry), entry.source
        elif isinstance(entry, Compacted) and entry.n in unpaid:
            item, source = unrecorded_summary(entry, model), COMPACT
        else:
            continue
        _add(models, item)
        _add(sources, replace(item, name=source))
        turns[-1] = replace(turns[-1], item=turns[-1].item + item)
    return Bill(
        total=sum(models.values(), CostItem()),
        models=_dearest_first(models),
        sources=_dearest_first(sources),
        turns=tuple(turn for turn in turns if turn.item.calls or turn.item.unrecorded_calls),
    )


def begins_turn(entry: AnyEntry) -> bool:
    """Return whether the user asks for something here; commands to a client and its notices do not."""
    return isinstance(entry, Said) and not entry.hidden and read_typed(entry.content) is not None


def words_of(entry: AnyEntry) -> str:
    """Return what the user typed, without what a client wraps around it."""
    said = read_typed(entry.content) if isinstance(entry, Said) else None
    return said.text if said else ""


def unrecorded_summaries(history: Sequence[AnyEntry]) -> set[int]:
    """Find the compactions whose call is not in the history; recorded calls are the earliest's."""
    recorded = sum(isinstance(entry, Forked) and entry.source == COMPACT for entry in history)
    theirs = [entry.n for entry in history if isinstance(entry, Compacted) and entry.by == "import"]
    return set(theirs[recorded:])


def unrecorded_summary(entry: Compacted, model: str) -> CostItem:
    """Estimate what writing a summary cost: the history read from the cache, and its own length."""
    output = round(weigh(entry.measure, default_weights(model)))
    paid = cost(model, read_tokens=entry.before_tokens, output_tokens=output, at=day_of(entry.at))
    return CostItem(
        name=model or UNKNOWN, unrecorded_calls=1, unrecorded_usd=paid.total if paid else 0.0
    )


def _add(items: dict[str, CostItem], item: CostItem) -> None:
    items[item.name] = items[item.name] + item if item.name in items else item


def _dearest_first(items: dict[str, CostItem]) -> tuple[CostItem, ...]:
    return tuple(sorted(items.values(), key=lambda item: -item.cost.total))


def price_answer(answer: UniqueAnswer | Forked) -> CostItem:
    day, usage = day_of(answer.at), answer.usage
    missing = _unrecorded_output(answer)
    estimate = cost(answer.model, output_tokens=missing, at=day) if missing else None
    tokens = Tokens(
        uncached=usage.input_tokens,
        read=usage.cache_read_tokens,
        write_5m=usage.written_5m_tokens,
        write_1h=usage.written_1h_tokens,
        output=usage.output_tokens,
    )
    paid = usage_cost(answer.model, usage, day)
    bare = cost(answer.model, uncached_tokens=tokens.prompt, output_tokens=tokens.output, at=day)
    return CostItem(
        name=answer.model or UNKNOWN,
        calls=1,
        tokens=tokens,
        cost=paid or Cost(),
        bare_usd=bare.total if bare else 0.0,
        unpriced_calls=int(paid is None),
        unrecorded_output=missing,
        unrecorded_usd=estimate.total if estimate else 0.0,
    )


def _unrecorded_output(answer: UniqueAnswer | Forked) -> int:
    """Estimate what an answer that was recorded in mid-stream has beyond its usage.

    Some clients never say why an answer stopped and count it right: what the usage says is
    doubted only where it is a fraction of the text that is there.
    """
    if answer.stop_reason not in UNFINISHED:
        return 0
    shown = round(weigh(answer.measure, default_weights(answer.model)))
    recorded = answer.usage.output_tokens
    return shown - recorded if recorded < BELIEVED_SHARE * shown else 0
