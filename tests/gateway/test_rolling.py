"""The deployed topology as processes, through rolling restarts, in a short run of the benchmark."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("psycopg", reason="psycopg is not installed: no store in PostgreSQL")
pytest.importorskip("uvicorn", reason="uvicorn is not installed: no gateway")

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "rolling.py"


@pytest.mark.slow
def test_no_answer_is_lost_changed_or_cut_and_sessions_are_handed_over():
    from postgres_server import programs

    if programs() is None:
        pytest.skip("PostgreSQL is not installed")
    words = ["--clients", "8", "--calls", "1", "--restarts", "3", "--seconds", "3", "--json"]
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), *words], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["lost"], found["changed"], found["cut"]) == (0, 0, 0)
    assert (found["restarts"], found["worker_alive"]) == (3, True)
    assert found["calls"] > 8
    assert found["unmanaged_share"] == 0
