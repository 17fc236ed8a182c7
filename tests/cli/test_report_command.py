"""`longhold report`, run as a user runs it."""

import csv
import io
import json

import pytest

from command_line import longhold
from generated_sessions import write
from longhold.insight.session_files import newest_session


@pytest.fixture
def agents(tmp_path, monkeypatch):
    """A machine with sessions of another agent, where that keeps them."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    folder = tmp_path / "claude" / "projects" / "-work-shop"
    folder.mkdir(parents=True)
    for n in (1, 2):
        write(folder / f"{n}.jsonl", n, 60, compactions=1)
    return folder


def test_without_arguments_it_finds_what_is_there(agents):
    done = longhold("report")
    assert done.returncode == 0, done.stderr
    first, *lines = done.stdout.splitlines()
    assert first.startswith("About $")
    assert "2 sessions" in first
    titles = [line.split("  ")[0] for line in lines if line.startswith("by ")]
    assert titles[-1] == "by session"
    assert done.stdout.index("avoidable") < done.stdout.index("by session")


def test_json_and_csv_have_the_same_sums(agents):
    found = json.loads(longhold("report", agents, "--json").stdout)
    whole = found["total"]["recorded_usd"]
    for groups in found["groups"].values():
        assert sum(each["spending"]["recorded_usd"] for each in groups) == pytest.approx(whole)
    rows = list(csv.DictReader(io.StringIO(longhold("report", agents, "--csv").stdout)))
    assert sum(float(row["recorded_usd"]) for row in rows) == pytest.approx(whole)
    assert rows[0]["day"].count("-") == 2


def test_since_leaves_out_what_was_before(agents):
    days = json.loads(longhold("report", agents, "--json").stdout)["groups"]["day"]
    last = days[-1]["name"]
    since = json.loads(longhold("report", agents, "--since", last, "--json").stdout)
    assert [each["name"] for each in since["groups"]["day"]] == [last]
    wrong = longhold("report", "--since", "yesterday")
    assert wrong.returncode == 2
    assert "7d" in wrong.stderr


def test_nothing_found_says_where_it_looked():
    done = longhold("report")
    assert done.returncode == 0
    assert "nowhere/projects" in done.stdout
    assert "Name a directory" in done.stdout


def test_commands_without_a_target_take_this_project_s_newest_session(agents, tmp_path):
    shop = tmp_path / "shop"
    shop.mkdir()
    file = agents / "1.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    file.write_text(
        "".join(json.dumps(line | {"cwd": str(shop)}) + "\n" for line in lines), encoding="utf-8"
    )
    assert newest_session(shop) == file
    for command in ("context", "cost", "cache", "explain"):
        done = longhold(command, cwd=shop)
        assert done.stdout.startswith("1.jsonl"), done.stderr
        elsewhere = longhold(command, cwd=tmp_path)
        assert elsewhere.returncode != 0
        assert "sessions --all" in elsewhere.stderr


def test_a_foreign_name_does_nothing_to_a_terminal_or_a_spreadsheet(agents):
    file = agents / "1.jsonl"
    file.write_text(file.read_text().replace("claude-", "\\t=\\u001b]0;taken\\u0007\\u009b31m-"))
    done = longhold("report", agents, "--by", "model", "--csv")
    names = [row["model"] for row in csv.DictReader(io.StringIO(done.stdout))]
    assert any("taken" in name for name in names)
    assert all(name.isprintable() and not name.strip().startswith("=") for name in names)


def test_a_home_that_cannot_be_written_to_is_no_reason_not_to_report(agents, tmp_path):
    (tmp_path / "file").touch()
    done = longhold("report", agents, env={"LONGHOLD_HOME": str(tmp_path / "file" / "home")})
    assert (done.returncode, done.stdout) == (0, longhold("report", agents).stdout), done.stderr
