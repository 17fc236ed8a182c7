"""The demo: what it claims is so, and it leaves nothing behind that was not asked for."""

import json
import shlex

import pytest

from command_line import longhold
from longhold.cli.demo_command import memory_demo, memory_lines
from longhold.core.settings import home

pytestmark = pytest.mark.slow


def test_the_demo_leaves_nothing_at_home_and_names_a_command_that_works(tmp_path):
    place = tmp_path / "demo"
    found = json.loads(longhold("demo", "--keep", place, "--json").stdout)
    assert found["tests_after"] == "passed"
    assert not any(home().iterdir())
    assert not (place / "home" / "spent").exists()
    assert not (place / "home" / "calibration").exists()
    setting, _, *words = shlex.split(found["look_inside"])
    name, _, value = setting.partition("=")
    done = longhold(*words, env={name: value})
    assert (done.returncode, "compacted" in done.stdout) == (0, True)


def test_a_directory_with_something_in_it_is_not_written_to(tmp_path):
    (tmp_path / "mine").write_text("x")
    assert "new or empty" in longhold("demo", "--keep", tmp_path).stderr


async def test_learnt_in_one_session_recalled_in_the_next_dreamt_and_undone(tmp_path):
    scene = await memory_demo(tmp_path)
    assert scene["learnt"] == scene["recalled"] == ["releases-go-out-on-tuesday.md"]
    assert (scene["memories"], scene["after_dream"], scene["dream"]) == (2, 1, "1 merged")
    assert scene["undo_is_exact"]
    lines = memory_lines(scene)
    assert any("releases-go-out-on-tuesday.md" in line for line in lines)
    assert lines[-1].endswith("every byte restored")
