"""`longhold report`, run as a user runs it."""

import csv
import io
import json
import os
import re
import subprocess
import sys

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
    lines = done.stdout.splitlines()
    titles = [line.split("  ")[0] for line in lines if line.startswith("by ")]
    assert titles[-1] == "by session"
    _, _, verdict = done.stdout.partition("by session")
    assert "About $" in verdict
    assert "at API list prices" in verdict
    assert "2 sessions" in verdict
    assert "avoidable" in verdict


def test_every_line_fits_a_terminal_of_80_columns(agents):
    lines = longhold("report", agents, env={"COLUMNS": "80"}).stdout.splitlines()
    assert [line for line in lines if len(line) > 80] == []


def test_the_ids_that_it_lists_open_their_sessions(agents):
    rows = longhold("report", "--by", "session").stdout.splitlines()[1:3]
    for row in rows:
        done = longhold("cost", row[:8])
        assert done.stdout.startswith(("1.jsonl", "2.jsonl")), done.stderr
    id = "3a782158-6c7c-4d4d-9c73-eae031da5b18"
    (agents / "1.jsonl").rename(agents / f"{id}.jsonl")
    for command in ("cost", "context", "cache", "explain", "replay", "inspect"):
        for name in (id, "3a78"):
            done = longhold(
                command, name, *(("--html", agents / "x") if command == "inspect" else ())
            )
            assert done.returncode == 0, done.stderr
    (agents / "2.jsonl").rename(agents / f"{id[:-1]}9.jsonl")
    done = longhold("cost", "3a78")
    assert done.returncode == 5
    assert "several sessions" in done.stderr


def test_days_are_those_of_the_reader(agents):
    """The index is made in one time zone and read in others."""

    def days(zone):
        words = [sys.executable, "-m", "longhold", "report", agents, "--json"]
        done = subprocess.run(words, env=os.environ | {"TZ": zone}, capture_output=True, check=True)
        found = json.loads(done.stdout)
        return [each["name"] for each in found["groups"]["day"]]

    file = agents / "1.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for line in lines:
        line["timestamp"] = "2026-01-07T12:00:00Z"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (agents / "2.jsonl").unlink()
    assert days("UTC") == ["2026-01-07"]
    assert days("Pacific/Kiritimati") == ["2026-01-08"]
    assert days("Pacific/Niue") == ["2026-01-07"]


def test_a_model_is_one_line_with_and_without_its_date_and_sources_are_words(agents):
    file = agents / "1.jsonl"
    text = file.read_text()
    models = set(re.findall(r'"model": ?"(claude-[^"]+)"', text))
    assert models
    dated = re.sub(r'("model": ?")claude-[^"]+"', r'\1claude-opus-4-5-20251101"', text)
    (agents / "2.jsonl").write_text(dated)
    file.write_text(re.sub(r'("model": ?")claude-[^"]+"', r'\1claude-opus-4-5"', text))
    groups = json.loads(longhold("report", agents, "--json").stdout)["groups"]
    assert [each["name"] for each in groups["model"]] == ["claude-opus-4-5"]
    assert not {"main", "compact", "stopped"} & {each["name"] for each in groups["source"]}


def test_blocks_and_weeks_are_those_of_a_subscription(agents):
    found = json.loads(longhold("report", agents, "--json").stdout)["groups"]
    assert all(each["name"].endswith(":00") for each in found["block"])
    assert all("-W" in each["name"] for each in found["week"])


def test_sessions_without_usage_are_named(agents, tmp_path):
    content = [{"type": "input_text", "text": "hi"}]
    records = [
        {"id": "c1", "timestamp": "2025-09-10T18:58:38.331Z", "instructions": None},
        {"type": "message", "role": "user", "content": content},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "ho"}],
        },
    ]
    file = agents / "codex.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    line = "1 codex session without usage: the cost is unknown"
    assert line in longhold("report", agents).stdout
    assert line in longhold("report", file).stdout


def test_days_without_sessions_say_which_day_is_the_newest(agents):
    done = longhold("report", "--since", "1d")
    newest = json.loads(longhold("report", "--json").stdout)["newest_day"]
    assert (
        done.stdout == f"No session in these days. The newest is from {newest}; try --since all.\n"
    )


def test_a_table_of_sessions_says_where_they_are(agents):
    rows = list(
        csv.DictReader(io.StringIO(longhold("report", agents, "--by", "session", "--csv").stdout))
    )
    assert {row["path"] for row in rows} == {str(agents / "1.jsonl"), str(agents / "2.jsonl")}
    assert all(len(row["usd"].partition(".")[2]) <= 6 for row in rows)
    assert longhold("report", "--json", "--csv").returncode == 2


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


def test_the_least_that_sessions_could_have_cost_is_the_figure_of_replay(agents):
    path = agents / "1.jsonl"
    plain = json.loads(longhold("report", path, "--json").stdout)
    assert plain["at_best_usd"] == 0.0, "it is not computed unless asked for"
    found = json.loads(longhold("report", path, "--by", "session", "--json").stdout)
    done = json.loads(longhold("replay", path, "--policy", "send_everything", "--json").stdout)
    assert found["at_best_usd"] == pytest.approx(sum(done["at_best"].values()), abs=1e-3)
    assert 0 < found["at_best_usd"] < found["conversations_usd"]
    assert "at best $" in longhold("report", path).stdout, "what is known is shown"
