"""A lower bound for the cost of the recorded sessions, and where Longhold's policy pays more.

With hindsight, `at_best` counts new tokens once, and other tokens only if this call or a later call
needed them. `gap` is what Longhold's defaults pay beyond that, by cause: `text` and `results` that
were read from the cache but not needed, `new` tokens written to the cache instead of only sent,
`moved` tokens written again after a change by Longhold, `expired` tokens after a pause, overhead
calls, and `missed`: fetching content that was needed but removed. Part of `text` is the work in
progress, which no real policy can leave out.

    python benchmarks/limit.py [FILES…] [--policy ours] [--json]
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise, product
from pathlib import Path

from harness import make_parser, print_result, recordings
from longhold.core.models.prices import TOKENS_PER_PRICE, Prices, prices
from longhold.core.request.lifetime import lifetime_seconds
from longhold.errors import LongholdError
from longhold.insight.replay.limit import SentCalls, list_calls
from longhold.insight.replay.policies import select_policies
from longhold.insight.replay.recorded_session import read_recording
from longhold.insight.replay.result import PolicyFigures
from longhold.insight.replay.run import ReplayOptions, replay

LEFT_TOKENS = 10_000
"""What a reader needs of a full window to answer nine of ten questions (`exam.py`)."""
WRITTEN_TOKENS = 5_000
SIZES = (20_000, 40_000, 60_000, 80_000, 100_000, 120_000)
CAUSES = ("frame", "text", "results", "new", "moved", "expired")


def explain(paid: PolicyFigures, best: Mapping[str, float]) -> dict[str, float]:
    """Return what a policy paid beyond the least, by cause; the causes add up to the gap."""
    gap = {cause: paid.paid.get(cause, 0.0) - best.get(cause, 0.0) for cause in CAUSES}
    gap |= {f"own_{layer}": usd for layer, usd in paid.own_usd_by_layer.items()}
    return {cause: round(usd, 2) for cause, usd in (gap | {"missed": paid.regret_usd}).items()}


def pay(
    calls: SentCalls, price: Prices, write: float, lives: float, sizes: tuple[int, int]
) -> float:
    """Return what a session costs that is compacted past a size, or another after a pause."""
    at, kept, since, usd = calls.at, float(calls.frame), 0, calls.output * price.output
    expired = [False, *(b - a > lives for a, b in pairwise(at))]
    for call, new in enumerate(calls.new):
        known = write if expired[call] or not call else price.read
        if kept > sizes[expired[call]] and kept > calls.frame + LEFT_TOKENS and call:
            if not expired[call]:
                usd += kept * known + WRITTEN_TOKENS * price.output
            kept, since = calls.frame + LEFT_TOKENS, call
            usd += calls.frame * known + LEFT_TOKENS * write
        else:
            usd += kept * known
        usd += new * write
        kept += new
        for id, last in calls.needed.items():
            arrived, tokens = calls.arrived.get(id, (last, 0))
            if last == call and arrived < since:
                again = sum(write if one else price.read for one in expired[since + 1 : call + 1])
                usd += tokens * min(price.input, write + again)
    return usd / TOKENS_PER_PRICE


def find_reachable(files: Iterable[Path]) -> tuple[float, tuple[int, int]]:
    """Return the least cost over all sessions, and the sizes that it needs."""
    sums = dict.fromkeys(product(SIZES, SIZES), 0.0)
    for path in files:
        try:
            one = read_recording(path)
        except (LongholdError, OSError):
            continue
        if not one.answers or (listed := prices(one.model)) is None:
            continue
        price, calls = listed.select_tier(0), list_calls(one, one.model)
        write = price.write_1h if one.lifetime == "1h" else price.write_5m
        for sizes in sums:
            sums[sizes] += pay(
                calls, price, write, lifetime_seconds(one.model, one.lifetime), sizes
            )
    best = min(sums, key=lambda sizes: sums[sizes])
    return sums[best], best


def main() -> None:
    parser = make_parser(__doc__, takes_files=True)
    parser.add_argument("--policy", default="ours")
    given = parser.parse_args()
    with recordings(given.files) as files:
        reachable, sizes = find_reachable(files)
        found = replay(files, select_policies((given.policy,)), ReplayOptions())
    paid, best = found.policies[given.policy], sum(found.at_best.values())
    more = {
        "sessions": found.sessions,
        "calls": found.calls,
        "at_best_usd": round(best, 2),
        "at_best": found.at_best,
        "usd": paid.usd,
        "regret_usd": paid.regret_usd,
        "sum_to_best": round((paid.usd + paid.regret_usd) / best, 3) if best else None,
        "gap_usd": round(paid.usd + paid.regret_usd - best, 2),
        "gap": explain(paid, found.at_best),
        "reachable_usd": round(reachable, 2),
        "reachable_sizes": sizes,
        "avoidable_usd": round(paid.usd + paid.regret_usd - reachable, 2),
        "by_session": {
            str(one["file"]): {key: one[key] for key in ("at_best_usd", "usd", "regret_usd")}
            for one in found.by_session
        },
    }
    print_result(more, given.json)


if __name__ == "__main__":
    main()
