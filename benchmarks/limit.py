"""A lower bound for the cost of the recorded sessions, and where Longhold's policy pays more.

With hindsight, `at_best` counts new tokens once, and other tokens only if this call or a later call
needed them. `gap` is what Longhold's defaults pay beyond that, by cause: `text` and `results` that
were read from the cache but not needed, `new` tokens written to the cache instead of only sent,
`moved` tokens written again after a change by Longhold, `expired` tokens after a pause, overhead
calls, and `missed`: fetching content that was needed but removed. Part of `text` is the work in
progress, which no real policy can leave out.

    python benchmarks/limit.py [FILES…] [--policy ours] [--json]
"""

from collections.abc import Mapping

from harness import make_parser, print_result, recordings
from longhold.insight.replay.policies import select_policies
from longhold.insight.replay.result import PolicyFigures
from longhold.insight.replay.run import ReplayOptions, replay

CAUSES = ("frame", "text", "results", "new", "moved", "expired")


def explain(paid: PolicyFigures, best: Mapping[str, float]) -> dict[str, float]:
    """Return what a policy paid beyond the least, by cause; the causes add up to the gap."""
    gap = {cause: paid.paid.get(cause, 0.0) - best.get(cause, 0.0) for cause in CAUSES}
    gap |= {f"own_{layer}": usd for layer, usd in paid.own_usd_by_layer.items()}
    return {cause: round(usd, 2) for cause, usd in (gap | {"missed": paid.regret_usd}).items()}


def main() -> None:
    parser = make_parser(__doc__, takes_files=True)
    parser.add_argument("--policy", default="ours")
    given = parser.parse_args()
    with recordings(given.files) as files:
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
        "by_session": {
            str(one["file"]): {key: one[key] for key in ("at_best_usd", "usd", "regret_usd")}
            for one in found.by_session
        },
    }
    print_result(more, given.json)


if __name__ == "__main__":
    main()
