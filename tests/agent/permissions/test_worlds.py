"""The directories a command runs in according to strace, and according to permissions."""

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from longhold.agent.tools.git import reading_variables

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


def _can_trace() -> bool:
    strace = shutil.which("strace")
    return bool(strace) and not subprocess.run([strace, "true"], capture_output=True).returncode


needs_strace = pytest.mark.skipif(not _can_trace(), reason="strace is missing or not permitted")


@pytest.mark.slow
@needs_strace
def test_no_allowed_line_leaves_the_project():
    done = subprocess.run(
        [sys.executable, BENCHMARKS / "shell_worlds.py", "--json", "--seconds", "45"],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": "/usr/bin:/bin"},
    )
    result = json.loads(done.stdout)
    assert (result["escaped"], result["through"]) == (0, [])
    assert result["lines"] > 50


@pytest.fixture
def traced(tmp_path, monkeypatch):
    """Run a line in a made-up world, and return what nobody may do unasked."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import attacks.moving
    import shell_worlds

    template = attacks.moving.make_template(tmp_path / "template")
    world = attacks.moving.make_world(tmp_path / "world", random.Random(1), template)
    shell = shell_worlds.TracedShell(
        world, reading_variables({"PATH": "/usr/bin:/bin", "HOME": str(world.home)})
    )
    yield lambda line, mode="ask": shell_worlds.find_escapes(
        world, mode, (world.root,), *reversed(shell.run(line, world.root))
    )
    shell.close()


@needs_strace
@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("cat ~/.netrc", "printed"),
        ("cat ~/.netrc > /dev/null", "read"),
        ("ls ~ > /dev/null", "read"),
        ("mkdir d; cd d", "stand"),
        ("mkdir d; cd -P d", "stand"),
        ("echo x > new", "write"),
        ("touch new", "write"),
        ("ln -s a new", "write"),
        ("sh -c true", "run"),
    ],
)
def test_the_trace_shows_what_a_line_did(traced, line, seen):
    assert seen in {escape.split()[0] for escape in traced(line)}


@needs_strace
def test_the_trace_shows_nothing_where_nothing_happened(traced):
    assert not traced("cat g; ls; git status; pwd")
    assert not traced("echo x > new", "accept_edits")
    assert traced("echo x > .git/new", "accept_edits")
    assert traced("echo x > ../outside/new", "accept_edits")
