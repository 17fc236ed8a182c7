"""Importing with sub-agents beside the file, whole and broken, and under any name."""

import gzip
import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from command_line import longhold
from generated_sessions import generate
from longhold.cli.import_command import command
from longhold.core.log.store import FileStore

SESSION = b"".join(generate(1, 40))
AGENT = b"".join(generate(2, 20))


def run(*words):
    """Run the command here, its exceptions not caught."""
    return CliRunner().invoke(command, list(map(str, words)), catch_exceptions=False)


def taken(*words):
    """Run the command for a machine and read what it says."""
    done = run(*words, "--json")
    assert done.exit_code == 0
    return json.loads(done.stdout)


@pytest.fixture
def file(tmp_path, monkeypatch):
    """A session with one good sub-agent."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "2026.01.02.jsonl"
    path.write_bytes(SESSION)
    beside = tmp_path / "2026.01.02" / "subagents"
    beside.mkdir(parents=True)
    (beside / "agent-good.jsonl").write_bytes(AGENT)
    return path


def beside(file, name):
    return file.with_name("2026.01.02") / "subagents" / name


def test_dots_in_a_name_do_not_hide_its_sub_agents(file):
    assert taken(file)["agents"] == ["good"]


def test_a_packed_session_has_its_sub_agents_too(file):
    packed = file.with_name("2026.01.02.jsonl.gz")
    packed.write_bytes(gzip.compress(SESSION))
    beside(file, "agent-a.b.jsonl.gz").write_bytes(gzip.compress(AGENT))
    assert taken(packed)["agents"] == ["a.b", "good"]


def test_copies_that_editors_leave_are_no_sub_agents(file):
    for name in ("agent-b.jsonl.bak", "agent-c.jsonl~", "agent-d.jsonl.gz.1"):
        beside(file, name).write_bytes(AGENT)
    assert taken(file)["agents"] == ["good"]


def test_a_broken_sub_agent_is_told_and_the_session_is_named(file):
    beside(file, "agent-bad.jsonl").write_bytes(b"this is prose\n")
    done = run(file)
    assert done.exit_code == 0
    session, *_, came, left_out, following = done.stdout.splitlines()
    assert came == "  1 sub-agent imported: good"
    assert left_out.startswith("  sub-agent bad was left out: ")
    assert "agent-bad.jsonl: unrecognised format" in left_out
    assert following == f"Next: longhold context {session.split()[0]}"


def test_a_broken_sub_agent_is_in_the_json(file):
    beside(file, "agent-bad.jsonl").write_bytes(b"")
    found = taken(file)
    assert found["agents"] == ["good"]
    assert found["agents_left_out"].keys() == {"bad"}
    assert "is empty" in found["agents_left_out"]["bad"]
    agents = Path(found["path"]).with_suffix("") / "agents"
    assert [path.name for path in agents.iterdir()] == ["good.jsonl"]


def test_a_name_that_is_no_text_can_be_imported(tmp_path, monkeypatch):
    odd = os.fsdecode(b"caf\xe9")
    (tmp_path / odd / "s" / "subagents").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / odd)
    Path(f"s{odd}.jsonl").write_bytes(SESSION)
    Path("s.jsonl").write_bytes(SESSION)
    Path(f"s/subagents/agent-{odd}.jsonl").write_bytes(AGENT)
    Path(f"s/subagents/agent-{odd}2.jsonl").write_bytes(b"")
    assert taken(f"s{odd}.jsonl")["format"] == "claude-code"
    found = taken("s.jsonl")
    assert found["agents"] == ["caf\ufffd"]
    assert found["agents_left_out"].keys() == {"caf\ufffd2"}


def test_importing_twice_says_so_and_makes_no_second_session(file):
    first = json.loads(longhold("sessions", "import", file, "--json").stdout)["session"]
    again = longhold("sessions", "import", file)
    assert f"Already imported as {first}" in again.stdout
    assert len(FileStore().sessions()) == 1
    assert json.loads(longhold("sessions", "import", file, "--json").stdout)["is_new"] is False
    os.utime(file, (1, 1))
    changed = json.loads(longhold("sessions", "import", file, "--json").stdout)
    assert changed["earlier"] == [first]
    assert json.loads(longhold("sessions", "import", file, "--again", "--json").stdout)["is_new"]
    assert len(FileStore().sessions()) == 3
