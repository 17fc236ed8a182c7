"""Money and regret of our cost policy: the defaults of 0.1.0, today's, and today's with a rule off.

Recorded sessions come in (`FILES`; by default those beside the project, else generated ones) and are
played as `longhold replay` plays them, priced as one model, with the cache's lifetime that they had.
`regret_ratio` is about results that were cleared and asked for again, `asked_again_ratio` also about
those that a compaction took, `named_ratio` also about names that nothing in the view shows any more. `--rates` counts how often results are
needed again, by kind and age: the settings under `cost`.

    python benchmarks/policy.py [FILES…] [--model NAME] [--lifetime 5m|1h] [--sessions N] [--rates] [--json]
"""

from collections.abc import Sequence
from pathlib import Path

from harness import make_replay_parser, print_result, recordings
from longhold.core.log.entries import AnyEntry
from longhold.errors import LongholdError
from longhold.insight.replay.policies import BEFORE, WITHOUT, select_policies
from longhold.insight.replay.recorded_session import read_recording
from longhold.insight.replay.regret import rates
from longhold.insight.replay.run import ReplayOptions, ReplayReport, replay

NAMES = ("send_everything", BEFORE.name, "ours", *(policy.name for policy in WITHOUT))


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
    before, ours = found.policies[BEFORE.name], found.policies["ours"]
    return {
        "cost_ratio": _ratio(ours.usd, before.usd),
        "regret_ratio": _ratio(ours.cleared_and_asked_again, before.cleared_and_asked_again),
        "asked_again_ratio": _ratio(ours.asked_again, before.asked_again),
        "named_ratio": _ratio(ours.regret, before.regret),
        "recorded_usd": found.as_recorded.usd,
        "policies": found.document()["policies"],
        "sessions": found.sessions,
        "calls": found.calls,
    }


def _ratio(one: float, other: float) -> float | None:
    return round(one / other, 4) if other else None


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
