"""Cost and regret of Longhold's cost policy, also with one rule switched off at a time.

Recorded sessions come in (`FILES`; by default those beside the project, else generated ones) and are
played as `longhold replay` plays them, priced as one model, with the cache's lifetime that they had.
`usd_with` and `regret_usd_with` are what each rule adds to the figures without it: below 0 it helps.
`--rates` counts how often results are needed again, by kind and age: the settings under `cost`.

    python benchmarks/policy.py [FILES…] [--model NAME] [--lifetime 5m|1h] [--sessions N] [--rates] [--json]
"""

from collections.abc import Sequence
from pathlib import Path

from harness import make_replay_parser, print_result, recordings
from longhold.core.log.entries import AnyEntry
from longhold.errors import LongholdError
from longhold.insight.replay.policies import WITHOUT, select_policies
from longhold.insight.replay.recorded_session import read_recording
from longhold.insight.replay.run import ReplayOptions, ReplayReport, replay
from needs import rates

NAMES = ("send_everything", "ours", *(policy.name for policy in WITHOUT))


def counted_rates(files: Sequence[Path]) -> dict[str, object]:
    return {
        kind: {
            age: {"needed": needed, "of": whole, "rate": round(needed / whole, 3)}
            for age, (needed, whole) in by_age.items()
            if whole
        }
        for kind, by_age in rates(readable(files)).items()
    }


def readable(files: Sequence[Path]) -> list[Sequence[AnyEntry]]:
    found = []
    for path in files:
        try:
            found.append(read_recording(path).entries)
        except LongholdError:
            continue
    return found


def figures(found: ReplayReport) -> dict[str, object]:
    ours = found.policies["ours"]
    without = {one.name: found.policies[one.name] for one in WITHOUT}
    return {
        "usd_with": {name: round(ours.usd - one.usd, 2) for name, one in without.items()},
        "regret_usd_with": {
            name: round(ours.regret_usd - one.regret_usd, 2) for name, one in without.items()
        },
        "recorded_usd": found.as_recorded.usd,
        "policies": found.document()["policies"],
        "sessions": found.sessions,
        "calls": found.calls,
    }


def main() -> None:
    parser = make_replay_parser(__doc__)
    parser.add_argument("--rates", action="store_true", help="count the rates only")
    given = parser.parse_args()
    with recordings(given.files, given.sessions) as files:
        if given.rates:
            print_result(counted_rates(files), given.json)
            return
        options = ReplayOptions(model=given.model, lifetime=given.lifetime)
        found = replay(files, select_policies(NAMES), options)
    fixed = {"model": given.model, "lifetime": given.lifetime}
    print_result(figures(found) | fixed, given.json)


if __name__ == "__main__":
    main()
