"""The figures of a run compared with the promises, as a page, and the promises not met."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

SLOWER = 1.5
"""Times that a late compaction may take of an early one."""
FLAT = 0.05
"""A share below which nothing grows: the last third against the middle one."""

LONG_SOAK = (
    "On 2026-11-16 `python benchmarks/soak.py --turns 10000 --kills 12` played 10,019 turns, one call in ten",
    "spoilt and the process killed 12 times, in 30 minutes: 0 lines lost, 0 results doubled, 0 damaged lines,",
    "0 broken rules, 0 times stuck; 565 compactions, 56.2 MB of log. Its answers were a tenth shorter.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    name: str
    what: str
    target: str = ""
    holds: Callable[[Any, Mapping[str, Any]], bool] = lambda value, report: True


def _none(value: Any, report: Mapping[str, Any]) -> bool:
    return bool(value == 0)


def _flat(value: Any, report: Mapping[str, Any]) -> bool:
    return bool(value <= FLAT)


def _no_slower(value: Any, report: Mapping[str, Any]) -> bool:
    return bool(value <= SLOWER * report["compaction_ms_first"])


PROMISES = (
    Promise(name="faults", what="faults injected: disk, clock, provider"),
    Promise(name="data_lost", what="acknowledged and not in the log", target="0", holds=_none),
    Promise(name="false_statements", what="answers claimed, not there", target="0", holds=_none),
    Promise(name="hangs", what="runs that did not end", target="0", holds=_none),
    Promise(name="inputs", what="damaged logs opened and gone on with"),
    Promise(name="crashes", what="foreign exceptions, illegal views", target="0", holds=_none),
    Promise(
        name="attacks",
        what="commands judged free and executed",
        target="at least 5,000",
        holds=lambda value, report: bool(value >= 5_000),
    ),
    Promise(name="succeeded", what="of them that did harm", target="0", holds=_none),
    Promise(name="texts_timed", what="texts made to be slow, by reader"),
    Promise(name="slow_inputs", what="of them that were", target="0", holds=_none),
    Promise(name="turns", what="answers in a 32K window, all layers"),
    Promise(name="tokens_per_turn", what="growth in tokens for each, after clearing"),
    Promise(
        name="turns_per_compaction",
        what="answers between compactions",
        target="at least 15",
        holds=lambda value, report: bool(value >= 15),
    ),
    Promise(
        name="rss_growth",
        what="growth of memory, last third",
        target=f"at most {FLAT:g}",
        holds=_flat,
    ),
    Promise(
        name="fd_growth",
        what="growth of open files, last third",
        target=f"at most {FLAT:g}",
        holds=_flat,
    ),
    Promise(name="compaction_ms_first", what="CPU ms of an early compaction"),
    Promise(
        name="compaction_ms_last",
        what="CPU ms of a late one",
        target=f"at most {SLOWER:g} times the first",
        holds=_no_slower,
    ),
    Promise(name="turn_ms_first", what="CPU ms between answers, first third"),
    Promise(name="turn_ms_last", what="CPU ms between answers, last third"),
    Promise(name="broken_rules", what="rules the last view breaks", target="0", holds=_none),
)


def unmet(report: Mapping[str, Any]) -> Iterator[str]:
    for each in PROMISES:
        if not each.holds(report[each.name], report):
            yield f"{each.name} is {report[each.name]:,}, promised {each.target}"


def page(report: Mapping[str, Any], date: str, command: str) -> str:
    """Write the page of a run."""
    rows = (
        f"| `{each.name}` | {each.what} | {report[each.name]:,} | {each.target} |"
        for each in PROMISES
    )
    missed = [f"- {line}" for line in unmet(report)]
    told = ["", "Not met in this run:", "", *missed] if missed else []
    return "\n".join(
        (
            "# Reliability",
            "",
            "What is injected, executed and played, and what came of it. Written by `make reliability`;",
            "what each figure counts stands in `benchmarks/reliability.py`. `make soak` plays 10,000 turns",
            "with a failing provider and kills the process at random (`benchmarks/soak.py`).",
            "",
            f"Measured on {date} with `{command}`,",
            f"{report['seconds'] / 60:.0f} minutes, seed {report['seed']}.",
            "",
            "| figure | what it is | measured | promised |",
            "|---|---|---:|---|",
            *rows,
            "",
            "The load of the soak is that of recorded work: an answer and its results have about 915 tokens by",
            "characters before anything is cleared; the median of 24 recorded sessions is 914.",
            "",
            *LONG_SOAK,
            *told,
            "",
        )
    )
