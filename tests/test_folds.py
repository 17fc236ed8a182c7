"""Choosing a policy by fold: a project is in one fold, and results are for other folds."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "benchmarks"))

from replay import MOST_REGRET, SHOWN, choose_by_fold, project_of, split_sessions


def session(name, directory, calls=10, **usd):
    """A policy whose cost is given misses half as much as the others."""
    cost = dict.fromkeys(SHOWN, 10.0) | usd
    regret = dict.fromkeys(cost, 1.0) | dict.fromkeys(usd, 0.5)
    return {"file": name, "directory": directory, "calls": calls, "usd": cost, "regret_usd": regret}


def test_worktrees_are_one_project_and_a_project_is_in_one_fold():
    made = [session(f"{n}", f"/home/a/tool/.worktrees/{n}") for n in range(4)]
    made += [session("b", "/home/b/other", 5), session("c", "/home/c/third", 5)]
    assert {project_of(one) for one in made[:4]} == {"/home/a/tool"}
    folds = split_sessions(made, 2)
    assert sorted(len(fold) for fold in folds) == [2, 4]
    assert len({project_of(one) for one in folds[0]} & {project_of(one) for one in folds[1]}) == 0


def test_what_fits_one_project_is_reported_on_the_other():
    one = session("one", "/a", ours_need_2=5.0, ours_need_6=20.0)
    two = session("two", "/b", ours_need_2=30.0, ours_need_6=8.0)
    found = choose_by_fold([one, two], 2)
    assert [fold["chosen"] for fold in found["folds"]] == ["ours_need_6", "ours_need_2"]
    assert [fold["in_fold"]["usd"] for fold in found["folds"]] == [8.0, 5.0]
    assert [fold["out_of_fold"]["usd"] for fold in found["folds"]] == [20.0, 30.0]
    assert found["out_of_fold"]["usd"] == 50.0
    assert found["out_of_fold"]["sum"] == pytest.approx(51.0)
    assert found["out_of_fold"]["usd_ratio"] == 2.5


def test_what_misses_too_much_is_not_chosen():
    one = session("one", "/a", ours_need_2=5.0, ours_need_6=9.0)
    one["regret_usd"]["ours_need_2"] = 2 * MOST_REGRET
    found = choose_by_fold([one, session("two", "/b")], 2)
    assert found["folds"][1]["chosen"] == "ours_need_6"
