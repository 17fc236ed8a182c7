"""The exam: unanswerable questions score nothing, complete answers score fully."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAM = Path(__file__).parents[1] / "benchmarks" / "exam.py"
COMPACTORS = """
import json

def nothing(messages):
    return "Work was done."

def everything(messages):
    return json.dumps(messages, ensure_ascii=False)
"""


@pytest.fixture
def sit(tmp_path):
    """Put a compactor through the exam on a made-up session; gives its row and the digest's."""
    (tmp_path / "mine.py").write_text(COMPACTORS)
    (tmp_path / "none").mkdir()

    def run(name):
        mine = f"{tmp_path / 'mine.py'}:{name}"
        command = [sys.executable, EXAM, tmp_path / "none", "--made-up", "1", "--compactor", mine]
        done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        return found[mine], found["digest"]

    return run


def test_a_compactor_that_keeps_nothing_answers_nothing(sit):
    mine, digest = sit("nothing")
    assert mine["score"] == 0.0 < 0.9 <= digest["score"]


def test_a_compactor_that_keeps_everything_has_no_advantage_but_its_size(sit):
    mine, digest = sit("everything")
    assert mine["score"] >= 0.8
    assert mine["tokens_share"]["median"] > 5 * digest["tokens_share"]["median"]
