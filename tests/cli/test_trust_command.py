"""`longhold trust`: imports that lead out of a project need trust, nested imports too."""

import json
import subprocess

import pytest

from command_line import longhold


def trust(cwd, *words):
    done = longhold("trust", *words, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def project(tmp_path):
    """Instructions that import from outside: at the top, below, and in a rule for some paths."""
    place = tmp_path / "project"
    for name, text in {
        "AGENTS.md": "@../a.md",
        "deep/er/CLAUDE.md": "@../../../b.md",
        ".claude/rules/py.md": "---\npaths: '*.py'\n---\n@../../../c.md",
    }.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    (place / ".git").mkdir()
    for name in "abc":
        (tmp_path / f"{name}.md").write_text(name)
    return place


def test_imports_are_listed_and_vouched_for(project, tmp_path):
    waiting = json.loads(trust(project, "--json"))
    assert {entry["kind"] for entry in waiting} == {"import"}
    assert sorted(entry["value"] for entry in waiting) == [
        str(tmp_path / f"{name}.md") for name in "abc"
    ]
    assert trust(project, "--yes").count("Trusted.") == 3
    assert json.loads(trust(project, "--json")) == []


def test_git_hooks_are_shown_and_trusted_as_they_are(tmp_path):
    place = tmp_path / "project"
    subprocess.run(["git", "init", "-q", place], check=True)
    hook = place / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\n")
    (hook.parent / "pre-push.sample").write_text("#!/bin/sh\n")
    (waiting,) = json.loads(trust(place, "--json"))
    assert waiting["kind"] == "git hooks"
    assert waiting["value"] == {"hooks": [{"command": str(hook)}]}
    assert trust(place, "--yes").count("Trusted.") == 1
    assert json.loads(trust(place, "--json")) == []
    hook.write_text("#!/bin/sh\ntrue\n")
    assert len(json.loads(trust(place, "--json"))) == 1


def test_a_project_without_such_imports_asks_nothing(tmp_path):
    assert trust(tmp_path) == "This project has nothing to trust.\n"
