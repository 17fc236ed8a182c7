"""Commands that read sessions work with only those parts of Python that Windows has."""

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from generated_sessions import write
from longhold.cli import READING, every_command

WINDOWS = Path(__file__).parents[1] / "support" / "windows"


@pytest.fixture
def run(tmp_path):
    def run(*words, input=""):
        """Run a command in a process whose output, like a pipe on Windows, is not UTF-8."""
        given = {
            "CLAUDE_CONFIG_DIR": str(tmp_path / "claude"),
            "LONGHOLD_HOME": str(tmp_path / "home"),
            "PYTHONIOENCODING": "cp1252",
            "PYTHONPATH": str(WINDOWS),
            "PYTHONWARNDEFAULTENCODING": "1",
            "PYTHONWARNINGS": "error::EncodingWarning",
        }
        words = [sys.executable, "-m", "longhold", *map(str, words)]
        return subprocess.run(
            words,
            input=input.encode(),
            capture_output=True,
            env=os.environ | given,
            cwd=tmp_path,
            timeout=120,
        )

    return run


@pytest.fixture
def session(tmp_path):
    path = tmp_path / "claude" / "projects" / "C--shop" / f"{uuid.UUID(int=7 << 100)}.jsonl"
    path.parent.mkdir(parents=True)
    write(path, 7, 40)
    return path


def test_reading_commands_run(run, session, tmp_path):
    words = {
        "report": ["--since", "all"],
        "history": [session, "the"],
        "inspect": [session, "--html", tmp_path / "page.html"],
        "replay": [session, "--policy", "ours"],  # more start processes as this platform does
    }
    for name in READING:
        done = run(name, *words.get(name, [session]))
        said = done.stderr.decode()
        assert (done.returncode, "Traceback" in said, "left out" in said) == (0, False, False), said
        assert done.stdout.decode()
    assert (tmp_path / "page.html").read_bytes().startswith(b"<!doctype html>")
    index = tmp_path / "home" / "sessions.sqlite"
    assert index.stat().st_size > 0


def test_the_status_line_is_kept_and_printed_again(run, session, tmp_path):
    given = json.dumps({"transcript_path": str(session), "context_window": {}, "cost": {}})
    first, again = (run("statusline", input=given) for _ in range(2))
    assert list((tmp_path / "home" / "statusline").iterdir())
    assert first.returncode == again.returncode == 0, first.stderr + again.stderr
    assert first.stdout.decode() == again.stdout.decode() != ""


def test_other_commands_say_that_they_do_not_work(run):
    for name in ("chat", "gateway", "keep"):
        done = run(name, "--help")
        assert done.returncode == 2
        [line] = done.stderr.decode().splitlines()
        assert f"`longhold {name}` does not work on Windows" in line
    assert set(READING) < set(every_command())
    assert b"Report on sessions" in run("--help").stdout
