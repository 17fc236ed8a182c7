"""`longhold replay`, run as a user runs it."""

import json

import pytest

from command_line import longhold
from generated_sessions import write


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("sessions")
    write(place / "one.jsonl", 3, 120)
    write(place / "two.jsonl", 4, 60, malformed=2)
    (place / "other.jsonl").write_text("not a session\n")
    return place


@pytest.fixture(scope="module")
def found(folder):
    words = ("--window", 60_000, "--policy", "send_everything", "--policy", "ours", "--json")
    done = longhold("replay", folder, *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_json_has_every_figure_of_every_policy(found):
    keys = {"usd", "read", "written", "uncached", "prefix_moves", "over_window_calls"}
    keys |= {"mean_context", "peak_context", "regret", "regret_usd", "sent"}
    assert set(found["policies"]) == {"send_everything", "ours"}
    for figures in found["policies"].values():
        assert keys <= set(figures)
        assert figures["sent"] == figures["read"] + figures["written"] + figures["uncached"]
    assert set(found["standings"]) == {"ours"}
    assert found["as_recorded"]["read"] > 0 and found["as_recorded"]["read_ratio"] > 0


def test_broken_records_and_files_are_counted_not_fatal(found):
    assert found["sessions"] == 2 and found["broken_records"] == 2
    assert list(found["left_out"]) == ["other.jsonl"]


def test_each_sessions_own_cost_adds_up(found):
    for name, figures in found["policies"].items():
        parts = sum(one["usd"][name] for one in found["by_session"])
        assert parts == pytest.approx(figures["usd"], abs=0.01)
        assert sum(figures["paid"].values()) == pytest.approx(
            figures["usd"] - figures["own_usd"], abs=0.01
        )
        assert sum(found["at_best"].values()) < figures["usd"] + figures["regret_usd"]
    best = sum(one["at_best_usd"] for one in found["by_session"])
    assert best == pytest.approx(sum(found["at_best"].values()), abs=0.01)


def test_the_table_says_where_ours_stands(folder):
    words = ("--policy", "ours", "--policy", "sliding_window", "--window", 60_000)
    done = longhold("replay", folder / "one.jsonl", *words)
    assert done.returncode == 0, done.stderr
    assert "at best $" in done.stdout and "beats ours by" in done.stdout
    assert "ours: $" in done.stdout and "sliding window" in done.stdout


def test_a_policy_alone_is_compared_with_nobody(folder):
    done = longhold("replay", folder / "one.jsonl", "--policy", "ours")
    assert "with a regret of" in done.stdout and "0 others" not in done.stdout


def test_an_unknown_policy_and_a_folder_without_sessions_are_refused(folder, tmp_path):
    wrong = longhold("replay", folder, "--policy", "magic")
    assert wrong.returncode and "'magic' is not one of" in wrong.stderr
    empty = longhold("replay", tmp_path)
    assert empty.returncode and "contains no session" in empty.stderr
