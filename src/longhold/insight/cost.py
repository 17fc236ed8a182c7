"""What a session was spent on: by model, source, kind of token and turn, and without a cache.

Each answer and each call of a fork is paid once, at the prices of its day. A model without a price
is counted in tokens and named, never priced at a guess. What a transcript shows and did not count,
an answer recorded in mid-stream or the call that wrote a summary, is estimated and kept apart.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace

import msgspec
from msgspec import Struct, structs

from longhold.core.log.entries import AnyEntry, Compacted, Forked, Said
from longhold.core.log.spending import is_own, price
from longhold.core.log.unique_answers import MAIN, UniqueAnswer, answers_of, day_of
from longhold.core.messages import JsonObject
from longhold.core.messages.usage import Tally
from longhold.core.models.prices import Cost, cost, usage_cost
from longhold.core.stages.facts.user_text import read_typed
from longhold.core.view.tokens import default_weights, weigh


class SessionCall(Struct, frozen=True, kw_only=True, array_like=True):
    key: str
    """The same for copies of one call in several files."""
    at: float
    model: str
    source: str
    tally: Tally
    cause: str = ""
    """Why it read less from the cache than it could; '' if it did not."""
    is_expected: bool = False
    idle_seconds: float = 0.0
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


def kinds_json(tally: Tally) -> JsonObject:
    return {
        "uncached": tally.input_tokens,
        "read": tally.cache_read_tokens,
        "write_5m": tally.written_5m_tokens,
        "write_1h": tally.written_1h_tokens,
        "output": tally.output_tokens,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class CostItem:
    """A group of calls, with its dollars by kind of token."""

    name: str = ""
    tally: Tally = field(default_factory=Tally)
    cost: Cost = field(default_factory=Cost)

    def __add__(self, other: "CostItem") -> "CostItem":
        return replace(self, tally=self.tally + other.tally, cost=self.cost + other.cost)

    def to_json(self) -> JsonObject:
        tally = self.tally
        return {
            "name": self.name,
            "calls": tally.calls,
            "tokens": kinds_json(tally),
            "cost": asdict(self.cost),
            "bare_usd": tally.bare_usd,
            "unpriced_calls": tally.unpriced_calls,
            "unrecorded_output": tally.unrecorded_output,
            "unrecorded_calls": tally.unrecorded_calls,
            "unrecorded_usd": tally.unrecorded_usd,
        }


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
        total = self.total.tally.usd
        return self.own.tally.usd / total if total else 0.0

    def to_json(self) -> JsonObject:
        return {
            "total": self.total.to_json(),
            "models": [item.to_json() for item in self.models],
            "sources": [item.to_json() for item in self.sources],
            "turns": [
                {"number": turn.number, "n": turn.n, "said": turn.said, "item": turn.item.to_json()}
                for turn in self.turns
            ],
        }


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
        source = MAIN
        if at in answers:
            model = answers[at].model
            item = _price_item(answers[at])
        elif isinstance(entry, Forked):
            item, source = _price_item(entry), entry.source
        elif isinstance(entry, Compacted) and entry.n in unpaid:
            item = CostItem(name=model or UNKNOWN, tally=price_unrecorded(entry, model))
            source = COMPACT
        else:
            continue
        for name, items in ((item.name, models), (source, sources)):
            items[name] = items.get(name, CostItem(name=name)) + item
        turns[-1] = replace(turns[-1], item=turns[-1].item + item)
    return Bill(
        total=sum(models.values(), CostItem()),
        models=_sort_by_cost(models),
        sources=_sort_by_cost(sources),
        turns=tuple(
            turn for turn in turns if turn.item.tally.calls or turn.item.tally.unrecorded_calls
        ),
    )


def _price_item(answer: UniqueAnswer | Forked) -> CostItem:
    paid = usage_cost(answer.model, answer.usage, day_of(answer.at)) or Cost()
    return CostItem(name=answer.model or UNKNOWN, tally=price_answer(answer), cost=paid)


def _sort_by_cost(items: dict[str, CostItem]) -> tuple[CostItem, ...]:
    return tuple(sorted(items.values(), key=lambda item: -item.tally.usd))


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


def price_unrecorded(entry: Compacted, model: str) -> Tally:
    """Estimate what writing a summary cost: the history read from the cache, and its own length."""
    output = round(weigh(entry.measure, default_weights(model)))
    paid = cost(model, read_tokens=entry.before_tokens, output_tokens=output, at=day_of(entry.at))
    return Tally(unrecorded_calls=1, unrecorded_usd=paid.total if paid else 0.0)


def price_answer(answer: UniqueAnswer | Forked) -> Tally:
    """Price a call, and estimate what its usage lacks."""
    tally, missing = price(answer), _unrecorded_output(answer)
    if not missing:
        return tally
    paid = cost(answer.model, output_tokens=missing, at=day_of(answer.at))
    usd = paid.total if paid else 0.0
    return structs.replace(tally, unrecorded_output=missing, unrecorded_usd=usd)


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
