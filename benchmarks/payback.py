"""How close payback comes to the best policy that knows only how long sessions are on average.

Random sessions: each call adds an answer and a tool result of random size; results can be
cleared once three newer ones exist; some calls come after the cache expired; nobody knows
which call is the last. Every policy decides before each call whether to clear what can be
cleared, and pays by `cost_model`, which the tests hold against the simulator's billing.

The best policy is found by dynamic programming over (call, cleared up to). It knows the
distribution of lengths and pauses and, beyond that, every size to come, so the gap is an upper
bound; with even sizes there is nothing more to know, and the gap is exact (`even_gap`). Payback
runs twice: told the mean number of calls left (`mean_gap`, `even_gap`), and with its own
defaults, which fit no distribution here (`default_gap`). Output is left out of the bill: it is
the same for all and would make gaps look smaller. `false_alarms` counts breaks that were told of
`--quiet` random sessions in which nothing changed, over HTTP against the simulator.

    python benchmarks/payback.py [--sessions N] [--quiet N] [--json]
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from statistics import mean

import numpy as np
from numpy.typing import NDArray

from harness import make_parser, print_result
from longhold.core.models.prices import TOKENS_PER_PRICE, Prices, prices
from longhold.core.policy.cost_model import (
    CacheState,
    CostModel,
    Forecast,
    HistoryEdit,
    expect,
    payback,
    steps,
)
from longhold.core.request.lifetime import Lifetime
from quiet import quiet_sessions

MODELS = ("claude-sonnet-5-5", "claude-sonnet-4-6", "claude-fable-5-1", "claude-haiku-5-5")
"""Reads at 1/25, 1/12.5 and 1/50 of a write; and one whose prices rise fivefold past 100K."""
FRAME_TOKENS = 15_000  # system prompt and tools of a coding agent
KEPT_RESULTS = 3  # the newest are never cleared
PLACEHOLDER_TOKENS = 20  # what stands in for a cleared result
EVEN_SAID_TOKENS, EVEN_RESULT_TOKENS = 340, 1_600  # about the means of the random sizes
LONGEST_CALLS = 320  # where the distributions are cut off
RECORDED_LENGTHS = (
    4, 5, 1, 6, 15, 13, 33, 16, 147, 151, 149, 49, 47, 47, 288, 225, 47, 194, 223, 32, 204, 134,
    118, 120, 258, 15, 198, 131, 11, 2, 4, 54, 1, 3, 5, 12, 1, 139, 13, 1, 143, 3, 1, 217, 1, 12, 4,
)  # fmt: skip
"""Calls of the recorded sessions, but for one longer than the cut."""

Floats = NDArray[np.float64]
Decide = Callable[["Moment"], bool]


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A kind of session on a model."""

    model: str
    lengths: str
    cold_share: float
    is_reported: bool
    """A marker is kept where the cleared part ends; otherwise only the frame stays readable."""
    lifetime: Lifetime
    is_even: bool = False
    """All answers and all results have the same size."""

    @cached_property
    def listed(self) -> Prices:
        """The model's prices."""
        found = prices(self.model)
        assert found is not None
        return found


@dataclass(frozen=True, kw_only=True)
class Session:
    """One session's sizes and, hidden from the policies, its length and pauses."""

    scenario: Scenario
    said: Floats
    results: Floats
    """Sums up to and including call i, from 0."""
    calls: int
    is_cold: NDArray[np.bool_]

    def prompt(self, t: int, cleared: int) -> float:
        """Count the prompt of call t with the first results cleared."""
        rest = self.results[t] - self.results[cleared]
        return float(FRAME_TOKENS + self.said[t] + rest + PLACEHOLDER_TOKENS * cleared)

    def settled(self, cleared: int) -> float:
        """Count what stands up to the end of the last cleared result."""
        return float(FRAME_TOKENS + self.said[cleared] + PLACEHOLDER_TOKENS * cleared)

    def kept(self, cleared: int) -> float:
        """Count what stays readable when more is cleared."""
        return self.settled(cleared) if self.scenario.is_reported else FRAME_TOKENS

    def call(self, t: int, before: int, after: int, is_cold: bool) -> float:
        """Price call t with results cleared so far and from now on."""
        read = self.prompt(t - 1, before) if before == after else self.kept(before)
        costs = CostModel(listed=self.scenario.listed, lifetime=self.scenario.lifetime)
        return costs.call_usd(self.prompt(t, after), 0.0 if is_cold else read)


@dataclass(frozen=True, kw_only=True)
class Moment:
    """What a policy sees before a call."""

    session: Session
    t: int
    cleared: int
    clearable: int
    """Up to which result an edit would clear."""
    is_cold: bool
    cold_calls: int


def survival(lengths: str) -> Floats:
    """Give the chance that a session has at least t calls, for t from 0 to past the cut."""
    t = np.arange(LONGEST_CALLS + 2)
    kind, _, number = lengths.partition(" ")
    if kind == "geometric":
        chances = (1 - 1 / float(number)) ** np.maximum(t - 1, 0)
    elif kind == "uniform":
        chances = np.clip((float(number) + 1 - t) / float(number), 0, 1)
    else:
        chances = np.array([mean(n >= i for n in RECORDED_LENGTHS) for i in t.tolist()])
    chances[0] = 1.0
    chances[-1] = 0.0
    return np.asarray(chances, dtype=np.float64)


def draw(scenario: Scenario, rng: np.random.Generator, alive: Floats) -> Session:
    """Draw a session; results are mostly short and sometimes very long, as tools' are."""
    calls = int(np.searchsorted(-alive, -rng.uniform(), side="right")) - 1
    said = rng.lognormal(5.5, 0.8, LONGEST_CALLS + 1)
    results = np.minimum(rng.lognormal(6.6, 1.3, LONGEST_CALLS + 1), 25_000)
    if scenario.is_even:
        said[:], results[:] = EVEN_SAID_TOKENS, EVEN_RESULT_TOKENS
    said[0] = results[0] = 0
    is_cold = rng.uniform(size=LONGEST_CALLS + 1) < scenario.cold_share
    is_cold[1] = True
    return Session(
        scenario=scenario,
        said=np.cumsum(np.round(said)),
        results=np.cumsum(np.round(results)),
        calls=max(1, calls),
        is_cold=is_cold,
    )


def replay(session: Session, decide: Decide) -> float:
    """Pay for a session under a policy."""
    paid, cleared, cold_calls = 0.0, 0, 0
    for t in range(1, session.calls + 1):
        is_cold = bool(session.is_cold[t])
        clearable = max(t - KEPT_RESULTS, cleared)
        after = cleared
        if clearable > cleared:
            moment = Moment(
                session=session,
                t=t,
                cleared=cleared,
                clearable=clearable,
                is_cold=is_cold,
                cold_calls=cold_calls,
            )
            after = clearable if decide(moment) else cleared
        paid += session.call(t, cleared, after, is_cold)
        cleared, cold_calls = after, cold_calls + is_cold
    return paid


def best(session: Session, alive: Floats, colds: Floats) -> NDArray[np.bool_]:
    """Find the best policy by going backwards: table[t, is_cold, cleared] says whether to clear.

    `alive` holds the chance of reaching each call and `colds` that of finding it cold; with
    both at 0 or 1 the policy knows what happens, which is the hindsight.
    """
    last = int(np.flatnonzero(alive > 0)[-1])
    table = np.zeros((last + 1, 2, last + 1), dtype=np.bool_)
    every = np.arange(last + 1)
    settled = FRAME_TOKENS + session.said[: last + 1] + PLACEHOLDER_TOKENS * every
    kept = settled if session.scenario.is_reported else np.full(last + 1, float(FRAME_TOKENS))
    warm = np.array([[1.0], [0.0]])
    value = np.zeros(last + 1)
    for t in range(last, 0, -1):
        most = max(t - KEPT_RESULTS, 0)
        ahead = value[: most + 1] * (alive[t + 1] / alive[t])
        now, before = _prompts(session, t, most), _prompts(session, t - 1, most)
        stay = _usd(session.scenario, now, warm * before) + ahead
        clear = _usd(session.scenario, now[most], warm * kept[: most + 1]) + ahead[most]
        table[t, :, : most + 1] = clear < stay
        table[t, :, most] = False
        cheapest = np.minimum(stay, clear)
        cheapest[:, most] = stay[:, most]
        value = (1 - colds[t]) * cheapest[0] + colds[t] * cheapest[1]
    return table


def _prompts(session: Session, t: int, most: int) -> Floats:
    """Count the prompt of call t for every number of cleared results up to the most."""
    rest = session.results[t] - session.results[: most + 1]
    placeholders = PLACEHOLDER_TOKENS * np.arange(most + 1)
    return np.asarray(FRAME_TOKENS + session.said[t] + rest + placeholders)


def _usd(scenario: Scenario, prompt: Floats, read: Floats) -> Floats:
    """Price many calls at once, as `call_usd` does one."""
    first, *higher = steps(scenario.listed)
    paid = read * first.prices.read + (prompt - read) * first.write(scenario.lifetime)
    for step in higher:
        usd = read * step.prices.read + (prompt - read) * step.write(scenario.lifetime)
        paid = np.where(prompt > step.above_tokens, usd, paid)
    return np.asarray(paid / TOKENS_PER_PRICE)


def by_table(table: NDArray[np.bool_]) -> Decide:
    """Follow a policy that was worked out beforehand."""
    return lambda moment: bool(table[moment.t, int(moment.is_cold), moment.cleared])


def by_payback(forecast: Callable[[Moment], Forecast]) -> Decide:
    """Ask payback."""

    def decide(moment: Moment) -> bool:
        session, t, cleared, clearable = moment.session, moment.t, moment.cleared, moment.clearable
        cleared_tokens = session.results[clearable] - session.results[cleared]
        kept = round(session.kept(cleared))
        warm = 0 if moment.is_cold else round(session.prompt(t - 1, cleared))
        edit = HistoryEdit(
            prompt_tokens=round(session.prompt(t, cleared)),
            cache=CacheState(tokens=warm, marked=() if moment.is_cold else (kept,)),
            at_tokens=round(
                session.settled(cleared) + session.said[cleared + 1] - session.said[cleared]
            ),
            until_tokens=round(
                session.prompt(t, cleared)
                - (session.said[t] - session.said[clearable])
                - (session.results[t] - session.results[clearable])
            ),
            removed_tokens=round(cleared_tokens),
            added_tokens=PLACEHOLDER_TOKENS * (clearable - cleared),
        )
        scenario = session.scenario
        costs = CostModel(
            listed=scenario.listed, forecast=forecast(moment), lifetime=scenario.lifetime
        )
        return payback(costs, edit).worth_it

    return decide


def told(alive: Floats) -> Callable[[Moment], Forecast]:
    """Expect what the distribution says on average, and the growth so far."""
    left = np.array(
        [alive[t + 1 :].sum() / alive[t] if alive[t] else 0.0 for t in range(len(alive))]
    )

    def forecast(moment: Moment) -> Forecast:
        usual = by_default(moment)
        return Forecast(
            calls=float(left[moment.t]),
            cold_share=moment.session.scenario.cold_share,
            growth_tokens=usual.growth_tokens,
            removable_tokens=usual.removable_tokens,
        )

    return forecast


def by_default(moment: Moment) -> Forecast:
    """Expect what `expect` makes of the session so far, and nothing else."""
    session, t = moment.session, moment.t
    results = float(session.results[t])
    return expect(
        calls=t,
        cold_calls=moment.cold_calls,
        grown_tokens=round(session.said[t] + results),
        removable_tokens=round(results) - PLACEHOLDER_TOKENS * t,
        lifetime=session.scenario.lifetime,
    )


POLICIES = ("best", "told", "default", "never", "when_cold", "always", "hindsight")


def measure(scenario: Scenario, sessions: int, seed: int) -> dict[str, float]:
    """Pay for many sessions under every policy; means in dollars."""
    rng = np.random.default_rng(seed)
    alive = survival(scenario.lengths)
    colds = np.full(LONGEST_CALLS + 1, scenario.cold_share)
    colds[1] = 1.0
    paid: dict[str, list[float]] = {name: [] for name in POLICIES}
    for _ in range(sessions):
        session = draw(scenario, rng, alive)
        known = (np.arange(LONGEST_CALLS + 2) <= session.calls).astype(np.float64)
        policies: dict[str, Decide] = {
            "best": by_table(best(session, alive, colds)),
            "told": by_payback(told(alive)),
            "default": by_payback(by_default),
            "never": lambda moment: False,
            "when_cold": lambda moment: moment.is_cold,
            "always": lambda moment: True,
            "hindsight": by_table(best(session, known, session.is_cold.astype(np.float64))),
        }
        for name, decide in policies.items():
            paid[name].append(replay(session, decide))
    return {name: mean(costs) for name, costs in paid.items()}


def scenarios(is_even: bool) -> list[Scenario]:
    """List all kinds of sessions."""
    lengths = ("geometric 25", "geometric 100", "uniform 200", "recorded")
    pauses: tuple[tuple[Lifetime, float], ...] = (("5m", 0.033), ("5m", 0.12), ("1h", 0.005))
    return [
        Scenario(
            model=model,
            lengths=length,
            cold_share=cold,
            is_reported=anchored,
            lifetime=lifetime,
            is_even=is_even,
        )
        for model, length, anchored, (lifetime, cold) in product(
            MODELS, lengths, (False, True), pauses
        )
    ]


def compare(is_even: bool, sessions: int, is_quiet: bool) -> dict[str, list[float]]:
    """Give each policy's mean cost over the best policy's, less 1, for every scenario."""
    gaps: dict[str, list[float]] = {name: [] for name in POLICIES}
    for seed, scenario in enumerate(scenarios(is_even)):
        paid = measure(scenario, sessions, seed)
        for name in POLICIES:
            gaps[name].append(paid[name] / paid["best"] - 1)
        if not is_quiet:
            shown = "  ".join(f"{name} {gaps[name][-1]:+.3f}" for name in POLICIES[1:])
            sizes = "even" if is_even else "random"
            place = "anchored" if scenario.is_reported else "frame"
            print(
                f"{scenario.model:<18} {scenario.lengths:<14} {scenario.lifetime} {sizes:<6} "
                f"{scenario.cold_share:<5} {place:<8} ${paid['best']:.3f}  {shown}"
            )
    return gaps


def regret(gaps: dict[str, list[float]], policy: str) -> float:
    """Say how much more a policy pays than who knew it all beforehand."""
    pairs = zip(gaps[policy], gaps["hindsight"], strict=True)
    return mean((1 + gap) / (1 + known) - 1 for gap, known in pairs)


def main() -> None:
    """Measure every scenario and sum up."""
    parser = make_parser(__doc__)
    parser.add_argument("--sessions", type=int, default=6, help="random sessions per scenario")
    parser.add_argument("--quiet", type=int, default=1_000, help="sessions to watch for alarms")
    options = parser.parse_args()
    began = time.perf_counter()
    gaps = compare(False, options.sessions, options.json)
    even = compare(True, options.sessions, options.json)
    figures = {
        "mean_gap": mean(gaps["told"]),
        "worst_gap": max(gaps["told"]),
        "even_gap": mean(even["told"]),
        "default_gap": mean(gaps["default"]),
        "default_worst_gap": max(gaps["default"]),
        "never_gap": mean(gaps["never"]),
        "when_cold_gap": mean(gaps["when_cold"]),
        "always_gap": mean(gaps["always"]),
        "hindsight_regret": regret(gaps, "told"),
        "best_hindsight_regret": regret(gaps, "best"),
    }
    counts = {
        "scenarios": len(gaps["told"]) + len(even["told"]),
        "sessions": options.sessions * (len(gaps["told"]) + len(even["told"])),
        "seconds": round(time.perf_counter() - began, 1),
    }
    rounded = {name: round(value, 4) for name, value in figures.items()}
    quiet = asyncio.run(quiet_sessions(options.quiet))
    print_result(rounded | quiet | counts, options.json)


if __name__ == "__main__":
    main()
