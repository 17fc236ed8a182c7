"""The result of one session under one policy, and totals over many sessions."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields

from longhold.core.log.entries import AnyEntry, Cleared, Compacted
from longhold.core.messages import JsonObject
from longhold.core.messages.usage import Tally
from longhold.core.models.prices import Cost
from longhold.insight.replay.regret import ASKED_AGAIN, CLEARED

USD_DIGITS = 4


@dataclass(slots=True, kw_only=True)
class ReplayResult:
    prompts: list[int] = field(default_factory=list)
    gauged: list[int] = field(default_factory=list)
    """The estimated prompt tokens of each call. These estimates trigger compactions."""
    main: Tally = field(default_factory=Tally)
    """The conversation's calls. Every policy gets the recorded answers."""
    own: dict[str, Tally] = field(default_factory=dict)
    """The overhead calls of each layer."""
    cleared: list[tuple[int, Cleared]] = field(default_factory=list)
    """Clearings, each with the number of the call after it."""
    compactions: int = 0
    prefix_moves: int = 0
    """Calls whose prompt does not start with the whole previous prompt."""
    over_window_calls: int = 0
    needed: Counter[str] = field(default_factory=Counter)
    """Sources that a later call or answer needed after they had left the view, by kind."""
    needed_tokens: Counter[str] = field(default_factory=Counter)
    needed_usd: float = 0.0
    """The cost of fetching the needed sources again."""
    paid: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Dollars of the conversation's calls: `frame`, `text` and `results` for cache reads, `new`,
    `moved` (after a change by Longhold) and `expired` for the rest of the prompt, and `output`."""
    stopped: str = ""

    def add_call(self, call: Tally, gauged_tokens: int) -> None:
        self.main = self.main + call
        self.prompts.append(call.prompt_tokens)
        self.gauged.append(gauged_tokens)

    def count(self, *, is_over: bool, is_moved: bool) -> None:
        self.over_window_calls += is_over
        self.prefix_moves += is_moved

    def stop(self, why: str) -> None:
        self.stopped = why

    def add_own_call(self, source: str, call: Tally) -> None:
        self.own[source] = self.own.get(source, Tally()) + call

    def add_change(self, entry: AnyEntry) -> None:
        if isinstance(entry, Cleared):
            self.cleared.append((len(self.prompts), entry))
        self.compactions += isinstance(entry, Compacted)

    def add_paid(self, cost: Cost, read_by: Mapping[str, int], why: str) -> None:
        """Add a call's price by cause. `why` is the reason for tokens that the cache missed."""
        tokens = sum(read_by.values())
        for kind, read in read_by.items():
            self.paid[kind] += cost.read * read / tokens
        self.paid[why] += cost.write_5m + cost.write_1h + cost.uncached
        self.paid["output"] += cost.output

    def add_need(self, kind: str, tokens: int, usd: float) -> None:
        self.needed[kind] += 1
        self.needed_tokens[kind] += tokens
        self.needed_usd += usd

    @property
    def total(self) -> Tally:
        return sum(self.own.values(), self.main)


@dataclass(frozen=True, kw_only=True)
class Figures:
    calls: int
    """Calls of the conversation. `tally` also includes overhead calls."""
    tally: Tally
    compactions: int
    prefix_moves: int
    over_window_calls: int
    peak_context: int
    mean_context: int
    regret: int
    regret_usd: float
    """The cost of fetching the regretted sources again. It is not part of `usd`."""

    @property
    def usd(self) -> float:
        return round(self.tally.usd, USD_DIGITS)

    def to_json(self) -> JsonObject:
        plain = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "tally"}
        return plain | {
            "usd": self.usd,
            "read": self.tally.cache_read_tokens,
            "written": self.tally.cache_write_tokens,
            "uncached": self.tally.input_tokens,
            "output": self.tally.output_tokens,
        }


@dataclass(frozen=True, kw_only=True)
class PolicyFigures(Figures):
    sessions: int
    asked_again: int
    """Regretted results that a later call requested again. The others were needed for a name."""
    cleared_and_asked_again: int
    """Results in `asked_again` that had been cleared. A compaction removed the others."""
    regret_tokens: int
    clearings: int
    stopped: int
    own_usd: float
    own_usd_by_layer: dict[str, float]
    own_calls: int
    paid: dict[str, float]

    def to_json(self) -> JsonObject:
        return super().to_json() | {"sent": self.tally.prompt_tokens}


def total(results: Iterable[ReplayResult]) -> PolicyFigures:
    found = list(results)
    prompts = [tokens for result in found for tokens in result.prompts]
    own: dict[str, Tally] = {}
    for name in sorted({name for result in found for name in result.own}):
        own[name] = sum((result.own.get(name, Tally()) for result in found), Tally())
    all_own = sum(own.values(), Tally())
    return PolicyFigures(
        sessions=len(found),
        calls=len(prompts),
        tally=sum((result.total for result in found), Tally()),
        prefix_moves=sum(result.prefix_moves for result in found),
        over_window_calls=sum(result.over_window_calls for result in found),
        peak_context=max(prompts, default=0),
        mean_context=round(sum(prompts) / len(prompts)) if prompts else 0,
        regret=sum(result.needed.total() for result in found),
        asked_again=sum(result.needed[kind] for result in found for kind in ASKED_AGAIN),
        cleared_and_asked_again=sum(result.needed[CLEARED] for result in found),
        regret_tokens=sum(result.needed_tokens.total() for result in found),
        regret_usd=round(sum(result.needed_usd for result in found), USD_DIGITS),
        clearings=sum(len(result.cleared) for result in found),
        compactions=sum(result.compactions for result in found),
        stopped=sum(bool(result.stopped) for result in found),
        own_usd=round(all_own.usd, USD_DIGITS),
        own_usd_by_layer={name: round(one.usd, USD_DIGITS) for name, one in own.items()},
        own_calls=all_own.calls,
        paid=sum_dollars(result.paid for result in found),
    )


def sum_dollars(paid: Iterable[Mapping[str, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for cause, usd in ((cause, usd) for one in paid for cause, usd in one.items()):
        found[cause] = found.get(cause, 0.0) + usd
    return {cause: round(usd, USD_DIGITS) for cause, usd in sorted(found.items())}


ALIKE_SHARE = 0.05
"""Contexts that differ by less than this share count as equally large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyStanding:
    fitting: int
    """The number of other policies that stay under the window."""
    cheaper: tuple[str, ...]
    """Policies under the window that cost less."""
    less_regret: tuple[str, ...]
    """Other policies with a mean context of the same size and less regret."""

    def list_losses(self, name: str) -> tuple[str, ...]:
        found = {"cost": self.cheaper, "regret": self.less_regret}
        return tuple(respect for respect, names in found.items() if name in names)


def _is_ours(name: str) -> bool:
    return name.startswith("ours")


def _standing(ours: PolicyFigures, policies: Mapping[str, PolicyFigures]) -> PolicyStanding:
    others = {name: one for name, one in policies.items() if not _is_ours(name)}
    fit = {
        name: one for name, one in others.items() if not one.over_window_calls and not one.stopped
    }
    near = ALIKE_SHARE * ours.mean_context
    return PolicyStanding(
        fitting=len(fit),
        cheaper=tuple(name for name, one in fit.items() if one.usd < ours.usd),
        less_regret=tuple(
            name
            for name, one in others.items()
            if abs(one.mean_context - ours.mean_context) <= near and one.regret < ours.regret
        ),
    )


def standings(policies: Mapping[str, PolicyFigures]) -> dict[str, PolicyStanding]:
    return {name: _standing(one, policies) for name, one in policies.items() if _is_ours(name)}
