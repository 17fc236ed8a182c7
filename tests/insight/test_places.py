"""Finding sessions in any directory: each file once, and no file stops the search."""

import os
import subprocess
import sys

from longhold.insight.read_session import read_session
from longhold.insight.session_files import find_sessions

LINE = '{"type":"user","uuid":"u","sessionId":"s","cwd":"/","message":{"role":"user","content":"hi"}}\n'


def test_what_is_no_plain_file_is_passed_over(tmp_path):
    (tmp_path / "a.jsonl").write_text(LINE)
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "to-pipe.jsonl").symlink_to(tmp_path / "pipe.jsonl")
    (tmp_path / "to-zeroes.jsonl").symlink_to("/dev/zero")
    (tmp_path / "nowhere.jsonl").symlink_to(tmp_path / "gone")
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "a" / "subagents").mkdir(parents=True)
    os.mkfifo(tmp_path / "a" / "subagents" / "agent-x.jsonl")
    found = find_sessions([tmp_path])
    assert [file.path.name for file in found] == ["a.jsonl"]
    assert not read_session(found[0].path).problem


def test_each_file_is_listed_once_however_it_is_reached(tmp_path):
    session = tmp_path / "in" / "a.jsonl"
    session.parent.mkdir()
    session.write_text(LINE)
    (tmp_path / "b.jsonl").symlink_to(session)
    (session.parent / "round").symlink_to(tmp_path)
    found = find_sessions([tmp_path, session, tmp_path / "in", tmp_path / "b.jsonl"])
    assert [file.path for file in found] == [session]


def test_odd_names_are_names(tmp_path):
    names = {".jsonl", os.fsdecode(b"\xff.jsonl")}
    for name in names:
        (tmp_path / name).write_text(LINE)
    assert {file.path.name for file in find_sessions([tmp_path])} == names


def test_a_search_loads_nothing_that_only_reading_needs():
    code = (
        "import sys, longhold.cli.history_command; "
        "heavy = {'asyncio', 'ssl', 'multiprocessing', 'importlib.metadata', 'subprocess'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
