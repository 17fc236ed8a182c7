"""Kills, full disks, wrong clocks, attacks: is anything lost, untrue, stuck, slow or allowed?

Damaged logs are opened and continued (`inputs`); a disk fails at each of its operations, a clock
jumps at each of its readings, and a provider fails in each way the simulator knows at each step of
a run (`faults`). `data_lost` counts entries that were acknowledged or are on an intact line, but
are not in the log afterwards; `false_statements` runs that claim an answer that is not there;
`hangs` runs that did not end in time; `crashes` exceptions that are not Longhold's, and views that
the API would refuse.

`attacks` commands that were judged free of risk were executed, and `succeeded` of them did harm
(`shell_attacks.py`); `slow_inputs` are texts that a reader takes too long over (`slow_inputs.py`).

The soak plays `turns` answers in a 32K window with all layers, on real files. `rss_growth` and
`fd_growth` are the shares by which the last third is above the middle one. `compaction_ms_first`
and `_last` are the medians of the first and last hundred compactions, or of the first and last
third of fewer, in CPU time of the whole process, which other processes do not disturb.

    python benchmarks/reliability.py [--quick] [--json] [--page FILE]
"""

import argparse
import asyncio
import shlex
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import shell_attacks
import slow_inputs
from faults.clocks import clock_faults
from faults.damaged_logs import damaged_logs
from faults.disk import disk_faults
from faults.page import page, unmet
from faults.provider import provider_faults
from faults.soak import soak
from faults.tally import Tally
from harness import make_parser, print_result, temporary_home

FULL = {
    "turns": 3_000,
    "logs": 50,
    "disk": 200,
    "clock": 200,
    "provider": 500,
    "attacks": 5_200,
    "chars": 50_000,
}
QUICK = {
    "turns": 120,
    "logs": 5,
    "disk": 20,
    "clock": 20,
    "provider": 40,
    "attacks": 200,
    "chars": 2_000,
}


def measure(sizes: argparse.Namespace) -> dict[str, object]:
    began = time.monotonic()
    with temporary_home() as place:  # first: memory is that of a fresh process
        soaked = asyncio.run(soak(place, sizes.turns))
    tally = sum(
        (
            damaged_logs(sizes.logs, sizes.seed),
            asyncio.run(disk_faults(sizes.disk)),
            asyncio.run(clock_faults(sizes.clock)),
            asyncio.run(provider_faults(sizes.provider)),
        ),
        Tally(),
    )
    attacked = shell_attacks.run(sizes)
    tried, slow = slow_inputs.slow_inputs(sizes.chars)
    return {
        **asdict(tally),
        "examples": tally.examples[:10],
        "attacks": attacked["attacks"],
        "succeeded": attacked["succeeded"],
        "through": attacked["through"],
        "slow_inputs": len(slow),
        "texts_timed": tried,
        "slow": [asdict(one) for one in slow],
        **soaked,
        "seconds": round(time.monotonic() - began, 1),
        "seed": sizes.seed,
    }


def main() -> None:
    parser = make_parser(__doc__, seed=1)
    parser.add_argument("--quick", action="store_true", help="a small part of each, in a minute")
    for name, size in FULL.items():
        parser.add_argument(f"--{name}", type=int, help=f"{size:,}; quick: {QUICK[name]:,}")
    parser.add_argument("--shell", default="", help="another shell than the one of the tool")
    parser.add_argument("--page", type=Path, help="write the figures into this file")
    given = parser.parse_args()
    sizes = vars(given)
    for name, size in (QUICK if given.quick else FULL).items():
        sizes[name] = size if sizes[name] is None else sizes[name]
    report = measure(argparse.Namespace(**sizes))
    if given.page:
        date, command = datetime.now(UTC).date().isoformat(), shlex.join(["python", *sys.argv])
        given.page.write_text(page(report, date, command), encoding="utf-8")
    print_result(report, given.json)
    for line in unmet(report):
        print(f"not met: {line}", file=sys.stderr)


if __name__ == "__main__":
    main()
