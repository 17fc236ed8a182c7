"""`longhold memory dream` without a model."""

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


def test_without_a_model_it_merges_and_says_how_to_take_it_back(project):
    code, said = run()
    assert (code, len(files(project))) == (0, 1)
    assert "1 merged. To undo it: longhold memory undo 2" in said
