"""One command behind its own gateway."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from longhold.cli.wrap_command import _saved_line
from longhold.core.log import load
from longhold.core.log.entries import Replied
from longhold.core.settings import home
from longhold.gateway.wrapping import environment_for, upstreams_in, with_options
from programs import find

ASKS = """
import sys, anthropic
client = anthropic.Anthropic(max_retries=0)
said = client.messages.create(
    model="claude-opus-4-8", max_tokens=50, messages=[{"role": "user", "content": "Hello"}]
)
print(said.content[0].text, client.base_url)
sys.exit(7)
"""


def wrapped(upstream, *words, **environment):
    return subprocess.run(
        [sys.executable, "-m", "longhold", "wrap", *words],
        env={
            **os.environ,
            "ANTHROPIC_BASE_URL": upstream.url,
            "ANTHROPIC_API_KEY": "sk-test",
            **environment,
        },
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=100,
    )


def test_a_command_is_answered_through_a_gateway_that_ends_with_it(upstream):
    done = wrapped(upstream, sys.executable, "-c", ASKS)
    words, address = done.stdout.rsplit(maxsplit=1)
    assert words == "Done after 0."
    assert address.rstrip("/") != upstream.url
    assert done.returncode == 7
    [line] = done.stderr.strip().splitlines()
    assert "1 call for " in line
    assert line.endswith("; there was nothing to save.")
    assert list(home().glob("projects/*/gw-*.jsonl"))


def test_a_command_that_sends_nothing_is_only_run(upstream):
    done = wrapped(upstream, "sh", "-c", "exit 3")
    assert done.returncode == 3
    assert "sent no request" in done.stderr


REFUSED = """
import os, urllib.error, urllib.request
body = b'{"model": "claude-opus-4-8", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}'
address = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
headers = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
try:
    urllib.request.urlopen(urllib.request.Request(address, body, headers))
except urllib.error.HTTPError as error:
    print(error.code)
"""


def test_a_request_that_was_refused_was_sent(upstream):
    done = wrapped(upstream, sys.executable, "-c", REFUSED)
    assert done.stdout == "401\n"
    assert "longhold: 1 request sent, none answered; nothing was billed." in done.stderr


def test_a_command_that_does_not_exist(upstream):
    assert wrapped(upstream, "no-such-command-here").returncode == 127


def test_whoever_ends_the_wrapper_ends_the_command(upstream):
    wrapper = subprocess.Popen(
        [sys.executable, "-m", "longhold", "wrap", "sh", "-c", "echo $$; exec sleep 1000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    pid = int(wrapper.stdout.readline())
    wrapper.terminate()
    _, said = wrapper.communicate(timeout=60)
    assert wrapper.returncode == 128 + 15
    assert "sent no request" in said
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_what_the_user_set_stays():
    given = {"ENABLE_TOOL_SEARCH": "false", "PATH": "/bin"}
    made = environment_for("http://127.0.0.1:1", given)
    assert made["ENABLE_TOOL_SEARCH"] == "false"
    assert made["OPENAI_BASE_URL"] == "http://127.0.0.1:1/v1"
    assert made["PATH"] == "/bin"


def test_a_base_url_that_was_set_is_the_upstream():
    found = upstreams_in({"OPENAI_BASE_URL": "http://localhost:8000/v1/"})
    assert found == {"anthropic": "https://api.anthropic.com", "openai": "http://localhost:8000"}


LOOKS_UP = """
import asyncio, json, os, sys
import anthropic, mcp
from mcp.client.stdio import StdioServerParameters, stdio_client

anthropic.Anthropic(max_retries=0).messages.create(
    model="claude-opus-4-8",
    max_tokens=50,
    messages=[{"role": "user", "content": "The word is heliotrope."}],
)
given = json.loads(sys.argv[1].removeprefix("--mcp-config="))["mcpServers"]["longhold"]

async def ask():
    server = StdioServerParameters(**given, env=dict(os.environ))
    async with mcp.Client(stdio_client(server)) as client:
        found = await client.call_tool("search_history", {"query": "heliotrope"})
        print(found.content[0].text)

asyncio.run(ask())
"""


def test_a_client_looks_up_what_it_said_on_the_server_it_gets(upstream, tmp_path):
    pytest.importorskip("mcp")
    client = tmp_path / "claude"
    client.write_text(f"#!{sys.executable}\n{LOOKS_UP}")
    client.chmod(0o700)
    done = wrapped(upstream, str(client))
    assert done.returncode == 0, done.stderr
    assert "The word is heliotrope." in done.stdout


@pytest.mark.parametrize(
    ("command", "place"), [(["/opt/claude", "Hello"], 1), (["codex", "exec", "Hello"], 2)]
)
def test_a_client_that_takes_servers_gets_ours(command, place):
    made = with_options(command, "http://127.0.0.1:1", has_history=True)
    assert made[0] == command[0]
    assert made[-len(command) + 1 :] == command[1:]
    assert "longhold" in made[place]
    assert '"mcp"' in "".join(made)


def test_other_commands_are_run_as_they_are():
    for history in (True, False):
        made = with_options(["make", "test"], "http://127.0.0.1:1", has_history=history)
        assert made == ["make", "test"]


CLAUDE, CODEX, PI = (find(name) for name in ("claude", "codex", "pi"))
asks_a_client = pytest.mark.skipif(
    not (CLAUDE and CODEX and PI),
    reason="claude, codex and pi are not on the path and not in LONGHOLD_TEST_CLIENTS",
)


@pytest.mark.optional
@asks_a_client
def test_an_unmodified_client_works_and_continues(upstream, tmp_path):
    own = {"HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": str(tmp_path / "config")}
    upstream.simulation.brain.files = 0
    first = wrapped(upstream, CLAUDE, "-p", "Say hello.", **own)
    second = wrapped(upstream, CLAUDE, "-p", "--continue", "And again.", **own)
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert "Done after" in first.stdout
    assert "Done after" in second.stdout
    assert not (Path(tmp_path) / ".longhold").exists()


@pytest.mark.optional
@asks_a_client
def test_an_unmodified_client_of_the_responses_api_works_and_resumes(upstream, tmp_path):
    upstream.simulation.brain.files = 0
    own = {"HOME": str(tmp_path), "CODEX_HOME": str(tmp_path), "CODEX_API_KEY": "nobodys"}
    own["OPENAI_BASE_URL"] = f"{upstream.url}/v1"
    for words in (["Say hello."], ["resume", "--last", "And again."]):
        done = wrapped(upstream, CODEX, "exec", "--skip-git-repo-check", *words, **own)
        assert done.returncode == 0, done.stderr
        assert "Done after 0." in done.stdout
        assert "1 call for " in done.stderr
    [log] = home().glob("projects/*/gw-*.jsonl")
    assert [type(entry) for entry in load(log).entries].count(Replied) == 2


@pytest.mark.optional
@asks_a_client
@pytest.mark.parametrize(("client", "turns", "least"), [("claude", 31, 0.95), ("pi", 30, 0.88)])
def test_thirty_turns_of_an_unmodified_client_are_as_without_a_gateway(client, turns, least):
    """Tools, sub-agents, its own compaction, broken streams and a continued session.

    What is not read from the cache, the client's own breaks apart, is what our clearing wrote anew:
    more of it for a client that does not compact by itself.
    """
    script = Path(__file__).parents[2] / "benchmarks" / "gateway_clients.py"
    done = subprocess.run(
        [
            sys.executable,
            script,
            *("--claude", "", "--codex", "", "--pi", ""),
            f"--{client}",
            {"claude": CLAUDE, "pi": PI}[client],
            "--json",
        ],
        capture_output=True,
        text=True,
        timeout=1_800,
        check=True,
    )
    found = json.loads(done.stdout)[client]
    assert found["turns"] == turns
    assert (found["errors"], found["differing"], found["passed"]) == (0, 0, {})
    assert found["lost_tokens"]["others"] == 0
    assert found["read_share_between_our_breaks"] >= 0.99
    assert found["read_share"] >= least
    assert found["read_share_of_sent"] >= 0.95


READS_MODELS = """
import json, os, pathlib, sys, anthropic
place = pathlib.Path(os.environ["PI_CODING_AGENT_DIR"])
provider = json.loads((place / "models.json").read_text())["providers"]["anthropic"]
client = anthropic.Anthropic(max_retries=0, base_url=provider["baseUrl"])
said = client.messages.create(
    model="claude-opus-4-8", max_tokens=50, messages=[{"role": "user", "content": "Hello"}]
)
(place / "sessions" / "one.jsonl").write_text("{}")
(place / "new.json").write_text("{}")
print(said.content[0].text, provider["apiKey"], (place / "settings.json").read_text())
"""


def test_pi_is_managed_with_its_own_settings(upstream, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    (own / "settings.json").write_text('{"theme": "dark"}')
    models = json.dumps({"providers": {"anthropic": {"apiKey": "KEY", "baseUrl": upstream.url}}})
    (own / "models.json").write_text(models)
    client = tmp_path / "pi"
    client.write_text(f"#!{sys.executable}\n{READS_MODELS}")
    client.chmod(0o700)
    done = wrapped(
        upstream, str(client), PI_CODING_AGENT_DIR=str(own), ANTHROPIC_BASE_URL="http://127.0.0.1:1"
    )
    assert done.stdout == 'Done after 0. KEY {"theme": "dark"}\n', done.stderr
    assert "1 call for " in done.stderr
    assert (own / "models.json").read_text() == models
    assert (own / "sessions" / "one.jsonl").exists()
    assert (own / "new.json").exists()


def test_settings_of_pi_that_cannot_be_read_are_named_before_it_starts(upstream, tmp_path):
    (tmp_path / "models.json").write_text("// a comment\n{}")
    done = wrapped(upstream, "pi", PI_CODING_AGENT_DIR=str(tmp_path))
    assert done.returncode == 2
    assert f"{tmp_path / 'models.json'} is not plain JSON" in done.stderr


GOES_PAST = """
import http.client, sys, time
there = http.client.HTTPConnection(sys.argv[1])
there.connect()
time.sleep(5)
"""


@pytest.mark.skipif(not Path("/proc/self/net/tcp").exists(), reason="there is no /proc")
def test_a_client_that_goes_past_the_gateway_is_named_at_once(upstream):
    address = upstream.url.removeprefix("http://")
    inner = [sys.executable, "-c", GOES_PAST, address]
    wrapper = subprocess.Popen(
        [sys.executable, "-m", "longhold", "wrap", "sh", "-c", f"{shlex.join(inner)}; true"],
        env={**os.environ, "ANTHROPIC_BASE_URL": upstream.url},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert (
            "sh connects to the provider directly, so it is NOT managed"
            in wrapper.stderr.readline()
        )
        assert wrapper.poll() is None
    finally:
        wrapper.terminate()
        wrapper.communicate(timeout=60)


@pytest.mark.parametrize(
    ("saved", "line"),
    [(0.001, "there was nothing to save."), (2.5, "saved $2.50; `longhold explain gw-1`")],
)
def test_the_last_line_points_to_savings_only_if_there_are_some(saved, line):
    totals = {"calls": 3, "billed_usd": 1.0, "saved_usd": saved}
    stats = {"totals": totals, "sessions": [{"id": "gw-1", "billed_usd": 1.0}]}
    assert line in _saved_line(stats)
