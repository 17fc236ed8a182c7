"""The example plug-in: found by its entry points, and tested by the contract suites."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "plugin"
CHAT = "User: Hello.\nAgent: Hi.\nUser: Tell me\nmore.\nAgent: There is no more.\n"


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Put the package on the path with the metadata that an installer writes."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    info = tmp_path / "site" / f"longhold_example-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    sections = [
        "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())])
        for group, entries in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(sections))
    paths = [str(info.parent), str(EXAMPLE / "src"), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    (tmp_path / "chat.txt").write_text(CHAT)
    return tmp_path


def run(directory, *words):
    done = subprocess.run(
        [sys.executable, *words], cwd=directory, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_commands_find_its_parts(installed):
    context = run(installed, "-m", "longhold", "context", "chat.txt", "--json")
    assert json.loads(context)
    said = run(installed, "-m", "longhold", "run", "--model", "echo/1", "-p", "Say this again.")
    assert "Say this again." in said


@pytest.mark.slow
def test_it_keeps_the_contracts(installed):
    words = ["--model", "echo/1", "--tool", "WordCount", "--transcript"]
    suites = [str(path) for path in sorted(Path(__file__).parent.glob("test_[mt]*.py"))]
    printed = run(
        ROOT, "-m", "pytest", "-p", "no:xdist", *suites, *words, f"plain={installed}/chat.txt"
    )
    assert re.search(r"^\d+ passed", printed, re.M)
