"""What other policies cost on the recorded sessions: `longhold replay` over all of them.

The figures of every policy, and `cheapest_other_usd`: the cheapest of the others that stays under
the window. `ours_regret_losses` counts the others with a context of the same size that miss
less. `cpu_seconds_per_core` is what `seconds` would be on quiet cores, evenly used. Without
recorded sessions some are generated.

    python benchmarks/replay.py [FILES…] [--json]
"""

import os
import time

from harness import make_parser, print_result, recordings
from longhold.insight.replay.policies import OTHERS, select_policies
from longhold.insight.replay.result import standings
from longhold.insight.replay.run import ReplayOptions, replay


def processor_seconds() -> float:
    """Return what this process and its workers computed; other programs on the machine do not count."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def main() -> None:
    given = make_parser(__doc__, takes_files=True).parse_args()
    began = time.perf_counter()
    with recordings(given.files, within="claude-code/entire-cli") as files:
        found = replay(files, select_policies(()), ReplayOptions())
    others = [found.policies[policy.name] for policy in OTHERS]
    stands = standings(found.policies)
    fit = [one.usd for one in others if not one.over_window_calls]
    cheapest = min(fit, default=0.0)
    ours = found.policies["ours"]
    more = {
        "cheapest_other_usd": cheapest,
        "ours_regret_losses": len(stands["ours"].less_regret),
        "ours_to_cheapest": round(ours.usd / cheapest, 4) if cheapest else None,
        "seconds": round(time.perf_counter() - began, 1),
        "cpu_seconds_per_core": round(processor_seconds() / (os.cpu_count() or 1), 1),
    }
    print_result(found.document() | more, given.json)


if __name__ == "__main__":
    main()
