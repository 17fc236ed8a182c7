"""Working commands: the agent offline, the simulator for other clients."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from contextlib import contextmanager

import pytest

from command_line import longhold
from longhold.core.settings import home


@pytest.fixture
def project(tmp_path):
    """A file with a bug."""
    (tmp_path / "add.py").write_text("def add(a, b):\n    return a - b\n")
    return tmp_path


TASK = 'replace "a - b" with "a + b" in add.py'


def test_run_works_offline_for_nothing(project):
    done = longhold("run", "--offline", "--mode", "bypass", "-p", TASK, "--json", cwd=project)
    report = json.loads(done.stdout)
    assert (done.returncode, report["reason"]) == (0, "completed")
    assert "a + b" in (project / "add.py").read_text()
    assert (report["simulated"], report["spent"]["usd"]) == (True, 0)
    assert report["spent"]["output_tokens"] > 0
    told = json.loads(longhold("explain", report["session"], "--json", cwd=project).stdout)
    assert told[-1]["calls"]["Edit"] == 1
    again = longhold(
        "run", "--offline", "--resume", "newest", "-p", "list the files", "--json", cwd=project
    )
    assert json.loads(again.stdout)["session"] == report["session"]


def test_run_streams_its_events_as_json_lines(project):
    done = longhold(
        "run", "--offline", "--mode", "bypass", "-p", TASK, "--stream-json", cwd=project
    )
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [e["name"] for e in events if e["type"] == "tool_began"][:2] == ["Glob", "Grep"]
    assert (events[0]["type"], events[-1]["type"]) == ("session", "spent")
    assert events[-2]["type"] == "stopped"


def test_a_run_whose_calls_are_denied_fails_and_says_how_to_allow_them(project):
    done = longhold("run", "--offline", "-p", TASK, cwd=project)
    assert "a - b" in (project / "add.py").read_text()
    assert done.returncode == 9
    assert "Nothing was changed" in done.stderr
    assert "  Edit add.py" in done.stderr
    assert "--mode accept_edits" in done.stderr
    assert '{"permissions": {"allow": [' in done.stderr
    told = json.loads(longhold("run", "--offline", "-p", TASK, "--json", cwd=project).stdout)
    assert "Edit" in [call["name"] for call in told["denied"]]


def test_the_rule_that_a_denied_run_names_allows_it(project):
    done = longhold("run", "--offline", "-p", TASK, cwd=project)
    rule = done.stderr[done.stderr.index('{"permissions"') :].strip()
    home().mkdir(parents=True, exist_ok=True)
    (home() / "settings.json").write_text(rule)
    assert longhold("run", "--offline", "-p", TASK, cwd=project).returncode == 0
    assert "a + b" in (project / "add.py").read_text()


def test_a_run_that_did_its_work_succeeds_though_something_was_denied(project):
    done = longhold("run", "--offline", "--mode", "accept_edits", "-p", TASK, cwd=project)
    assert "a + b" in (project / "add.py").read_text()
    assert done.returncode == 0, done.stderr


def test_offline_says_what_it_is_and_prints_no_dollars(project):
    done = longhold("run", "--offline", "--mode", "bypass", "-p", TASK, cwd=project)
    assert "a fixed plan on a simulated API, no model" in done.stderr
    assert ", simulated\n" in done.stderr
    assert "$" not in done.stdout + done.stderr
    for words in (("--model", "claude-opus-5"), ("--base-url", "http://127.0.0.1:1")):
        refused = longhold("run", "--offline", *words, "-p", TASK, cwd=project)
        assert (refused.returncode, "--offline asks no model" in refused.stderr) == (2, True)


def test_simulated_money_is_in_no_ledger_and_simulated_tokens_teach_nothing(project):
    longhold("run", "--offline", "--mode", "bypass", "-p", TASK, cwd=project)
    assert not (home() / "spent").exists()
    assert not (home() / "calibration").exists()


def test_run_says_what_is_missing(project):
    assert "give a task" in longhold("run", cwd=project).stderr
    bare = {name: None for name in os.environ if name.endswith("_API_KEY")}
    assert longhold("run", "-p", "x", cwd=project, env=bare).returncode == 7
    assert "no provider" in longhold("run", "-p", "x", "--model", "nobody", cwd=project).stderr


def test_chat_answers_commands_and_leaves(project):
    talk = "/help\n/mode bypass\n" + TASK + "\n/context\n/exit\n"
    done = subprocess.run(
        [sys.executable, "-m", "longhold", "chat", "--offline"],
        capture_output=True,
        text=True,
        cwd=project,
        timeout=90,
        input=talk,
    )
    assert done.returncode == 0, done.stderr
    assert "/model [NAME]" in done.stdout
    assert "tool results" in done.stdout
    assert "a + b" in (project / "add.py").read_text()


def test_chat_compacts_and_takes_it_back(project):
    (project / "long.txt").write_text("a line of some words\n" * 900)
    talk = "read long.txt\n/compact the words\n/undo\n/redo\n/undo 99999\n/exit\n"
    done = longhold("chat", "--offline", cwd=project, input=talk)
    assert done.returncode == 0, done.stderr
    assert "compacted" in done.stderr
    assert "restores the history" in done.stdout
    assert "was undone: compacted" in done.stdout
    assert "is re-applied" in done.stdout
    assert "is not a change of the view" in done.stderr


def test_trust_shows_what_a_project_brings_and_vouches_for_it(project):
    hooks = {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}
    (project / ".longhold").mkdir()
    (project / ".longhold" / "hooks.json").write_text(json.dumps(hooks))
    shown = json.loads(longhold("trust", "--json", cwd=project).stdout)
    assert [found["kind"] for found in shown] == ["hooks"]
    assert "Trusted." in longhold("trust", cwd=project, input="y\n").stdout
    assert json.loads(longhold("trust", "--json", cwd=project).stdout) == []


@contextmanager
def simulator(*words, cwd):
    """Start a simulator and give its address."""
    child = subprocess.Popen(
        [sys.executable, "-m", "longhold", "simulator", "--port", "0", "--json", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
    )
    try:
        lines = [child.stdout.readline() for _ in range(4)]
        yield json.loads("".join(lines))["url"]
    finally:
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=20)


@pytest.mark.parametrize("brain", ["digest", "echo"])
def test_the_simulator_serves_other_clients(tmp_path, brain):
    with simulator("--brain", brain, cwd=tmp_path) as url:
        words = ("model", "test", "claude-sonnet-4-6", "--base-url", url, "--json")
        done = longhold(*words, cwd=tmp_path, env={"ANTHROPIC_API_KEY": "x"})
        assert json.loads(done.stdout)["usage"]["input_tokens"] > 0, done.stderr
        with urllib.request.urlopen(f"{url}/simulator/stats") as stats:
            assert json.load(stats)["totals"]["requests"] == 1


def test_the_simulator_replays_a_recorded_session(tmp_path):
    script = tmp_path / "recorded.json"
    messages = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": "I was recorded."},
    ]
    script.write_text(json.dumps({"messages": messages}))
    with simulator("--brain", f"replay:{script}", cwd=tmp_path) as url:
        words = ("model", "test", "claude-sonnet-4-6", "--base-url", url, "--json")
        done = longhold(*words, cwd=tmp_path, env={"ANTHROPIC_API_KEY": "x"})
        assert json.loads(done.stdout)["text"] == "I was recorded."


def test_doctor_finds_what_is_broken_and_says_how_to_mend_it(tmp_path):
    home = tmp_path / "open"
    home.mkdir(mode=0o755)
    done = longhold("doctor", "--json", cwd=tmp_path, env={"LONGHOLD_HOME": str(home)})
    findings = {found["name"]: found for found in json.loads(done.stdout)}
    assert done.returncode == 1
    assert findings["home"]["fix"].startswith("chmod 700")
    assert findings["python"]["state"] == "ok"


@pytest.mark.parametrize(("is_on", "state"), [("true", "ok"), ("false", "broken")])
def test_doctor_sends_a_request_through_a_gateway(tmp_path, is_on, state):
    done = longhold("doctor", "--json", cwd=tmp_path, env={"LONGHOLD_GATEWAY_ON": is_on})
    [found] = [one for one in json.loads(done.stdout) if one["name"] == "gateway"]
    assert found["state"] == state, found
    assert not [file for file in home().rglob("*") if file.is_file()]


def test_models_are_listed_with_their_windows_and_prices(tmp_path):
    found = json.loads(longhold("model", "list", "--json", cwd=tmp_path).stdout)
    assert any(
        row["model"] == "claude-opus-5-5" and row["window_tokens"] == 1_000_000
        for row in found["hosted"]
    )
    assert [row["model"] for row in found["local"]] == ["local/smollm2", "local/qwen-coder"]
