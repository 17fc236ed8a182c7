"""`longhold memory dream`: with and without a model, as a trial, and with memory off."""

import json
import subprocess

import pytest
from click.testing import CliRunner

from longhold.cli import cli
from longhold.core.memory.commits import MemoryChange
from longhold.core.memory.memory import Memory
from longhold.core.memory.paths import memory_directory
from longhold.core.memory.store import MemoryStore
from longhold.core.settings import home

BODY = "The board of the team is in Linear, under the project called Harbour.\n"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A repository with two memories that say the same."""
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    with MemoryStore(memory_directory(home(), tmp_path)) as store:
        memories = [
            Memory(file=f, name=f, description="board", body=BODY) for f in ("a.md", "b.md")
        ]
        changes = [MemoryChange(file=m.file, text=m.text, expected="") for m in memories]
        store.commit(changes, by="agent", why="begin")
    return tmp_path


def run(*words):
    done = CliRunner().invoke(cli, ["memory", "dream", *words])
    return done.exit_code, f"{done.output}{done.exception or ''}"


def files(project):
    with MemoryStore(memory_directory(home(), project)) as store:
        return list(store.versions())


def scripted(project, script):
    path = project / "script.txt"
    path.write_text(script)
    return f"scripted:{path}"


def test_without_a_model_it_merges_and_says_how_to_take_it_back(project):
    code, said = run()
    assert (code, len(files(project))) == (0, 1)
    assert "1 merged. To undo it: longhold memory undo 2" in said


def test_its_session_has_a_title(project):
    name = scripted(project, "text: Nothing to do.\n---\ntext: Nothing to do.")
    for more in ([], ["--dry-run"]):
        code, said = run("--model", name, *more)
        assert code == 0, said
    listed = CliRunner().invoke(cli, ["sessions", "--json"]).output
    assert "memory dream (dry run)" in listed and "nothing said" not in listed


def test_a_model_dreams_as_one_commit(project):
    given = {"command": "delete", "path": "/memories/b.md", "why": "a.md says it"}
    name = scripted(project, f"tool: memory {json.dumps(given)}\n---\ntext: One removed.")
    code, said = run("--model", name)
    assert code == 0, said
    assert files(project) == ["a.md"]
    assert "merged or removed" in said


def test_a_trial_with_a_model_changes_nothing(project):
    given = {"command": "delete", "path": "/memories/b.md", "why": "a.md says it"}
    name = scripted(project, f"tool: memory {json.dumps(given)}\n---\ntext: One removed.")
    code, said = run("--model", name, "--dry-run")
    assert (code, files(project)) == (0, ["a.md", "b.md"])
    assert "Would do: " in said and "before/b.md" in said


def test_a_model_that_fails_is_an_error_and_the_lock_is_free(project):
    code, _ = run("--model", scripted(project, "error: 400 no"))
    assert (code != 0, files(project)) == (True, ["a.md", "b.md"])
    assert run()[0] == 0


def test_off_is_said(project, monkeypatch):
    monkeypatch.setenv("LONGHOLD_MEMORY_ON", "false")
    code, said = run("--model", scripted(project, "text: x"))
    assert code != 0 and "memory.on" in said
