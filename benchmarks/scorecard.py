"""The scorecard: reruns every claim's benchmark, and compares its figure with goal and history.

Runs each command of `scoring/lines.py` with its limit of time, and writes `benchmarks/results.json` and
`benchmarks/results/scorecard.md`. A figure that got worse by more than its noise since the last run is marked. A line
that fails, or takes too long, keeps its last figure and says so. Lines that were not measured for longest
come first, and after `--minutes` none is begun. `--only` runs some lines and leaves the
others as they were; `--page` only writes the page again.

    python benchmarks/scorecard.py [--only NAME]… [--minutes 90] [--page] [--json]
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness import make_parser, print_result
from scoring.line import ScoreLine
from scoring.lines import LINES
from scoring.page import load, machine, page

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
PAGE = HERE / "results" / "scorecard.md"
NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"
"""Where it is set every process compiles what it imports, and that is what would be measured."""
QUIET_LOAD = 1.5
"""Programs that want a core, for each core; past it delays are those of the others."""
MINUTES = 90.0
"""On two busy cores all lines take about so long."""


def run(line: ScoreLine) -> dict[str, Any]:
    """Run one command in a home of its own; what it measured, or why it measured nothing."""
    cores, busy = os.cpu_count() or 1, load()
    if line.needs_quiet and busy > QUIET_LOAD * cores:
        return {"problem": f"was left out: a load of {busy} on {cores} cores"}
    began = time.perf_counter()
    environment = {key: said for key, said in os.environ.items() if key != NO_BYTECODE}
    with tempfile.TemporaryDirectory() as home:
        try:
            done = subprocess.run(
                [sys.executable, *line.words],
                cwd=HERE.parent,
                env=environment | {"LONGHOLD_HOME": home},
                capture_output=True,
                text=True,
                timeout=line.seconds,
            )
        except subprocess.TimeoutExpired:
            return {"problem": f"took more than {line.seconds} s"}
    seconds = round(time.perf_counter() - began, 1)
    found = printed(done.stdout)
    if found is None:
        return {"problem": f"ended with code {done.returncode} and no figures"}
    details = {line.details: found.get(line.details)} if line.details else {}
    return {
        "figures": line.read(found),
        **details,
        "seconds": seconds,
        "date": today(),
        "machine": machine(),
        "load": load(),
    }


def printed(text: str) -> Any:
    """Return the JSON object that a benchmark printed, on its last line or over several."""
    for candidate in (text.strip().rpartition("\n")[2], text):
        with suppress(ValueError):
            return json.loads(candidate)
    return None


def joined(line: ScoreLine, before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Keep the last figures beside the new ones; a line that failed keeps what it had."""
    if "problem" in now:
        return before | now
    old = before.get("figures", {})
    worse = [
        name for name, value in now["figures"].items() if line.is_worse(name, value, old.get(name))
    ]
    return now | {"before": old, "worse": worse}


def oldest_first(lines: Sequence[ScoreLine], results: Mapping[str, Any]) -> list[ScoreLine]:
    """Order lines by when they were measured last, so that a run cut short is gone on with."""
    return sorted(lines, key=lambda line: results.get(line.name, {}).get("date", ""))


def today() -> str:
    return datetime.now(UTC).date().isoformat()


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--only", action="append", default=[], choices=[n.name for n in LINES])
    parser.add_argument("--minutes", type=float, default=MINUTES, help="no line begins after that")
    parser.add_argument("--page", action="store_true", help="write the page from what is known")
    given = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    wanted = [] if given.page else [n for n in LINES if not given.only or n.name in given.only]
    ends = time.monotonic() + given.minutes * 60
    for line in oldest_first(wanted, results):
        if time.monotonic() > ends:
            break
        results[line.name] = joined(line, results.get(line.name, {}), run(line))
        if not given.json:
            print(line.name, json.dumps(results[line.name]), flush=True)
        RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")
        PAGE.write_text(page(results))
    PAGE.write_text(page(results))
    worse = {name: one["worse"] for name, one in results.items() if one.get("worse")}
    missed = [n.name for n in LINES if n.missed(results.get(n.name, {}).get("figures", {}))]
    found = {"lines": len(LINES), "measured": len(results), "worse": worse, "missed": missed}
    print_result(found, given.json)


if __name__ == "__main__":
    main()
