"""`longhold sessions`: what pruning removes and keeps."""

import json
import os
from datetime import datetime

from command_line import longhold
from generated_sessions import write
from longhold.core.log import load
from longhold.core.log.entries import Swept
from longhold.core.log.results import Results
from longhold.core.log.store import FileStore
from longhold.insight.session_index import open_index


def prune(*words):
    return longhold("sessions", "--prune", "--yes", *words)


def session_with_a_result(store, directory, id):
    """A session with one result on disk, older than any retention."""
    with store.create(directory=directory, session=id) as log:
        results = Results(log.path.with_suffix(""))
        body = results.body("a", "long ago", cap_bytes=1 << 20)
        results.keep(body, is_only_copy=False)
        os.utime(body.file, (1, 1))
        return log.path, body.file


def test_pruning_removes_old_results_of_sessions_that_stay(tmp_path):
    log, file = session_with_a_result(FileStore(), tmp_path, "kept")
    done = prune("--json")
    assert json.loads(done.stdout) == {"removed": [], "swept": 1}
    assert not file.exists()
    assert load(log).entries[-1] == Swept(
        n=1,
        at=load(log).entries[-1].at,
        files=("tool-results/a.txt",),
        bytes=8,
        why="older than 30 days",
    )


def test_a_session_that_somebody_writes_is_not_swept(tmp_path):
    store = FileStore()
    _, other = session_with_a_result(store, tmp_path, "closed")
    _, file = session_with_a_result(store, tmp_path, "open")
    with store.open("open"):
        done = prune()
    assert done.stdout == "0 sessions removed.\n1 result on disk removed; the logs list them.\n"
    assert "not swept: open.jsonl is being written by" in done.stderr
    assert (file.exists(), other.exists()) == (True, False)


def test_the_list_says_whose_each_is_what_it_cost_and_when_it_was_used(tmp_path):
    write(tmp_path / "made-up.jsonl", 3, 40)
    longhold("sessions", "import", tmp_path / "made-up.jsonl", cwd=tmp_path)
    (found,) = json.loads(longhold("sessions", "--json", cwd=tmp_path).stdout)
    assert found["agent"] == "claude-code"
    assert found["calls"] > 3
    assert found["usd"] > 0
    assert found["last_at"] < found["modified"]
    line = longhold("sessions", cwd=tmp_path).stdout
    assert f"{datetime.fromtimestamp(found['last_at']):%Y-%m-%d %H:%M}  claude-code" in line
    assert "$" in line


def test_a_deleted_session_leaves_nothing_in_the_index(tmp_path):
    write(tmp_path / "made-up.jsonl", 3, 40)
    id = json.loads(longhold("sessions", "import", tmp_path / "made-up.jsonl", "--json").stdout)[
        "session"
    ]
    longhold("sessions", "--all")
    assert longhold("sessions", "--delete", id, "--yes").returncode == 0
    with open_index() as index:
        assert index.rows("SELECT * FROM sessions") == []
        assert index.rows("SELECT * FROM calls") == []


def test_the_sessions_of_other_agents_are_listed_with_ids_that_open(tmp_path, monkeypatch):
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    folder = tmp_path / "claude" / "projects" / "-p"
    folder.mkdir(parents=True)
    write(folder / "made-up.jsonl", 3, 40)
    (found,) = json.loads(longhold("sessions", "--all", "--json").stdout)
    assert (found["agent"], found["path"]) == ("claude-code", str(folder / "made-up.jsonl"))
    (line,) = longhold("sessions", "--all", env={"COLUMNS": "80"}).stdout.splitlines()
    assert len(line) <= 80
    assert longhold("cost", line.split()[0]).stdout.startswith("made-up.jsonl")
    assert longhold("sessions", cwd=tmp_path).stdout.startswith("No sessions in this project")
