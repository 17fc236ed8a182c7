"""A session resumed hours later by another process, in a repository that has changed.

Two real processes run the command line with the real SDK against the simulator, through a proxy
that records every request body. The second process's request begins, byte for byte, with the
first's.
"""

import http.client
import json
import os
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from lazy import needs
from longhold.simulator import BrainAnswer, BrainRequest, run_simulator
from longhold.simulator.brains import text, tool_use

needs("anthropic")

HOP_BY_HOP = ("host", "connection", "content-length", "accept-encoding")
LATER_SECONDS = 7 * 3_600
START = """
import sys, time
real, shift = time.time, float(sys.argv.pop(1))
time.time = lambda: real() + shift
from longhold.cli import main
main()
"""


class Coder:
    """Reads a file that has instructions beside it, then answers."""

    def answer(self, request: BrainRequest) -> BrainAnswer:
        blocks = request.messages[-1]["content"]
        if any(block["type"] == "tool_result" for block in blocks):
            return BrainAnswer(blocks=(text("Done."),))
        return BrainAnswer(blocks=(tool_use("Read", {"file_path": "api/code.py"}),))


@contextmanager
def proxy(target: str) -> Iterator[tuple[str, list[bytes]]]:
    """Pass requests on to the simulator and keep their bodies."""
    bodies: list[bytes] = []

    class Passing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            bodies.append(body)
            headers = {k: v for k, v in self.headers.items() if k.lower() not in HOP_BY_HOP}
            request = urllib.request.Request(target + self.path, body, headers, method="POST")
            try:
                with urllib.request.urlopen(request) as answer:
                    self._pass_on(answer)
            except urllib.error.HTTPError as refusal:
                self._pass_on(refusal)

        def _pass_on(self, answer: http.client.HTTPResponse | urllib.error.HTTPError) -> None:
            said = answer.read()
            self.send_response(answer.status)
            self.send_header("content-type", answer.headers["content-type"])
            self.send_header("content-length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Passing)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", bodies
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def git(place, *words):
    identity = ("-c", "user.name=n", "-c", "user.email=e@x")
    subprocess.run(["git", *identity, *words], cwd=place, check=True, capture_output=True)


def environment(home):
    """Nothing of whoever runs the tests, and a home that the processes share."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("LONGHOLD_")}
    return kept | {"LONGHOLD_HOME": str(home), "LONGHOLD_STRICT": "1", "ANTHROPIC_API_KEY": "none"}


def longhold(place, url, shift_seconds, *words):
    """Run the command line in a process of its own, with its clock moved."""
    command = [sys.executable, "-c", START, str(shift_seconds), "run", "--json"]
    where = ("--model", "simulated/claude-sonnet-5-5", "--base-url", url, "--mode", "bypass")
    done = subprocess.run(
        [*command, *where, *words],
        cwd=place,
        env=environment(place.parent / "home"),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)["session"]


def raw(body: bytes, key: str) -> str:
    """Cut the bytes of one of a request's values out of its body, as they stand."""
    written = body.decode()
    start = written.index(f'"{key}":') + len(key) + 3
    return written[start : json.JSONDecoder().raw_decode(written[start:].lstrip())[1] + start]


def unmarked(body: bytes) -> list[str]:
    """Write the messages without their markers, which move with the end of the conversation."""
    messages = json.loads(body)["messages"]
    for message in messages:
        for block in message["content"]:
            block.pop("cache_control", None)
    return [json.dumps(message) for message in messages]


def lay_out(project):
    """Make a repository with instructions, also near the file that is read."""
    (project / "api").mkdir(parents=True)
    (project / "api" / "code.py").write_text("x = 1\n")
    (project / "api" / "AGENTS.md").write_text("In api: no globals.\n")
    (project / "AGENTS.md").write_text("Use tabs. See @more.md\n")
    (project / "more.md").write_text("And semicolons.\n")
    git(project, "init", "-q", "-b", "trunk")
    git(project, "add", ".")
    git(project, "commit", "-q", "-m", "Begin")


def change_everything(project):
    """Do what people do to a repository between two sessions."""
    git(project, "checkout", "-q", "-b", "other")
    (project / "AGENTS.md").write_text("Use spaces.\n")
    (project / "new.py").write_text("")
    git(project, "add", "new.py")
    git(project, "commit", "-q", "-m", "Go on")
    (project / ".longhold" / "skills" / "s").mkdir(parents=True)
    (project / ".longhold" / "skills" / "s" / "SKILL.md").write_text("new")


@dataclass(frozen=True)
class Wire:
    """What three processes sent: a first session, the same resumed, and a new one there."""

    first: list[bytes]
    resumed: list[bytes]
    new: list[bytes]
    sessions: list[str]
    requests: list[dict]
    """What the simulator says about each request, in the same order."""


@pytest.fixture(scope="module")
def wire(tmp_path_factory):
    """Work, change everything, resume hours later, then begin anew in the same place."""
    project = tmp_path_factory.mktemp("same-prefix") / "project"
    lay_out(project)
    with run_simulator(Coder()) as simulator, proxy(simulator.url) as (url, bodies):
        session = longhold(project, url, 0, "-p", "look at api")
        first = len(bodies)
        change_everything(project)
        again = longhold(project, url, LATER_SECONDS, "--resume", session, "-p", "again")
        resumed = len(bodies)
        other = longhold(project, url, LATER_SECONDS, "-p", "look at api")
        requests = simulator.simulation.stats.to_json()["requests"]
    return Wire(
        first=bodies[:first],
        resumed=bodies[first:resumed],
        new=bodies[resumed:],
        sessions=[session, again, other],
        requests=requests,
    )


@pytest.mark.slow
def test_a_resumed_session_sends_the_same_prefix(wire):
    session, again, other = wire.sessions
    assert session == again != other
    before, after = wire.first[-1], wire.resumed[0]
    # The resumed session paused, so its system prompt is kept for an hour: the text is the same.
    assert raw(before, "system") == raw(after, "system").replace(',"ttl":"1h"', "")
    assert raw(before, "tools") == raw(after, "tools")
    assert unmarked(after)[: len(unmarked(before))] == unmarked(before)
    assert "branch: trunk" in raw(before, "system")
    assert "And semicolons." in unmarked(before)[0]
    assert "In api: no globals." in unmarked(before)[-1]


def test_the_provider_reads_all_of_it_from_its_cache(wire):
    sent = len(wire.first)
    last, resumed = wire.requests[sent - 1], wire.requests[sent]
    left = last["read_tokens"] + last["write_5m_tokens"] + last["write_1h_tokens"]
    assert resumed["read_tokens"] == left > 1_000


def test_a_new_session_there_sees_what_is_new(wire):
    assert "branch: other" in raw(wire.new[0], "system")
    assert "Use spaces." in unmarked(wire.new[0])[0]
