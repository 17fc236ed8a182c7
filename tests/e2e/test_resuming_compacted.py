"""A session compacted with `compact --for`, resumed by that client, unmodified.

The clients are searched on the path and in LONGHOLD_TEST_CLIENTS. Only their home and address are
set by the test. The server checks the request for a fact that only the summary has.
"""

import json
import re
import shlex
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from command_line import longhold
from generated_sessions import generate
from longhold.simulator import BrainAnswer, BrainRequest, run_simulator
from longhold.simulator.brains import text
from programs import PATH, find

pytestmark = [
    pytest.mark.optional,
    pytest.mark.timeout(300),
]

FACT = "Remember that the release is called Kingfisher, and never rename it."
QUESTION = "What is the release called?"
SILENT = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
TURN_SECONDS = 120


def _answer(sent: str) -> str:
    found = re.search(r"the release is called (\w+)", sent)
    return f"It is called {found[1]}." if found else "I do not know."


class Rememberer:
    """Answers from what it is sent, and from nothing else."""

    def answer(self, request: BrainRequest) -> BrainAnswer:
        return BrainAnswer(blocks=(text(_answer(json.dumps(request.messages))),))


@dataclass
class ResponsesServer:
    """Answers `/v1/responses`, which the simulator does not speak, in one stream."""

    url: str = ""
    sent: list[str] = field(default_factory=list)

    @contextmanager
    def running(self):
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                server.sent.append(body)
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                for event in _events(_answer(body)):
                    line = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
                    self.wfile.write(line.encode())

            def log_message(self, *_):
                """Keep the tests' output to themselves."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
            self.url = f"http://127.0.0.1:{http.server_port}"
            thread = Thread(target=http.serve_forever, daemon=True)
            thread.start()
            try:
                yield self
            finally:
                http.shutdown()
                thread.join()


def _events(said: str):
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    content = [{"type": "output_text", "text": said, "annotations": []}]
    item = {"type": "message", "role": "assistant", "id": "item", "content": content}
    yield {"type": "response.created", "response": {"id": "r"}}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    yield {"type": "response.completed", "response": {"id": "r", "usage": usage}}


@pytest.fixture
def project(tmp_path):
    place = tmp_path / "project"
    place.mkdir()
    return place


@pytest.fixture
def transcript(tmp_path, project):
    """A long session that begins with the fact, as Claude Code left it in this project."""
    lines = [json.loads(line) for line in b"".join(generate(4, 60)).splitlines()]
    first = next(line for line in lines if line.get("type") == "user")
    first["message"]["content"] = FACT
    path = tmp_path / "session.jsonl"
    path.write_text("".join(json.dumps(line | {"cwd": str(project)}) + "\n" for line in lines))
    return path


def _client(name: str) -> Path:
    found = find(name)
    if found is None:
        pytest.skip(f"{name} is not on this machine")
    return Path(found)


def _compacted(transcript: Path, client: str, home: Path) -> list[str]:
    """Compact for a client at home elsewhere; return the words of the command that was printed."""
    moved = dict.fromkeys(("CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR"))
    env = {"HOME": str(home)} | moved
    done = longhold("compact", transcript, "--for", client, "--json", env=env)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["preview"]["covered"] > 10
    where, _, command = report["resume"].partition(" && ")
    assert where == f"cd {transcript.parent / 'project'}"
    return shlex.split(command)


def _run(words: list[str | Path], project: Path, **environment: str) -> str:
    done = subprocess.run(
        words,
        cwd=project,
        env={"PATH": PATH, "NO_PROXY": "127.0.0.1", **SILENT, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TURN_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_claude_code_answers_from_the_summary(transcript, project, tmp_path):
    client, home = _client("claude"), tmp_path / "home"
    _, *words = _compacted(transcript, "claude-code", home)
    with run_simulator(Rememberer()) as simulator:
        said = _run(
            [client, *words, "-p", QUESTION, "--output-format", "json"],
            project,
            HOME=str(home),
            ANTHROPIC_BASE_URL=simulator.url,
            ANTHROPIC_API_KEY="simulated",
        )
    reply = json.loads(said)
    assert reply["result"] == "It is called Kingfisher."
    assert reply["session_id"] == words[-1]


def test_pi_answers_from_the_summary(transcript, project, tmp_path):
    client, home = _client("pi"), tmp_path / "home"
    _, *words = _compacted(transcript, "pi", home)
    with run_simulator(Rememberer()) as simulator:
        providers = {"anthropic": {"baseUrl": simulator.url}}
        models = home / ".pi" / "agent" / "models.json"
        models.write_text(json.dumps({"providers": providers}))
        environment = {"HOME": str(home), "ANTHROPIC_API_KEY": "simulated", "PI_OFFLINE": "1"}
        said = _run([client, *words, "-p", QUESTION], project, **environment)
    assert said.strip() == "It is called Kingfisher."


def test_codex_answers_from_the_summary(transcript, project, tmp_path):
    client, home = _client("codex"), tmp_path / "home"
    _, *words = _compacted(transcript, "codex", home)
    with ResponsesServer().running() as server:
        provider = (
            f'{{name="local", base_url="{server.url}/v1", wire_api="responses", '
            'env_key="OPENAI_API_KEY"}'
        )
        options = ["-c", "model_provider=local", "-c", f"model_providers.local={provider}"]
        said = _run(
            [client, "exec", "--skip-git-repo-check", *options, *words, QUESTION],
            project,
            HOME=str(home),
            OPENAI_API_KEY="simulated",
        )
    assert said.strip().endswith("It is called Kingfisher.")
