"""An unmodified coding agent at work against the simulator: two turns, real tools, one cache.

The client is installed from a package registry and run as a user runs it. Only its address, key and
home are set by the test. LONGHOLD_TEST_CLIENT names a binary to use instead.
"""

import json
import os
import socket
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from command_line import longhold
from longhold.core.messages import ToolUse
from longhold.core.messages.rules import violations
from longhold.session.session import Session
from longhold.simulator import BrainAnswer, BrainRequest, run_simulator
from longhold.simulator.brains import thinking
from longhold.simulator.brains.digest import DigestBrain
from programs import PATH, find

pytestmark = [
    pytest.mark.optional,
    pytest.mark.timeout(600),
]

PACKAGE = "@anthropic-ai/claude-code"
VERSION = "latest"
"""Asked for by name: left to itself, npm goes back to a version that fits the node it runs on,
which the client, being a program of its own, does not need."""
MODEL = "claude-opus-5-5"
"""Named, because some versions change the default after a first run, and with it the prompt."""
TOOLS = "Bash,Edit,Glob,Grep,Read,Write"
SILENT = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
"""No telemetry, no error reports, no looking for updates."""
INSTALL_SECONDS = 300
TURN_SECONDS = 120
FIRST = 'replace "hello" with "good day" in greeting.py'
SECOND = "What is in greeting.py now?"


class ThinkingCoder:
    """Works like the digest brain, thinks before it speaks, and keeps what it was asked."""

    def __init__(self) -> None:
        self._coder = DigestBrain(test_command="cat greeting.py")
        self.requests: list[BrainRequest] = []

    def answer(self, request: BrainRequest) -> BrainAnswer:
        self.requests.append(request)
        answer = self._coder.answer(request)
        thought = thinking(f"This is step {len(self.requests)}.")
        return replace(answer, blocks=(thought, *answer.blocks))


@dataclass(frozen=True, slots=True, kw_only=True)
class Worked:
    """What two turns left behind."""

    replies: list[dict]
    """What the client printed at the end of each turn."""
    first_count: int
    """How many requests the first turn took."""
    served: list[dict]
    """The simulator's record of each request."""
    asked: list[BrainRequest]
    project: Path
    transcripts: list[Path]
    strays: int
    """Connections to anywhere but the simulator."""


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """Install the client; nothing from its packages runs while that happens."""
    if given := os.environ.get("LONGHOLD_TEST_CLIENT"):
        return Path(given)
    npm = find("npm")
    if npm is None:
        pytest.skip("npm, which installs the client, is not on this machine")
    place = tmp_path_factory.mktemp("client")
    quiet = ("--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier")
    done = subprocess.run(
        [npm, "install", "--prefix", str(place), *quiet, f"{PACKAGE}@{VERSION}"],
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    built = sorted(place.glob(f"node_modules/{PACKAGE}-*/claude*"))
    assert built, f"{PACKAGE} has no build for this platform"
    return built[0]


@pytest.fixture(scope="module")
def worked(client, tmp_path_factory):
    """Let the client do two turns of one session, once for all tests here."""
    root = tmp_path_factory.mktemp("work")
    home, project = root / "home", root / "project"
    home.mkdir()
    project.mkdir()
    (project / "greeting.py").write_text('GREETING = "hello"\n')
    brain = ThinkingCoder()
    with run_simulator(brain) as simulator, socket.create_server(("127.0.0.1", 0)) as elsewhere:
        surroundings = _surroundings(home, simulator.url, elsewhere)
        first = _turn(client, project, surroundings, FIRST)
        first_count = len(brain.requests)
        second = _turn(client, project, surroundings, "--continue", SECOND)
        served = simulator.simulation.stats.to_json()["requests"]
        strays = _knocks(elsewhere)
    return Worked(
        replies=[first, second],
        first_count=first_count,
        served=served,
        asked=brain.requests,
        project=project,
        transcripts=sorted(home.glob(".claude/projects/*/*.jsonl")),
        strays=strays,
    )


def _surroundings(home: Path, url: str, elsewhere: socket.socket) -> dict[str, str]:
    """An environment of our own: all but loopback goes to a proxy that only counts."""
    proxy = f"http://127.0.0.1:{elsewhere.getsockname()[1]}"
    return {
        "PATH": PATH,
        "HOME": str(home),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "simulated",
        "HTTP_PROXY": proxy,
        "HTTPS_PROXY": proxy,
        "NO_PROXY": "127.0.0.1",
        **SILENT,
    }


def _turn(client: Path, project: Path, surroundings: dict[str, str], *words: str) -> dict:
    """Run the client once, without a terminal, to the end of its turn."""
    options = ("--model", MODEL, "--allowedTools", TOOLS, "--output-format", "json")
    done = subprocess.run(
        [client, "-p", *words, *options],
        cwd=project,
        env=surroundings,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TURN_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def _knocks(listener: socket.socket) -> int:
    """Count the connections that wait to be accepted."""
    listener.setblocking(False)
    count = 0
    while True:
        try:
            listener.accept()[0].close()
        except BlockingIOError:
            return count
        count += 1


def _blocks(request: BrainRequest, kind: str) -> list[dict]:
    return [b for m in request.messages for b in m["content"] if b.get("type") == kind]


def test_both_turns_come_to_their_end(worked):
    assert [reply["is_error"] for reply in worked.replies] == [False, False]
    assert [reply["stop_reason"] for reply in worked.replies] == ["end_turn", "end_turn"]
    assert worked.replies[0]["result"].endswith('GREETING = "good day"')
    assert "Read greeting.py: ok" in worked.replies[1]["result"]
    assert len({reply["session_id"] for reply in worked.replies}) == 1


def test_the_tools_really_ran(worked):
    assert (worked.project / "greeting.py").read_text() == 'GREETING = "good day"\n'
    calls, results = (_blocks(worked.asked[-1], kind) for kind in ("tool_use", "tool_result"))
    assert {call["name"] for call in calls} >= {"Read", "Edit", "Bash"}
    assert [r["tool_use_id"] for r in results] == [call["id"] for call in calls]
    assert not any(result.get("is_error") for result in results)


def test_nothing_it_sends_is_refused(worked):
    assert len(worked.served) == len(worked.asked) > 2
    assert {request["status"] for request in worked.served} == {200}


def test_signed_thinking_survives_the_client(worked):
    assert len(_blocks(worked.asked[-1], "thinking")) == len(worked.asked) - 1


def test_the_second_turn_reads_the_first_from_the_cache(worked):
    last, resumed = worked.served[worked.first_count - 1], worked.served[worked.first_count]
    known = last["read_tokens"] + last["write_5m_tokens"] + last["write_1h_tokens"]
    assert resumed["read_tokens"] == known > 0


def test_client_and_simulator_agree_on_the_bill(worked):
    counted = {
        "input_tokens": "uncached_tokens",
        "cache_read_input_tokens": "read_tokens",
        "cache_creation_input_tokens": "write_5m_tokens",
        "output_tokens": "output_tokens",
    }
    turns = worked.served[: worked.first_count], worked.served[worked.first_count :]
    for reply, turn in zip(worked.replies, turns, strict=True):
        for theirs, ours in counted.items():
            assert reply["usage"][theirs] == sum(request[ours] for request in turn), theirs


def test_it_talks_to_nobody_else(worked):
    assert worked.strays == 0


def test_its_transcript_can_be_imported(worked):
    (transcript,) = worked.transcripts
    done = longhold("sessions", "import", transcript, "--json")
    taken = json.loads(done.stdout)
    assert (taken["format"], taken["malformed"], taken["repaired"]) == ("claude-code", [], {})
    with Session.resume(taken["session"]) as session:
        messages = session.view.messages()
    assert violations(messages) == []
    calls = [b.id for m in messages for b in m.content if isinstance(b, ToolUse)]
    assert calls == [call["id"] for call in _blocks(worked.asked[-1], "tool_use")]
