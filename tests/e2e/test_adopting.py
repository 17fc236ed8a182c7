"""Short runs of the benchmarks about services."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lazy import needs
from postgres_server import programs
from programs import PATH

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
needs("langchain", "langchain_anthropic", "pydantic_ai", "agents")
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
needs_postgres = pytest.mark.skipif(programs() is None, reason="PostgreSQL is not installed")


def run(name, *options):
    command = [sys.executable, str(BENCHMARKS / name), "--json", *options]
    env = os.environ | {"PATH": PATH}  # the server's user may not look into a test's directories
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4_000:]
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def test_five_programs_in_a_small_window_with_summaries_that_work_and_that_fail():
    found, _ = run("adopt_programs.py", "--turns", "80")
    assert found["total"].items() >= {"illegal": 0, "calls_twice": 0, "stuck": 0, "lost": 0}.items()
    assert all(one["compactions"] for one in found["programs"].values())


def test_more_conversations_at_once_than_may_stay_open():
    found, said = run("adopt_servers.py", "--only", "crowd")
    assert all(one["errors"] == {} and one["lost"] == 0 for one in found["crowd"].values()), said


@needs_postgres
def test_a_database_that_is_away_holds_up_nobody_else():
    found, _ = run("adopt_servers.py", "--only", "outage", "--away", "4")
    assert found["outage"]["failed"] == {}
    assert found["outage"]["took_seconds"] > 4
    assert found["outage"]["lag_p99_ms"] < 50 + found["outage"]["quiet_lag_p99_ms"]


@needs_postgres
@pytest.mark.parametrize("way", ["session", "langchain", "pydantic_ai", "openai_agents"])
def test_four_workers_share_conversations_without_sticky_routing(way):
    found, said = run("adopt_servers.py", "--only", "workers", "--turns", "30", "--ways", way)
    for figures in found.values():
        wanted = {"errors": 0, "lost": 0, "run_twice": 0, "illegal": {}, "warnings": 0}
        assert figures.items() >= wanted.items(), said[-4_000:]
        assert figures["workers"] > 1
