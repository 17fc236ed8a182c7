"""A sample of the attacks that `benchmarks/shell_attacks.py` generates, executed."""

import json
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "shell_attacks.py"


def test_what_is_judged_free_changes_nothing_and_tells_no_secret():
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "--json", "--attacks", "120", "--seed", "11"],
        capture_output=True,
        text=True,
        timeout=110,
    )
    result = json.loads(done.stdout)
    assert (result["succeeded"], result["through"]) == (0, [])
    assert result["attacks"] >= 120
