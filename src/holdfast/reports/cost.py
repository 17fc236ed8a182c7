"""What a session was spent on: by model, source, kind of token and turn, and without a cache.

Each answer and each call of a fork is paid once, at the prices of its day. A model without a price
is counted in tokens and named, never priced at a guess.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from holdfast.log.answers import MAIN, UniqueAnswer, answers_of, day_of
from holdfast.log.entries import AnyEntry, Forked, Said
from holdfast.log.own_spending import is_own
from holdfast.log.spending import Spent, read_ledger
from holdfast.messages import text_of
from holdfast.messages.usage import add_fields
from holdfast.models.prices import Cost, cost, usage_cost

UNFINISHED = ("", "aborted", "broken")
"""What an answer that did not come to its end stopped for."""


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

    def __add__(self, other: "Tokens") -> "Tokens":
        return add_fields(self, other)


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
    unfinished_calls: int = 0
    """Recorded in mid-stream: their output is a lower bound."""

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
        """What the engine asked for itself, all layers together."""
        return sum((item for item in self.sources if is_own(item.name)), CostItem(name="own"))

    @property
    def own_share(self) -> float:
        """Its part of the money; 0 where nothing has a price."""
        total = self.total.cost.total
        return self.own.cost.total / total if total else 0.0


def bill(entries: Iterable[AnyEntry]) -> Bill:
    history = list(entries)
    answers = answers_of(history)
    turns: list[TurnItem] = []
    models: dict[str, CostItem] = {}
    sources: dict[str, CostItem] = {}
    for at, entry in enumerate(history):
        if not turns or (isinstance(entry, Said) and not entry.hidden):
            said = text_of(entry.content) if isinstance(entry, Said) else ""
            turns.append(TurnItem(number=len(turns) + 1, n=entry.n, said=said))
        if at in answers:
            item, source = _priced(answers[at]), MAIN
        elif isinstance(entry, Forked):
            item, source = _priced(entry), entry.source
        else:
            continue
        _add(models, item)
        _add(sources, replace(item, name=source))
        turns[-1] = replace(turns[-1], item=turns[-1].item + item)
    return Bill(
        total=sum(models.values(), CostItem()),
        models=_dearest_first(models),
        sources=_dearest_first(sources),
        turns=tuple(turn for turn in turns if turn.item.calls),
    )


def _add(items: dict[str, CostItem], item: CostItem) -> None:
    items[item.name] = items[item.name] + item if item.name in items else item


def _dearest_first(items: dict[str, CostItem]) -> tuple[CostItem, ...]:
    return tuple(sorted(items.values(), key=lambda item: -item.cost.total))


def _priced(answer: UniqueAnswer | Forked) -> CostItem:
    day, usage = day_of(answer.at), answer.usage
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
        name=answer.model or "unknown model",
        calls=1,
        tokens=tokens,
        cost=paid or Cost(),
        bare_usd=bare.total if bare else 0.0,
        unpriced_calls=int(paid is None),
        unfinished_calls=int(answer.stop_reason in UNFINISHED),
    )


def spent_by_day(ledger: Path) -> dict[str, Spent]:
    """Add up each day's ledger, oldest first."""
    return {file.stem: read_ledger(file) for file in sorted(ledger.glob("*.jsonl"))}
