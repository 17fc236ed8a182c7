"""Exporting to a file: all or nothing, with a report of unreadable parts."""

import errno
import json
import os
import resource
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from click.testing import CliRunner

from command_line import longhold
from generated_sessions import generate, write
from longhold.cli.transfer_command import export as command
from longhold.core.log import Header, write_log
from longhold.core.log.entries import Said
from longhold.core.messages import Text
from longhold.core.settings.private_files import write_new

SMALL_BYTES = 4_096
"""Room for the beginning of an export, not for all of it."""


def run(*words):
    """Run the command here, its exceptions not caught."""
    return CliRunner().invoke(command, list(map(str, words)), catch_exceptions=False)


@pytest.fixture
def transcript(tmp_path):
    """A session with a line in it that is none."""
    path = tmp_path / "session.jsonl"
    path.write_bytes(b"".join(generate(1, 60)) + b"[1]\n")
    return path


@pytest.fixture
def log(tmp_path):
    """A log with a line in it that a disk spoilt."""
    path = tmp_path / "log.jsonl"
    write_log(path, Header(session="s"), [Said(n=1, content=(Text(text="hi"),))])
    path.write_bytes(path.read_bytes() + b"\0\0\n")
    return path


def test_a_disk_that_fills_up_leaves_no_half_of_a_file(transcript, tmp_path):
    (tmp_path / "out").mkdir()
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "longhold",
            "sessions",
            "export",
            str(transcript),
            "--out",
            "out/a.json",
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL_BYTES, SMALL_BYTES)),
    )
    assert done.returncode == 4
    assert done.stderr.splitlines()[-1].startswith("longhold: out/a.json: File too large; ")
    assert list((tmp_path / "out").iterdir()) == []


def test_an_export_that_fails_midway_leaves_nothing(tmp_path):
    def pieces():
        yield b"one"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_new(tmp_path / "a.json", pieces())
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_came_meanwhile_is_not_overwritten(tmp_path):
    path = tmp_path / "a.json"

    def pieces():
        yield b"ours"
        path.write_bytes(b"theirs")

    with pytest.raises(FileExistsError):
        write_new(path, pieces())
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [
        ("a.json", b"theirs")
    ]


def test_a_link_to_nowhere_is_not_followed(tmp_path):
    (tmp_path / "a.json").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "a.json", [b"ours"])
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("is_taken", [False, True])
def test_a_file_system_without_links_gets_its_file_too(tmp_path, monkeypatch, is_taken):
    path = tmp_path / "a.json"

    def no_links(source: Path, target: Path) -> None:
        if is_taken:
            path.write_bytes(b"theirs")
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", no_links)
    if is_taken:
        with pytest.raises(FileExistsError):
            write_new(path, [b"ours"])
    else:
        assert write_new(path, [b"ou", b"rs"]) == 4
    assert path.read_bytes() == (b"theirs" if is_taken else b"ours")
    assert list(tmp_path.iterdir()) == [path]


def test_malformed_lines_of_a_transcript_are_told(transcript, tmp_path):
    done = run(transcript)
    assert json.loads(done.stdout)["messages"]
    assert done.stderr.splitlines()[0] == "1 malformed line left out:"
    assert done.stderr.splitlines()[1].endswith(": not a record but list")
    found = json.loads(run(transcript, "--out", tmp_path / "a.json", "--json").stdout)
    assert [reason for _, reason in found["malformed"]] == ["not a record but list"]
    assert found["damage"] == []


def test_damage_of_a_log_is_told(log, tmp_path):
    done = run(log)
    assert done.stderr.startswith("damaged: line 3 of the log (")
    found = json.loads(run(log, "--out", tmp_path / "a.json", "--json").stdout)
    assert [damage["line"] for damage in found["damage"]] == [3]
    assert found["malformed"] == []


def test_names_that_are_no_text_can_be_told(transcript, tmp_path):
    out = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.json"))
    found = json.loads(run(transcript, "--out", out, "--json").stdout)
    assert found["file"] == f"{tmp_path}/caf\ufffd.json"
    assert out.exists()


def test_a_claude_code_file_can_be_resumed(tmp_path):
    write(tmp_path / "made-up.jsonl", 3, 40)
    out = tmp_path / "out.jsonl"
    words = ("sessions", "export", tmp_path / "made-up.jsonl", "--to", "claude-code", "--out", out)
    done = longhold(*words, cwd=tmp_path)
    records = [json.loads(line) for line in out.read_text().splitlines()]
    (id,) = {record["sessionId"] for record in records}
    assert uuid.UUID(id).int
    assert {record["cwd"] for record in records} == {str(tmp_path)}
    times = [record["timestamp"] for record in records]
    assert times == sorted(times)
    assert times[0] > "2020"
    assert f"claude --resume {id}" in done.stdout
