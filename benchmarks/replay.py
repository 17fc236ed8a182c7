"""The cost of other policies on all recorded sessions, by `longhold replay`.

The figures of every policy, and `cheapest_other_usd`: the cheapest of the others that stays under
the window. `ours_regret_losses` counts the others with a context of the same size that miss
less. `cpu_seconds_per_core` is what `seconds` would be on quiet cores, evenly used. Without
recorded sessions some are generated.

With `--folds` the sessions of all projects are split by project. For each fold the cheapest weight is
chosen that misses at most 85 % of what the cheapest other policy misses on the other folds: `in_fold`
is that weight on the folds it was chosen on, `out_of_fold` on the one that it has not seen. Regret is the price of getting again what
was needed: a call that reads the prompt, asks, and writes the content.

    python benchmarks/replay.py [FILES…] [--folds N] [--json]
"""

import os
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import make_parser, print_result, recordings
from longhold.insight.replay.policies import BY_WEIGHT, OTHERS, OURS, select_policies
from longhold.insight.replay.result import standings
from longhold.insight.replay.run import ReplayOptions, replay
from longhold.insight.transcripts.formats import open_transcript


def processor_seconds() -> float:
    """Return what this process and its workers computed; other programs on the machine do not count."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


FITTING = ("summarise_keep_20", "provider_compaction")
"""The two cheapest others that stay under the window."""
CHOICES = ("ours", *(policy.name for policy in BY_WEIGHT))
"""What is chosen from: one parameter."""
SHOWN = tuple(dict.fromkeys((*CHOICES, *(policy.name for policy in OURS), *FITTING)))
MOST_REGRET = 0.85
Session = Mapping[str, Any]


def find_directory(path: Path) -> str:
    with open_transcript(path) as transcript:
        return transcript.directory or path.parent.name


def project_of(session: Session) -> str:
    """Return the directory of the work; worktrees are the same project."""
    head, _, _ = str(session["directory"]).partition("worktrees")
    return head.rstrip("./-")


def split_sessions(sessions: Iterable[Session], folds: int) -> list[list[Session]]:
    """Put each project into one fold, the largest projects first, always into the smallest fold."""
    projects = defaultdict(list)
    for one in sessions:
        projects[project_of(one)].append(one)
    found: list[list[Session]] = [[] for _ in range(folds)]
    for many in sorted(projects.values(), key=count_calls, reverse=True):
        min(found, key=count_calls).extend(many)
    return found


def count_calls(sessions: Sequence[Session]) -> int:
    return sum(one["calls"] for one in sessions)


def add_up(sessions: Sequence[Session], policy: str) -> dict[str, float]:
    usd = sum(one["usd"][policy] for one in sessions)
    regret = sum(one["regret_usd"][policy] for one in sessions)
    return {"usd": round(usd, 4), "regret_usd": round(regret, 4), "sum": round(usd + regret, 4)}


def compare(sessions: Sequence[Session], policy: str) -> dict[str, Any]:
    """Return a policy's figures, and each divided by that of the cheapest other policy."""
    ours = add_up(sessions, policy)
    other = min((add_up(sessions, name) for name in FITTING), key=lambda one: one["usd"])
    ratios = {f"{key}_ratio": round(ours[key] / other[key], 4) for key in ours if other[key]}
    return ours | ratios


def choose(sessions: Sequence[Session]) -> str:
    """Return the cheapest choice that misses little enough, else the one that misses least."""
    found = {name: compare(sessions, name) for name in CHOICES}
    careful = [one for one in CHOICES if found[one].get("regret_usd_ratio", 0.0) <= MOST_REGRET]
    key = "usd" if careful else "regret_usd"
    return min(careful or CHOICES, key=lambda name: found[name][key])


def choose_by_fold(sessions: Sequence[Session], folds: int) -> dict[str, Any]:
    parts, chosen, seen = split_sessions(sessions, folds), [], []
    rests = [[one for other in parts if other is not part for one in other] for part in parts]
    for part, rest in zip(parts, rests, strict=True):
        best = choose(rest)
        chosen.append(best)
        # The choice under one name, so that different choices add up.
        for one in part:
            seen.append(
                {**one, **{k: one[k] | {"chosen": one[k][best]} for k in ("usd", "regret_usd")}}
            )
    return {
        "folds": [
            {
                "projects": len({project_of(one) for one in part}),
                "sessions": len(part),
                "calls": count_calls(part),
                "chosen": best,
                "in_fold": compare(rest, best),
                "out_of_fold": compare(part, best),
                "policies": {name: compare(part, name) for name in SHOWN},
            }
            for part, best, rest in zip(parts, chosen, rests, strict=True)
        ],
        "out_of_fold": compare(seen, "chosen"),
        "all_sessions": {name: compare(sessions, name) for name in SHOWN},
    }


def main() -> None:
    given = make_parser(__doc__, takes_files=True, folds=0).parse_args()
    if given.folds:
        with recordings(given.files) as files:
            played = replay(files, select_policies(SHOWN), ReplayOptions())
            places = {path.name: find_directory(path) for path in files}
        sessions = [{**one, "directory": places[str(one["file"])]} for one in played.by_session]
        print_result(choose_by_fold(sessions, given.folds), given.json)
        return
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
