"""The example package: found by its entry points, and held to the contracts."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from contracts import KINDS

ROOT = Path(__file__).parents[1]
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


def run(directory, *words, **variables):
    done = subprocess.run(
        [sys.executable, *words],
        cwd=directory,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_commands_find_its_parts(installed):
    context = run(installed, "-m", "longhold", "context", "chat.txt", "--json")
    assert json.loads(context)
    said = run(installed, "-m", "longhold", "run", "--model", "echo/1", "-p", "Say this again.")
    assert "Say this again." in said


def test_a_session_uses_the_parts_that_the_user_names(installed):
    """The echo repeats the last text: the date, which the stage adds after the question."""
    words = ("-m", "longhold", "run", "--model", "echo/1", "-p", "Hello.")
    assert "Today is" not in run(installed, *words)
    assert "Today is" in run(installed, *words, LONGHOLD_PLUGINS_USE="tell-date sentences")


@pytest.fixture
def shipped(installed, monkeypatch):
    """Lay the package out as the wheel does, with the suites in it."""
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
    wheel = build["targets"]["wheel"]
    site = installed / "wheel"
    for package in wheel["packages"]:
        shutil.copytree(ROOT / package, site / Path(package).name)
    for source, target in wheel["force-include"].items():
        shutil.copytree(ROOT / source, site / target)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), os.environ["PYTHONPATH"]]))
    return site


@pytest.mark.slow
def test_another_project_runs_the_suites_on_it(installed, shipped):
    """Another project has neither this one's configuration nor its plug-ins of pytest."""
    options = {
        "--model": "echo/1",
        "--tool": "WordCount",
        "--transcript": f"plain={installed}/chat.txt",
        "--stage": "tell-date",
        "--summariser": "sentences",
        "--memory": "folder",
        "--policy": "long-only",
    }
    (installed / "theirs").mkdir()
    printed = run(
        installed / "theirs",
        *("-P", "-m", "pytest", "-p", "no:xdist", "-p", "no:asyncio", "-p", "no:cacheprovider"),
        *("-p", "longhold.contracts", "--pyargs", "longhold.contracts"),
        *(word for option in options.items() for word in option),
        LONGHOLD_EXAMPLE_FOLDER=str(installed / "folder"),
    )
    assert re.search(r"\d+ passed", printed)
    assert "skipped" not in printed
    assert str(shipped) not in printed  # no warnings about its files


def test_every_kind_has_a_suite_and_an_option():
    place = Path(__file__).parent / "contracts"
    assert {path.stem.removeprefix("test_") for path in place.glob("test_*.py")} == set(KINDS)
