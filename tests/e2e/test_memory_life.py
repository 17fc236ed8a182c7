"""A developer's simulated week at the default settings: memory learns and obeys the user."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lazy import needs

needs("anthropic")
pytestmark = pytest.mark.slow

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "memory_life.py"


def test_a_week_of_short_chats_and_long_sessions_is_remembered_within_the_budget():
    command = [sys.executable, str(BENCHMARK), "--weeks", "1", "--seed", "21", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["facts_remembered_share"] >= 0.9 <= found["facts_recalled_share"]
    assert found["overhead_share"] <= 0.05
    wrong = ("planted_committed", "resurrected", "lost_by_dream", "untold_waits")
    assert [found[name] for name in (*wrong, "jobs_done_without_effect")] == [0] * 5
