"""Real clients after `longhold install`, through one of their own compactions."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from longhold.simulator import BrainAnswer, BrainRequest, run_simulator
from longhold.simulator.brains import text, tool_use
from programs import PATH, find

pytestmark = [
    pytest.mark.optional,
    pytest.mark.timeout(300),
]

TURN_SECONDS = 120
ASKED = "Never rename Kingfisher in config_store.py"


class Forgetful:
    """Summarises everything as nothing."""

    def __init__(self) -> None:
        self.requests: list[str] = []

    def answer(self, request: BrainRequest) -> BrainAnswer:
        self.requests.append(json.dumps(request.messages))
        return BrainAnswer(blocks=(text("There was some talk."),))


def test_what_a_compaction_loses_is_asked_for_before_and_given_back_after(tmp_path):
    client = _client("claude")
    project = tmp_path / "project"
    project.mkdir()
    environment = {
        "PATH": PATH,
        "PYTHONPATH": os.pathsep.join(map(str, sys.path)),
        "HOME": str(tmp_path),
        "LONGHOLD_HOME": str(tmp_path / "longhold"),
        "ANTHROPIC_API_KEY": "simulated",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    install = [sys.executable, "-m", "longhold", "install", "claude-code", "--yes"]
    subprocess.run(install, env=environment, check=True, stdout=subprocess.DEVNULL)
    brain = Forgetful()
    with run_simulator(brain) as simulator:
        environment["ANTHROPIC_BASE_URL"] = simulator.url
        for words in ([ASKED], ["--continue", "Go on."], ["--continue", "/compact"]):
            _turn(client, project, environment, *words)
        assert "must keep it word for word" in brain.requests[-1]
        _turn(client, project, environment, "--continue", "And now?")
    assert ASKED in brain.requests[-1].partition("Kept by Longhold")[2]


class Searcher(Forgetful):
    """Looks for the name in the history before it answers a question about it."""

    def answer(self, request: BrainRequest) -> BrainAnswer:
        answered = super().answer(request)
        if "What was it called?" in self.requests[-1] and "tool_result" not in self.requests[-1]:
            return BrainAnswer(blocks=(tool_use("search_history", {"query": "rename Kingfisher"}),))
        return answered


def test_pi_gives_back_what_its_compaction_lost_and_searches_its_history(tmp_path):
    client = _client("pi")
    place = tmp_path / ".pi" / "agent"
    environment = {
        "PATH": PATH,
        "PYTHONPATH": os.pathsep.join(map(str, sys.path)),
        "HOME": str(tmp_path),
        "LONGHOLD_HOME": str(tmp_path / "longhold"),
        "ANTHROPIC_API_KEY": "simulated",
        "PI_OFFLINE": "1",
    }
    install = [sys.executable, "-m", "longhold", "install", "pi", "--yes"]
    subprocess.run(install, env=environment, check=True, stdout=subprocess.DEVNULL)
    (place / "settings.json").write_text('{"compaction": {"keepRecentTokens": 1}}')
    brain = Searcher()
    with run_simulator(brain) as simulator:
        providers = {"anthropic": {"baseUrl": simulator.url}}
        (place / "models.json").write_text(json.dumps({"providers": providers}))
        started = subprocess.Popen(
            [client, "--mode", "rpc", "--model", "anthropic/claude-opus-4-5"],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        with started as pi:
            said = _said(pi, {"type": "prompt", "message": ASKED}, "agent_end")
            said += _said(pi, {"type": "prompt", "message": "Go on."}, "agent_end")
            said += _said(pi, {"type": "compact"}, "response")
            said += _said(pi, {"type": "prompt", "message": "What was it called?"}, "agent_end")
            pi.stdin.close()
    kept = [sent for sent in brain.requests if "Kept by Longhold" in sent]
    assert ASKED in kept[0].partition("Kept by Longhold")[2]
    assert "| Never rename Kingfisher" in brain.requests[-1].partition("tool_result")[2]
    status = [one for one in said if one.get("method") == "setStatus"]
    assert "cache warm until" in status[-1]["statusText"]


def _said(pi: subprocess.Popen[str], command: dict[str, str], end: str) -> list[dict]:
    """Send a command and collect what pi says until a record of type `end`."""
    pi.stdin.write(json.dumps(command) + "\n")
    pi.stdin.flush()
    said = []
    for line in pi.stdout:
        said.append(json.loads(line))
        is_answer = end != "response" or said[-1].get("command") == command["type"]
        if said[-1]["type"] == end and is_answer:
            return said
    raise AssertionError(f"pi ended: {said[-3:]}")


def _client(name: str) -> str:
    found = find(name)
    if found is None:
        pytest.skip(f"{name} is not on this machine")
    return found


def _turn(client: str, project: Path, environment: dict[str, str], *words: str) -> None:
    done = subprocess.run(
        [client, "-p", *words, "--model", "claude-opus-5-5"],
        cwd=project,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TURN_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
