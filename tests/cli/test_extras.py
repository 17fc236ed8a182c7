"""With any set of extras, a command works or prints one line. The base does the daily work."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from generated_sessions import write
from longhold.cli import every_command
from longhold.core.settings.installation import EXTRAS

ROOT = Path(__file__).parent.parent.parent
CHILD = ROOT / "tests" / "support" / "children" / "without_extras.py"
PACKAGES = {module for modules in EXTRAS.values() for module in modules} | {"numpy"}

BASE = (
    "report session.jsonl",
    "cost session.jsonl",
    "context session.jsonl",
    "cache session.jsonl",
    "explain session.jsonl",
    "history session.jsonl importer",
    "inspect session.jsonl --html page.html",
    "replay session.jsonl",
    "compact session.jsonl --preview",
    "doctor",
    "run -p hello --offline",
)
"""What works with the base package alone."""
OTHERS = (
    "chat --offline --plain",
    "gateway --port TAKEN",
    "mcp",
    "serve --port TAKEN",
    "simulator --port TAKEN",
    "wrap true",
    "worker --once",
    "run -p hello --model claude-sonnet-5-5",
    "run -p hello --model gpt-6-sol",
    "sessions",
    "config",
    "memory",
)


@pytest.fixture
def place(tmp_path):
    write(tmp_path / "session.jsonl", 3, 60)
    return tmp_path


def _run(place, lines, *, missing):
    environment = {
        **{name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")},
        "HOME": str(place),
        "LONGHOLD_HOME": str(place / "home"),
        "LONGHOLD_STORE": "",
    }
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = [line.replace("TAKEN", port).split() for line in lines]
        done = subprocess.run(
            [sys.executable, CHILD],
            input=json.dumps({"missing": sorted(missing), "lines": words}),
            cwd=place,
            env=environment,
            capture_output=True,
            text=True,
        )
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


def _bad(done):
    """Return the runs that neither worked nor printed one line."""
    return [
        one
        for one in done
        if one["code"]
        and (len(one["err"].strip().splitlines()) != 1 or "Traceback" in one["err"])
        and "Usage:" not in one["err"]
    ]


HELP = tuple(f"{name} --help" for name in every_command())


def test_the_base_package_does_the_daily_work(place):
    done = _run(place, [*BASE, *HELP], missing=PACKAGES)
    assert [one for one in done if one["code"] or "Traceback" in one["err"]] == []
    replayed = next(one for one in done if one["words"][0] == "replay")
    assert "token counts are estimates" in replayed["out"]


@pytest.mark.slow
def test_the_demo_needs_no_extra(place):
    [done] = _run(place, ["demo"], missing=PACKAGES)
    assert done["code"] == 0, done["err"]
    assert "failed before, passed after" in done["out"]


def test_without_extras_each_command_works_or_prints_one_line(place):
    done = _run(place, OTHERS, missing=PACKAGES)
    assert _bad(done) == []
    said = {one["words"][0]: one["err"] for one in done}
    assert "[gateway]" in said["gateway"]
    assert "[gateway]" in said["wrap"]
    assert "[simulator]" in said["simulator"]
    assert "[serve]" in said["serve"]
    assert "[mcp]" in said["mcp"]


@pytest.mark.slow
@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_with_one_extra_each_command_works_or_prints_one_line(place, extra):
    missing = PACKAGES - set(EXTRAS[extra])
    assert _bad(_run(place, [*OTHERS, *BASE, *HELP], missing=missing)) == []


def test_the_readme_example_needs_no_extra(place):
    program = re.search(
        r"^```python\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.M | re.S
    )[1]
    code = (
        f"import sys; sys.path.insert(0, {str(CHILD.parent)!r}); import without_extras\n"
        f"without_extras.hide({PACKAGES!r})\n{program}"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=place,
        env={**os.environ, "LONGHOLD_HOME": str(place / "home")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.optional
def test_an_environment_with_the_base_package_only(place):
    """In a real one, made by pip from this checkout."""
    subprocess.run([sys.executable, "-m", "venv", place / "venv"], check=True)
    pip = [place / "venv/bin/pip", "install", "--quiet"]
    subprocess.run([*pip, "--constraint", ROOT / "constraints.txt", ROOT], check=True)
    program = place / "venv/bin/longhold"
    for line in BASE:
        done = subprocess.run([program, *line.split()], cwd=place, capture_output=True, text=True)
        assert done.returncode == 0, (line, done.stderr)
    refused = subprocess.run([program, "wrap", "true"], cwd=place, capture_output=True, text=True)
    assert refused.returncode == 2
    assert re.fullmatch(r"longhold: .* -m pip install '?/.*\[gateway\]'?\n", refused.stderr)
    shutil.rmtree(place / "venv")


def test_a_mistyped_command_suggests_the_nearest(place):
    [done] = _run(place, ["rport"], missing=())
    assert done["code"] == 2
    assert "Did you mean `longhold report`?" in done["err"]
