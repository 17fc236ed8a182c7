"""The commands, with real files, and as processes where that matters."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from command_line import longhold
from generated_sessions import write, write_large
from longhold.cli import COMMANDS, HIDDEN, cli, every_command
from longhold.core.log import Header, write_log
from longhold.core.log.entries import Asked, Replied, Said
from longhold.core.log.store import FileStore
from longhold.core.messages import Text, Usage
from longhold.insight.transcripts.formats import open_transcript


@pytest.fixture
def transcript(tmp_path):
    """A made-up session with a compaction, as a file."""
    path = tmp_path / "session.jsonl"
    write(path, 3, 150, compactions=1, malformed=2)
    return path


@pytest.mark.parametrize("name", list(every_command()))
def test_every_command_explains_itself_with_an_example(name):
    done = longhold(name, "--help")
    assert done.returncode == 0
    assert "Example: " in done.stdout
    assert "--json" in done.stdout or name in ("mcp", "keep", "statusline")  # a client's to read


def test_the_list_of_commands_says_what_each_command_says():
    with click.Context(cli) as context:
        found = {name: cli.get_command(context, name) for name in every_command()}
    assert {
        name: one.get_short_help_str(limit=200) for name, one in found.items()
    } == every_command()


def test_context_of_a_file_shows_what_fills_the_window(transcript):
    done = longhold("context", transcript)
    assert done.returncode == 0, done.stderr
    for word in (
        "tool results",
        "thinking",
        "until claude-code compacts at 167.0K",
        "% left",
        "malformed: 2 lines",
    ):
        assert word in done.stdout


def test_context_as_json_adds_up(transcript):
    found = json.loads(longhold("context", transcript, "--json").stdout)
    context = found["context"]
    assert context["is_reported"]
    assert sum(part["tokens"] for part in context["parts"]) == context["used_tokens"]
    assert context["window"]["auto_tokens"] == 167_000


def test_a_gzipped_transcript_is_read_like_a_plain_one(transcript, tmp_path):
    packed = tmp_path / "session.jsonl.gz"
    packed.write_bytes(gzip.compress(transcript.read_bytes()))
    one, other = (
        json.loads(longhold("context", path, "--json").stdout) for path in (transcript, packed)
    )
    assert one["context"] == other["context"]


def test_import_list_context_export_and_import_again(transcript, tmp_path):
    taken = json.loads(longhold("sessions", "import", transcript, "--json", cwd=tmp_path).stdout)
    assert taken["format"] == "claude-code"
    assert len(taken["malformed"]) == 2
    listed = json.loads(longhold("sessions", "--json", cwd=tmp_path).stdout)
    assert [found["id"] for found in listed] == [taken["session"]]
    before = json.loads(longhold("context", taken["session"], "--json").stdout)
    for format in ("anthropic", "claude-code"):
        out = tmp_path / f"out.{format}"
        done = longhold("sessions", "export", "newest", "--to", format, "--out", out, cwd=tmp_path)
        assert done.returncode == 0
        after = json.loads(longhold("context", out, "--json").stdout)
        assert after["messages"] == before["messages"]


def test_export_goes_to_stdout_and_never_overwrites(transcript, tmp_path):
    done = longhold("sessions", "export", transcript, "--to", "anthropic")
    assert json.loads(done.stdout)["messages"]
    refused = longhold("sessions", "export", transcript, "--to", "anthropic", "--out", transcript)
    assert refused.returncode == 4
    assert "not overwritten" in refused.stderr


def test_sessions_can_be_branched_and_deleted(transcript, tmp_path):
    id = json.loads(longhold("sessions", "import", transcript, "--json", cwd=tmp_path).stdout)[
        "session"
    ]
    branched = json.loads(longhold("sessions", "--branch", id, "--json").stdout)
    assert branched["from"] == id
    asked = longhold("sessions", "--delete", id, input="n\n")
    assert asked.returncode == 130
    assert longhold("sessions", "--delete", id, "--yes").returncode == 0
    left = json.loads(longhold("sessions", "--all", "--json").stdout)
    assert [found["id"] for found in left] == [branched["branched"]]


def test_config_names_every_setting_its_source_and_its_reason():
    done = longhold("config", env={"LONGHOLD_WINDOW_AUTO_LINE": "80%"})
    assert 'auto_line = "80%"  (from LONGHOLD_WINDOW_AUTO_LINE)' in done.stdout
    assert "# " in done.stdout


@pytest.mark.slow
def test_demo_mends_a_repository_and_computes_its_figures():
    done = longhold("demo", "--json")
    found = json.loads(done.stdout)
    assert (found["tests_before"], found["tests_after"]) == ("failed", "passed")
    assert set(found["tasks"]) == {"completed"}
    layers = found["layers"]
    assert layers["spilled_bytes"]
    assert layers["cleared"]
    assert layers["compacted"][0]["by"] == "model"
    assert layers["compacted"][0]["prefix_read_share"] >= 0.99
    assert layers["restored"]
    assert layers["tasks_still_verbatim"] == len(found["tasks"])
    assert found["broken_rules"] == []
    assert found["cache_read_share"] > 0.5
    assert found["usd"] < found["filled"]["usd"] < found["usd_without_cache"]
    assert found["tokens"] < found["filled"]["tokens"]
    assert found["notes"]["updates"] > 1
    assert found["notes"]["compacted"] >= 1
    assert found["notes"]["calls"] == 0


BAD_FILES = {
    "not-json.jsonl": b"this is prose\nand more of it\n",
    "binary.bin": bytes(range(256)) * 20,
    "empty.jsonl": b"",
    "newer.jsonl": b'{"longhold":99,"session":"x"}\n',
    "cut.gz": gzip.compress(b"x" * 9_000)[:40],
}


@pytest.mark.parametrize("name", sorted(BAD_FILES))
@pytest.mark.parametrize("command", ["context", "sessions import", "sessions export"])
def test_bad_input_gets_one_clear_line(tmp_path, name, command):
    path = tmp_path / name
    path.write_bytes(BAD_FILES[name])
    done = longhold(*command.split(), path)
    assert done.returncode == 3
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert name in done.stderr
    assert path.read_bytes() == BAD_FILES[name]


@pytest.mark.parametrize("target", ["nothing-here.jsonl", "no-such-session", "."])
def test_missing_targets_say_what_to_do(target, tmp_path):
    done = longhold("context", target, cwd=tmp_path)
    assert done.returncode in (3, 5)
    assert len(done.stderr.splitlines()) == 1
    assert ";" in done.stderr


def test_an_unknown_setting_is_an_error_that_names_the_file(tmp_path):
    (tmp_path / ".longhold").mkdir()
    (tmp_path / ".longhold" / "settings.toml").write_text("[window]\nautoline = '80%'\n")
    done = longhold("config", cwd=tmp_path)
    assert done.returncode == 2
    assert "no setting window.autoline" in done.stderr


def test_a_closed_pipe_is_no_error(tmp_path):
    path = tmp_path / "session.jsonl"
    write(path, 3, 150)
    done = subprocess.run(
        f"{sys.executable} -m longhold sessions export {path} --to claude-code | head -1",
        shell=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == ""
    assert done.stdout.count("\n") == 1


def test_interrupting_an_import_leaves_nothing_behind(tmp_path):
    path = tmp_path / "large.jsonl"
    write_large(path, 1, 40_000_000)
    child = subprocess.Popen(
        [sys.executable, "-m", "longhold", "sessions", "import", str(path)],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    home = Path(os.environ["LONGHOLD_HOME"])
    end = time.monotonic() + 30
    while not list(home.rglob("*.partial")) and time.monotonic() < end:
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=30)
    assert child.returncode == 130
    assert err.strip() == "Stopped."
    assert longhold("sessions", "--all", "--json").stdout.strip() == "[]"


def test_every_error_of_the_system_is_one_line(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "file").write_text("")
    for words, env in (
        (("context", "a" * 300), {}),
        (("sessions", "import", tmp_path / "loop"), {}),
        (("sessions",), {"LONGHOLD_HOME": str(tmp_path / "file")}),
        (("config",), {"LONGHOLD_HOME": "~nobody-of-that-name/x"}),
    ):
        done = longhold(*words, cwd=tmp_path, env=env)
        assert done.returncode != 0
        assert len(done.stderr.splitlines()) == 1, done.stderr


def test_a_sub_agent_is_reached_by_its_sessions_id(transcript, tmp_path):
    taken = json.loads(longhold("sessions", "import", transcript, "--json", cwd=tmp_path).stdout)
    write(tmp_path / "agent-abc.jsonl", 4, 60, sidechain=True)
    header = FileStore().find(taken["session"]).header
    with open_transcript(tmp_path / "agent-abc.jsonl") as agent:
        FileStore().add(header, agent.entries, agent=f"{taken['session']}/abc")
    found = json.loads(longhold("context", f"{taken['session']}/abc", "--json").stdout)
    assert found["messages"] > 5


def test_nothing_in_a_session_can_steer_the_terminal(tmp_path):
    path = tmp_path / "odd.json"
    path.write_text(json.dumps({"messages": [{"role": "user", "content": "\x1b]0;owned\x07 hi"}]}))
    done = longhold("explain", path)
    assert done.returncode == 0
    assert "\x1b" not in done.stdout


def test_help_groups_every_command_by_what_one_wants_to_do():
    shown = longhold("--help").stdout
    places = [shown.index(f"{purpose}:") for purpose in COMMANDS]
    assert places == sorted(places)
    listed = re.findall(r"^  ([a-z][a-z-]+)  ", shown, re.M)
    names = [name for commands in COMMANDS.values() for name in commands]
    assert listed == names
    assert len(names) <= 26
    assert not set(HIDDEN) & set(listed)


@pytest.mark.parametrize("at", [1e308, -1e308, 2.0**63, -1.0])
def test_a_time_that_no_calendar_has_stops_no_command(tmp_path, at):
    reply = Replied(
        n=3,
        at=at,
        response_id="r",
        model="claude-opus-4-6",
        content=(),
        usage=Usage(input_tokens=9),
    )
    path = tmp_path / "s.jsonl"
    asked = Said(n=1, at=at, content=(Text(text="hello there"),))
    write_log(path, Header(session="s"), [asked, Asked(n=2, at=at), reply])
    for words in (
        ("context", path), ("cost", path), ("cache", path), ("explain", path),
        ("history", path, "hello"), ("sessions", "export", path, "--to", "pi"), ("inspect", path, "--json"),
    ):  # fmt: skip
        done = longhold(*words)
        assert done.returncode == 0, (words, done.stderr)


def test_context_fits_40_columns(transcript, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    table, _, _ = longhold("context", transcript).stdout.split("\n\n", 1)[1].partition("malformed")
    assert table.count("\n") > 5
    assert max(map(len, table.splitlines())) <= 40
