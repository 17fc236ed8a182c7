"""Faults and damaged inputs, injected one by one and seeded: is anything lost, untrue or stuck?

Damaged logs are opened and gone on with (`inputs`); a disk fails at each of its operations, and a
provider in each way the simulator knows at each step of a run (`faults`). `data_lost` counts what
was acknowledged, or stands on an intact line, and is not in the log afterwards; `false_statements`
runs that claim an answer that is not there; `hangs` runs that did not end in time; `crashes`
exceptions that are not ours, and views that the API would refuse.

    python benchmarks/reliability.py [--logs 50] [--disk 200] [--provider 500] [--seed 1] [--json]
"""

import argparse
import asyncio
import json
import time
from dataclasses import asdict

from faults.damaged_logs import damaged_logs
from faults.disk import disk_faults
from faults.provider import provider_faults
from faults.tally import Tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=50, help="damaged logs of each kind")
    parser.add_argument("--disk", type=int, default=200, help="operations to let fail, at most")
    parser.add_argument("--provider", type=int, default=500, help="provider faults, at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    began = time.monotonic()
    tallies = {
        "damaged logs": damaged_logs(wanted.logs, wanted.seed),
        "disk": asyncio.run(disk_faults(wanted.disk)),
        "provider": asyncio.run(provider_faults(wanted.provider)),
    }
    whole = sum(tallies.values(), Tally())
    report = asdict(whole) | {"examples": whole.examples[:10]}
    report |= {"seconds": round(time.monotonic() - began, 1), "seed": wanted.seed}
    if wanted.json:
        print(json.dumps(report))
        return
    for name, tally in tallies.items():
        print(name, asdict(tally) | {"examples": tally.examples[:3]})


if __name__ == "__main__":
    main()
