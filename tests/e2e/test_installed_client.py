"""Claude Code with `holdfast install` in it, unmodified, through a compaction of its own."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.simulator import BrainAnswer, BrainRequest, running
from holdfast.simulator.brains import text

pytestmark = [
    pytest.mark.optional,
    pytest.mark.skipif(
        os.environ.get("HOLDFAST_TEST_OPTIONAL") != "1",
        reason="HOLDFAST_TEST_OPTIONAL=1 runs a real client",
    ),
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
    """The summary's prompt names it, and the next request holds it."""
    places = os.environ.get("HOLDFAST_TEST_CLIENTS", "") + os.pathsep + os.environ["PATH"]
    client = shutil.which("claude", path=places)
    if client is None:
        pytest.skip("claude is not on this machine")
    project = tmp_path / "project"
    project.mkdir()
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(map(str, sys.path)),
        "HOME": str(tmp_path),
        "HOLDFAST_HOME": str(tmp_path / "holdfast"),
        "ANTHROPIC_API_KEY": "simulated",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    install = [sys.executable, "-m", "holdfast", "install", "claude-code", "--yes"]
    subprocess.run(install, env=environment, check=True, stdout=subprocess.DEVNULL)
    brain = Forgetful()
    with running(brain) as simulator:
        environment["ANTHROPIC_BASE_URL"] = simulator.url
        for words in ([ASKED], ["--continue", "Go on."], ["--continue", "/compact"]):
            _turn(client, project, environment, *words)
        assert "must keep it word for word" in brain.requests[-1]
        _turn(client, project, environment, "--continue", "And now?")
    assert ASKED in brain.requests[-1].partition("Kept by Holdfast")[2]


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
