"""The cost of a session by model, source and kind of token, and its cost without a cache.

Each call is priced once, at the prices of its day. A model without a price is counted in tokens
only. Unrecorded costs are estimated and reported separately. Examples are an answer that was cut in
mid-stream and the call that wrote a summary.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace

import msgspec
from msgspec import Struct, structs

from longhold.core.log.entries import AnyEntry, Compacted, Forked, Said
from longhold.core.log.spending import MAIN, UniqueAnswer, answers_of, day_of, is_own, price
from longhold.core.messages import JsonObject
from longhold.core.messages.usage import Tally
from longhold.core.models.prices import Cost, cost, usage_cost
from longhold.core.stages.facts.user_text import read_typed
from longhold.core.view.tokens import default_weights, weigh


class SessionCall(Struct, frozen=True, kw_only=True, array_like=True):
    key: str
    """A key that all copies of a call in several files share."""
    at: float
    model: str
    source: str
    tally: Tally
    cause: str = ""
    """Why the call read less from the cache than possible, or '' if it did not."""
    is_expected: bool = False
    idle_seconds: float = 0.0
    hour_usd: float = 0.0
    """The extra cost of writing the cache for one hour instead of five minutes."""


class SessionCalls(Struct, frozen=True, kw_only=True, array_like=True):
    agent: str = ""
    """The agent that wrote the session, or '' if the file is not a session."""
    session: str = ""
    directory: str = ""
    title: str = ""
    window_tokens: int = 0
    turns: int = 0
    compactions: int = 0
    calls: tuple[SessionCall, ...] = ()
    is_import: bool = False
    problem: str = ""


encode = msgspec.msgpack.Encoder().encode
decode = msgspec.msgpack.Decoder(SessionCalls).decode


UNFINISHED = ("", "aborted", "broken")
BELIEVED_SHARE = 0.5
"""Estimates are within a third of the true count, so a count below half the estimate is wrong."""
COMPACT = "compact"
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
class Bill:
    total: CostItem
    models: tuple[CostItem, ...]
    sources: tuple[CostItem, ...]

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
        }


def bill(entries: Iterable[AnyEntry]) -> Bill:
    history = list(entries)
    answers, unpaid = answers_of(history), unrecorded_summaries(history)
    model = ""
    models: dict[str, CostItem] = {}
    sources: dict[str, CostItem] = {}
    for at, entry in enumerate(history):
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
    return Bill(
        total=sum(models.values(), CostItem()),
        models=_sort_by_cost(models),
        sources=_sort_by_cost(sources),
    )


def _price_item(answer: UniqueAnswer | Forked) -> CostItem:
    paid = usage_cost(answer.model, answer.usage, day_of(answer.at)) or Cost()
    return CostItem(name=answer.model or UNKNOWN, tally=price_answer(answer), cost=paid)


def _sort_by_cost(items: dict[str, CostItem]) -> tuple[CostItem, ...]:
    return tuple(sorted(items.values(), key=lambda item: -item.tally.usd))


def begins_turn(entry: AnyEntry) -> bool:
    """Return whether a message begins a turn. Client commands and notices do not."""
    return isinstance(entry, Said) and not entry.hidden and read_typed(entry.content) is not None


def words_of(entry: AnyEntry) -> str:
    said = read_typed(entry.content) if isinstance(entry, Said) else None
    return said.text if said else ""


def unrecorded_summaries(history: Sequence[AnyEntry]) -> set[int]:
    """Find compactions without a recorded call. The earliest compactions get the recorded calls."""
    recorded = sum(isinstance(entry, Forked) and entry.source == COMPACT for entry in history)
    theirs = [entry.n for entry in history if isinstance(entry, Compacted) and entry.by == "import"]
    return set(theirs[recorded:])


def price_unrecorded(entry: Compacted, model: str) -> Tally:
    output = round(weigh(entry.measure, default_weights(model)))
    paid = cost(model, read_tokens=entry.before_tokens, output_tokens=output, at=day_of(entry.at))
    return Tally(unrecorded_calls=1, unrecorded_usd=paid.total if paid else 0.0)


def price_answer(answer: UniqueAnswer | Forked) -> Tally:
    tally, missing = price(answer), _unrecorded_output(answer)
    if not missing:
        return tally
    paid = cost(answer.model, output_tokens=missing, at=day_of(answer.at))
    usd = paid.total if paid else 0.0
    return structs.replace(tally, unrecorded_output=missing, unrecorded_usd=usd)


def _unrecorded_output(answer: UniqueAnswer | Forked) -> int:
    """Estimate the output of an answer that was cut in mid-stream. Some clients record no stop
    reason but the correct usage, so a plausible usage is accepted.
    """
    if answer.stop_reason not in UNFINISHED:
        return 0
    shown = round(weigh(answer.measure, default_weights(answer.model)))
    recorded = answer.usage.output_tokens
    return shown - recorded if recorded < BELIEVED_SHARE * shown else 0
