"""Commands that run the agent offline, and the simulator for other clients."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from contextlib import contextmanager

import pytest

from command_line import longhold
from longhold.core.log.entries import Said
from longhold.core.log.stores import default_store
from longhold.core.messages import text_of
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


def _said(session):
    """Return the user's words and the data that went with them."""
    entries = default_store().load(session).entries
    found = [entry for entry in entries if isinstance(entry, Said)]
    return (
        [text_of(entry.content) for entry in found if not entry.hidden],
        [text_of(entry.content) for entry in found if entry.hidden],
    )


def _run_with(project, input, *words):
    done = longhold("run", "--offline", "--json", *words, cwd=project, input=input)
    return _said(json.loads(done.stdout)["session"])


def test_what_is_piped_into_run_goes_with_the_task_as_data(project):
    words, data = _run_with(project, "+ a line\n[End]\n", "-p", "review")
    assert words == ["review"]
    piped = [each for each in data if "piped in" in each]
    assert len(piped) == 1
    assert piped[0].splitlines()[1:] == ["| + a line", "| [End]"]


@pytest.mark.parametrize("words", [(), ("-p", "-")])
def test_without_a_task_stdin_is_the_task(project, words):
    said, data = _run_with(project, "list the files\n", *words)
    assert said == ["list the files"]
    assert not [each for each in data if "piped in" in each]


def test_a_pipe_that_says_nothing_does_not_hold_up_a_task(project):
    reading, writing = os.pipe()
    words = [sys.executable, "-m", "longhold", "run", "--offline", "-p", "list the files", "--json"]
    try:
        done = subprocess.run(
            words, stdin=reading, capture_output=True, text=True, cwd=project, timeout=60
        )
    finally:
        os.close(reading)
        os.close(writing)
    assert "No input on stdin" in done.stderr
    assert _said(json.loads(done.stdout)["session"])[0] == ["list the files"]


def test_too_much_on_stdin_is_refused_in_one_line(project):
    done = longhold("run", "--offline", "-p", "x", cwd=project, input="a" * (10 << 20) + "b")
    assert done.stderr.startswith("longhold: stdin has more than 10")
    assert len(done.stderr.splitlines()) == 1


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


def _chat(project, *lines):
    done = longhold("chat", "--offline", cwd=project, input="\n".join((*lines, "/exit", "")))
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done


def _newest():
    return _said(default_store().sessions()[0].id)


def test_the_users_own_command_runs_and_goes_to_the_model_with_the_next_message(project):
    done = _chat(project, "!echo three masts > m; cat m", "list the files")
    assert "three masts" in done.stdout
    words, data = _newest()
    assert words == ["list the files"]
    ran = [each for each in data if "The user ran this command" in each]
    assert [each.splitlines()[1:3] for each in ran] == [
        ["| $ echo three masts > m; cat m", "| three masts"]
    ]


def test_a_rule_denies_the_users_own_command_too(project):
    home().mkdir(parents=True, exist_ok=True)
    (home() / "settings.json").write_text('{"permissions": {"deny": ["Bash(touch:*)"]}}')
    done = _chat(project, "!touch made", "/permissions")
    assert "Not allowed" in done.stderr
    assert not (project / "made").exists()
    assert "deny   Bash(touch:*)" in done.stdout


def test_a_hash_keeps_a_memory(project):
    _chat(project, "# Releases are tagged on Fridays")
    shown = longhold("memory", "search", "tagged", cwd=project)
    assert "Releases are tagged on Fridays" in shown.stdout


def test_commands_from_files_are_prompts_and_a_projects_need_trust(project):
    (home() / "commands").mkdir(parents=True)
    (home() / "commands" / "greet.md").write_text("---\ndescription: hail\n---\nGreet $ARGUMENTS.")
    theirs = project / ".claude" / "commands"
    theirs.mkdir(parents=True)
    (theirs / "ship.md").write_text("Ship it.")
    (theirs / "greet.md").write_text("Not this one.")
    done = _chat(project, "/help", "/greet the crew", "/ship now", "/mcp")
    assert "/greet [WORDS]" in done.stdout
    assert "/init" in done.stdout
    assert "No MCP server is connected." in done.stdout
    assert "ship.md is not trusted yet" in done.stderr
    assert _newest()[0] == ["Greet the crew."]
    assert "Ship it." in longhold("trust", "--yes", cwd=project).stdout
    _chat(project, "/ship now")
    assert _newest()[0] == ["Ship it.\n\nnow"]
    (theirs / "ship.md").write_text("Ship something else.")
    assert "not trusted yet" in _chat(project, "/ship").stderr


def test_a_resumed_chat_shows_the_last_messages_and_simulated_money_is_called_so(project):
    _chat(project, "list the files")
    done = longhold("chat", "--offline", "--resume", "newest", cwd=project, input="/cost\n/exit\n")
    assert "> list the files" in done.stderr
    assert "Done in 1 step." in done.stdout
    assert "These costs are simulated. Nothing is billed." in done.stdout


@pytest.mark.parametrize(
    "words", [(), ("sessions",), ("cost",), ("chat", "--offline"), ("run", "--offline", "-p", "x")]
)
def test_a_deleted_directory_is_one_line(tmp_path, words):
    done = _in_deleted_directory(tmp_path, words)
    line = "longhold: the current directory no longer exists; change to another one\n"
    assert (done.returncode, done.stdout, done.stderr) == (4, "", line)


def test_a_report_needs_no_directory(tmp_path):
    done = _in_deleted_directory(tmp_path, ["report"])
    assert done.stdout.startswith("No session with recorded usage was found.")
    assert done.stderr == ""


def _in_deleted_directory(tmp_path, words):
    gone = tmp_path / "gone"
    gone.mkdir()
    script = 'rmdir "$PWD" && exec "$@"'
    return subprocess.run(
        ["sh", "-c", script, "sh", sys.executable, "-m", "longhold", *words],
        capture_output=True,
        text=True,
        cwd=gone,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("has_own_home", [False, True])
@pytest.mark.parametrize(
    "words",
    [
        *[("report",), ("sessions", "--all"), ("cost",), ("install", "claude-code", "--yes")],
        *[("wrap", "true"), ("chat", "--offline"), ("run", "--offline", "-p", "x"), ("demo",)],
    ],
)
def test_no_home_is_one_line(words, has_own_home, tmp_path):
    """Without HOME and a passwd entry, as in a container, where LONGHOLD_HOME may be set."""
    bare = {
        name: value
        for name, value in os.environ.items()
        if name not in ("HOME", "LONGHOLD_HOME", "CLAUDE_CONFIG_DIR", "PI_CODING_AGENT_DIR")
    }
    if has_own_home:
        bare["LONGHOLD_HOME"] = str(tmp_path / "home")
    program = (
        "import pwd\n"
        "def nobody(user): raise KeyError(user)\n"
        "pwd.getpwuid = nobody\n"
        "from longhold.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=bare,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    *before, last = done.stderr.splitlines()
    assert last.startswith("longhold: HOME is not set and the user has no passwd entry;")
    assert not [line for line in before if not line.startswith("offline: ")]
    assert done.returncode == 2


@pytest.mark.parametrize(
    "words",
    [
        *[("chat", "--offline"), ("run", "--offline", "-p", "x"), ("wrap", "true")],
        *[("config", "set", "model.offline", "true"), ("memory", "edit", "a.md", "--text", "x")],
    ],
)
def test_a_home_that_cannot_be_written_is_one_line(words, tmp_path):
    (tmp_path / "file").touch()
    place = tmp_path / "file" / "home"
    done = longhold(*words, cwd=tmp_path, env={"LONGHOLD_HOME": str(place)})
    *before, last = done.stderr.splitlines()
    assert last.startswith(f"longhold: {place}")
    assert not [line for line in before if not line.startswith("offline: ")]
    assert done.returncode in (2, 4)  # settings below a file are unreadable, too


def test_what_only_looks_leaves_nothing_behind(tmp_path):
    for words in (("memory", "dream"), ("memory", "show"), ("memory", "log")):
        assert longhold(*words, cwd=tmp_path).returncode == 0
    done = longhold("chat", "--offline", cwd=tmp_path, input="/help\n/exit\n")
    assert done.returncode == 0, done.stderr
    assert [path for path in home().rglob("*") if path.is_file()] == []
    assert "No sessions" in longhold("sessions", cwd=tmp_path).stdout


@pytest.mark.filterwarnings("ignore:Can not control echo")
def test_login_saves_a_key(project):
    done = _chat(project, "/login", "2", "sk-test-1234")
    assert "The next session uses it" in done.stdout, done.stderr
    saved = home() / "keys.json"
    assert json.loads(saved.read_text()) == {"OPENAI_API_KEY": "sk-test-1234"}
    assert saved.stat().st_mode & 0o777 == 0o600


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
        assert _ask(url)["usage"]["input_tokens"] > 0
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
        assert _ask(url)["content"][0]["text"] == "I was recorded."


def _ask(url):
    said = [{"role": "user", "content": "hi"}]
    asked = {"model": "claude-sonnet-4-6", "max_tokens": 200, "messages": said}
    headers = {
        "x-api-key": "x",
        "anthropic-version": "2023-06-01",
        "content-type": "application/json",
    }
    request = urllib.request.Request(f"{url}/v1/messages", json.dumps(asked).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def test_doctor_finds_what_is_broken_and_says_how_to_mend_it(tmp_path):
    home = tmp_path / "open"
    home.mkdir(mode=0o755)
    done = longhold("doctor", "--json", cwd=tmp_path, env={"LONGHOLD_HOME": str(home)})
    findings = {found["name"]: found for found in json.loads(done.stdout)}
    assert done.returncode == 1
    assert findings["home"]["fix"].startswith("chmod 700")
    assert findings["settings"]["state"] == "ok"
