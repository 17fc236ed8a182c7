"""The scorecard: what it reads, and which figures count as worse or missed."""

import json
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "benchmarks"))

from scorecard import QUIET_LOAD, joined, oldest_first, printed, run  # noqa: E402
from scoring.line import ScoreLine  # noqa: E402
from scoring.lines import LINES  # noqa: E402
from scoring.page import load, page  # noqa: E402


def line(**changes):
    known = {
        "name": "example",
        "claim": "it holds",
        "words": ("-c", "print('{}')"),
        "figures": {"ms": "sizes.10.ms", "kept": "ways.*.kept", "lost": "ways.*.lost"},
        "goals": {"ms": ("<=", 5.0), "kept": (">=", 0.9), "lost": ("<=", 0)},
        "noise": 0.1,
    }
    return ScoreLine(**known | changes)


FOUND = {
    "sizes": {"10": {"ms": 4.0}},
    "ways": {"a": {"kept": 1.0, "lost": 0}, "b": {"kept": 0.5, "lost": 2}, "c": {"skipped": "x"}},
}


def test_of_many_ways_the_worst_counts():
    assert line().read(FOUND) == {"ms": 4.0, "kept": 0.5, "lost": 2}
    assert line().missed(line().read(FOUND)) == ["kept", "lost"]


def test_a_figure_that_was_not_measured_neither_reaches_nor_misses_its_goal():
    read = line().read({"sizes": "none"})
    assert read == {"ms": None, "kept": None, "lost": None}
    assert line().missed(read) == []


@pytest.mark.parametrize(
    ("name", "value", "before", "is_worse"),
    [
        ("ms", 4.3, 4.0, False),
        ("ms", 4.5, 4.0, True),
        ("ms", 2.0, 4.0, False),
        ("kept", 0.85, 1.0, True),
        ("kept", 1.0, 0.5, False),
        ("lost", 1, 0, True),
        ("lost", 1, None, False),
    ],
)
def test_worse_is_past_the_noise_in_the_direction_that_matters(name, value, before, is_worse):
    assert line().is_worse(name, value, before) is is_worse


def test_the_last_figures_stay_beside_the_new_ones():
    before = {"figures": {"ms": 4.0}, "date": "2026-01-01"}
    now = joined(line(), before, {"figures": {"ms": 9.0}, "date": "2026-01-02"})
    assert now["before"] == {"ms": 4.0} and now["worse"] == ["ms"]
    failed = joined(line(), before, {"problem": "took more than 1 s"})
    assert failed["figures"] == {"ms": 4.0} and failed["problem"] == "took more than 1 s"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', {"a": 1}),
        ('so far\n{"old": 1}\n{"a": 1}\n', {"a": 1}),
        ('{\n "a": 1\n}\n', {"a": 1}),
        ("Traceback", None),
        ("", None),
    ],
)
def test_the_last_object_that_a_benchmark_printed_is_read(text, found):
    assert printed(text) == found


def test_a_command_is_run_and_its_figures_read():
    code = f"import os; assert os.environ['LONGHOLD_HOME']; print({json.dumps(json.dumps(FOUND))})"
    done = run(line(words=("-c", code), details="ways"))
    assert done["figures"] == {"ms": 4.0, "kept": 0.5, "lost": 2}
    assert done["ways"] == FOUND["ways"]


def test_a_command_that_fails_or_hangs_is_a_problem_and_not_a_figure():
    failed = run(line(words=("-c", "raise SystemExit(3)")))
    assert failed == {"problem": "ended with code 3 and no figures"}
    hung = run(line(words=("-c", "import threading; threading.Event().wait()"), seconds=1))
    assert hung == {"problem": "took more than 1 s"}


def test_a_line_for_quiet_cores_is_left_out_on_busy_ones():
    if load() <= QUIET_LOAD * (os.cpu_count() or 1):
        pytest.skip("these cores are quiet")
    done = run(line(words=("-c", "raise SystemExit(3)"), needs_quiet=True))
    assert done["problem"].startswith("was left out: a load of ")


def test_what_was_not_measured_for_longest_comes_first():
    lines = [line(name=name) for name in ("new", "never", "old")]
    known = {"new": {"date": "2026-02-01"}, "old": {"date": "2026-01-01"}}
    assert [one.name for one in oldest_first(lines, known)] == ["never", "old", "new"]


@pytest.mark.parametrize("one", LINES, ids=lambda one: one.name)
def test_every_line_names_a_benchmark_that_is_there_and_goals_that_it_shows(one):
    assert (ROOT / one.words[0]).is_file()
    assert set(one.goals) | one.higher_is_better <= set(one.figures)


def test_the_page_shows_goal_miss_and_change():
    first = LINES[0]
    name, (sign, goal) = next(iter(first.goals.items()))
    bad = goal + 1 if sign == "<=" else goal - 1
    known = {
        first.name: {
            "figures": {name: bad},
            "before": {name: goal},
            "worse": [name],
            "date": "2026-01-01",
            "machine": "a machine",
        }
    }
    row, *others = [one for one in page(known).splitlines() if one.startswith("| ")][1:]
    assert "**missed**" in row and "**worse**" in row and "a machine" in row
    assert all("not yet" in one for one in others)


def test_the_page_in_the_documentation_is_that_of_the_results():
    results = json.loads((ROOT / "benchmarks" / "results.json").read_text())
    assert (ROOT / "benchmarks" / "results" / "scorecard.md").read_text() == page(results)
