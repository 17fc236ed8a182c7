"""The page of the scorecard."""

import os
import platform
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any

from scoring.line import ScoreLine
from scoring.lines import LINES

HEAD = """# Benchmarks

Each line is a command that anyone can run; `make bench` runs them all and writes this page. A goal stands in
brackets; **missed** is a goal that is not reached, **worse** a figure that got worse by more than its noise
since the run before, whose figure stands beside it. Ratios are measured in one run. Milliseconds are from
shared cores; the load is how many programs wanted a core when the line was measured, and where it is above their
number, times are longer by its share. A line that needs more than the library says so; faults, attacks and long runs are in
[reliability.md](reliability.md), the peers one by one in [peers.md](peers.md).

| claim | command | measured | when, on what |
|---|---|---|---|
"""


def machine() -> str:
    """Say what kind of machine this is, and the versions; never its name."""
    cores = os.cpu_count() or 1
    kind = f"{cores} cores, {platform.system()} {platform.machine()}"
    return f"{kind}, Python {platform.python_version()}, longhold {version('longhold')}"


def load() -> float:
    """Return how many programs wanted a core in the last minute."""
    return round(os.getloadavg()[0], 1)


def page(results: Mapping[str, Mapping[str, Any]]) -> str:
    return HEAD + "".join(_row(line, results.get(line.name, {})) for line in LINES)


def _row(line: ScoreLine, found: Mapping[str, Any]) -> str:
    figures = found.get("figures", {})
    measured = "; ".join(_cells(line, figures, found)) or "not yet"
    if problem := found.get("problem"):
        measured = f"{measured} (the last run {problem})"
    claim = f"{line.claim} (needs {line.needs})" if line.needs else line.claim
    when = f"{found['date']}, {found['machine']}" if "date" in found else ""
    if "load" in found:
        when += f", load {found['load']}"
    return f"| {claim} | `{line.command}` | {measured} | {when} |\n"


def _cells(line: ScoreLine, figures: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[str]:
    missed = line.missed(figures)
    for name in line.figures:
        if name not in figures:
            continue
        value = figures[name]
        said = f"{name.replace('_', ' ')} {shown(value)}"
        if name in line.goals:
            sign, goal = line.goals[name]
            said += f" [{'at most' if sign == '<=' else 'at least'} {shown(goal)}]"
        if name in missed:
            said += " **missed**"
        if name in found.get("worse", ()):
            said += f" **worse** (was {shown(found['before'][name])})"
        yield said


def shown(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
