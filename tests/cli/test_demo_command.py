"""The demo: its claims are true, and it leaves no files behind."""

import json
import re
import shlex

import pytest

from command_line import longhold
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


def test_lines_that_no_terminal_reads_are_whole_and_count_in_english():
    lines = [line.strip() for line in longhold("demo").stderr.splitlines() if line.strip()]
    assert lines
    assert not [line for line in lines if line.endswith("…")]
    assert not [
        line for line in lines if re.search(r"\b1 (steps|summaries|calls|messages)\b", line)
    ]
