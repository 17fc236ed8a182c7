"""The first day of a Claude Code user: every id and number shown can be used."""

import json
import re
import shutil
import subprocess
import sys
import uuid

import pytest

from command_line import longhold
from generated_sessions import write, write_large
from longhold.simulator import run_simulator
from longhold.simulator.brains.digest import DigestBrain
from programs import PATH, find


@pytest.fixture
def claude(tmp_path, monkeypatch):
    """Make a home of Claude Code with two sessions of one project."""
    place = tmp_path / "claude"
    project = place / "projects" / "-home-me-shop"
    project.mkdir(parents=True)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(place))
    for seed in (3, 4):
        path = project / f"{uuid.UUID(int=seed << 100)}.jsonl"
        write(path, seed, 120)
        id = json.loads(path.read_text().splitlines()[-1]).get("sessionId")
        assert id
        path.write_text(path.read_text().replace(id, path.stem))
    return place


def run(*words):
    done = longhold(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_first_day(claude, tmp_path):
    settings = claude / "settings.json"
    settings.write_bytes(b'{\n    "model": "opus",\n    "list": [1, 2]}')
    before = {path: path.read_bytes() for path in claude.rglob("*") if path.is_file()}

    run("install", "claude-code", "--yes")
    reported = run("report", "--since", "all")
    assert all(len(line) <= 80 for line in reported.splitlines())
    ids = re.findall(r"^([0-9a-f]{8})\S*\s", reported, re.MULTILINE)
    assert len(set(ids)) == 2

    listed = run("sessions", "--all")
    for id in ids:
        assert id in listed
        for command in ("cost", "context", "cache"):
            assert run(command, id)
        page = tmp_path / f"{id}.html"
        run("inspect", id, "--html", page)
        assert page.read_bytes().startswith(b"<!doctype html>")
    assert "until claude-code compacts at" in run("context", ids[0])

    words = json.loads(run("inspect", ids[0], "--json"))["sessions"][0]["tables"]["turns"]["said"]
    phrase = " ".join(max(words, key=len).split()[:6])
    assert ids[0] in run("history", phrase)

    made = json.loads(run("compact", ids[0], "--for", "claude-code", "--json"))
    assert made["resume"].endswith(made["file"].rpartition("/")[2].removesuffix(".jsonl"))
    shutil.os.unlink(made["file"])

    run("install", "claude-code", "--undo", "--yes")
    after = {path: path.read_bytes() for path in claude.rglob("*") if path.is_file()}
    assert after == before


def test_every_seam_that_a_preview_proposes_is_accepted(tmp_path):
    path = tmp_path / "large.jsonl"
    write_large(path, 5, 900_000)
    seams = json.loads(run("compact", path, "--preview", "--json"))["seams"]
    assert seams
    for seam in seams:
        out = tmp_path / f"{seam['up_to']}.jsonl"
        run("compact", path, "--up-to", seam["up_to"], "--out", out)
        assert out.stat().st_size > 0


CLIENTS = {
    "claude": ("-p",),
    "codex": ("exec", "--skip-git-repo-check"),
    "pi": ("-p",),
}
"""How each client is asked for one answer without a terminal."""


@pytest.fixture
def at_work(tmp_path):
    """A home with a project, and a way to run programs there against a simulated provider."""
    project = tmp_path / "project"
    project.mkdir()
    (project / "kingfisher.txt").touch()
    with run_simulator(DigestBrain()) as simulator:
        environment = {
            "PATH": PATH,
            "HOME": str(tmp_path),
            "LONGHOLD_HOME": str(tmp_path / "longhold"),
            "ANTHROPIC_BASE_URL": simulator.url,
            "OPENAI_BASE_URL": f"{simulator.url}/v1",
            **dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "CODEX_API_KEY"), "simulated"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }

        def work(*words):
            return subprocess.run(
                list(map(str, words)),
                cwd=project,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=120,
            )

        yield work


def _client(name):
    if not (client := find(name)):
        pytest.skip(f"{name} is not installed")
    return client


@pytest.mark.slow
@pytest.mark.parametrize("name", CLIENTS)
def test_a_real_client_is_wrapped(name, at_work):
    client = _client(name)
    wrap = (sys.executable, "-m", "longhold", "wrap")
    done = at_work(*wrap, client, *CLIENTS[name], "list the files")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^longhold: \d+ calls? for \$", done.stderr, re.MULTILINE), done.stderr
    listed = at_work(sys.executable, "-m", "longhold", "sessions", "--all", "--json").stdout
    agents = {each["agent"] for each in json.loads(listed)}
    assert {"claude": "claude-code"}.get(name, name) in agents


@pytest.mark.slow
def test_a_real_client_has_what_was_installed_and_resumes_what_was_compacted(at_work, tmp_path):
    client = _client("claude")
    longhold = (sys.executable, "-m", "longhold")
    at_work(client, *CLIENTS["claude"], "list the files")
    [session] = (tmp_path / ".claude" / "projects").rglob("*.jsonl")
    compacted = at_work(*longhold, "compact", session.stem[:8], "--for", "claude-code", "--json")
    *_, id = json.loads(compacted.stdout)["resume"].split()
    resumed = at_work(client, "--resume", id, *CLIENTS["claude"], "list the files")
    assert resumed.returncode == 0, resumed.stderr + resumed.stdout
    assert "kingfisher.txt" in resumed.stdout

    files = (tmp_path / ".claude.json", tmp_path / ".claude" / "settings.json")
    before = [path.read_bytes() if path.exists() else None for path in files]
    assert at_work(*longhold, "install", "claude-code", "--yes").returncode == 0
    assert at_work(*longhold, "install", "claude-code", "--undo", "--yes").returncode == 0
    assert [path.read_bytes() if path.exists() else None for path in files] == before
    at_work(*longhold, "install", "claude-code", "--yes")
    assert "longhold" in at_work(client, "mcp", "list").stdout
