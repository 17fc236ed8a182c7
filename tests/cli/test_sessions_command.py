"""`holdfast sessions`: what pruning removes, and what it leaves."""

import json
import os

from command_line import holdfast
from holdfast.log import load
from holdfast.log.entries import Swept
from holdfast.log.results import Results
from holdfast.log.store import FileStore


def prune(*words):
    return holdfast("sessions", "--prune", "--yes", *words)


def session_with_a_result(store, directory, id):
    """A session with one result on disk, older than any retention."""
    with store.create(directory=directory, session=id) as log:
        results = Results(log.path.with_suffix(""))
        body = results.body("a", "long ago", cap_bytes=1 << 20)
        results.keep(body, is_only_copy=False)
        os.utime(body.file, (1, 1))
        return log.path, body.file


def test_pruning_removes_old_results_of_sessions_that_stay(tmp_path):
    """The log says which, and the session is as it was."""
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
    """Pruning says so and goes on."""
    store = FileStore()
    _, other = session_with_a_result(store, tmp_path, "closed")
    _, file = session_with_a_result(store, tmp_path, "open")
    with store.open("open"):
        done = prune()
    assert done.stdout == "0 sessions removed.\n1 results on disk removed; the logs say which.\n"
    assert "not swept: open.jsonl is being written by" in done.stderr
    assert (file.exists(), other.exists()) == (True, False)
