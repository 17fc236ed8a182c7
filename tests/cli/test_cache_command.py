"""`holdfast cache`: calls, breaks and totals."""

import json

import pytest

from command_line import holdfast
from holdfast.log import Header, write_log
from holdfast.log.entries import CacheBroke, Forked, Replied
from holdfast.messages import Usage
from holdfast.simulator.sessions import write


@pytest.fixture
def transcript(tmp_path):
    """A made-up session with a compaction, as a file."""
    path = tmp_path / "session.jsonl"
    write(path, 3, 150, compactions=1)
    return path


def call(n, at, read, write):
    """An answer with its usage."""
    usage = Usage(cache_read_tokens=read, cache_write_tokens=write, cache_write_5m_tokens=write)
    return Replied(n=n, at=at, response_id=f"r{n}", model="claude-opus-5", content=(), usage=usage)


def test_calls_breaks_and_totals_are_shown(tmp_path):
    """A break the log knows of, a cold call it explains, the sums, and the two comparisons."""
    path = tmp_path / "log.jsonl"
    broke = CacheBroke(n=4, at=3.0, cause="tool", detail="tool X changed", lost_tokens=30_000)
    entries = [
        call(1, 1.0, 0, 50_000),
        call(2, 2.0, 50_000, 100),
        call(3, 3.0, 30_000, 20_300),
        broke,
        call(5, 503.0, 0, 50_500),
    ]
    write_log(path, Header(session="one"), entries)
    done = holdfast("cache", path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[1].split() == ["1", "0", "50.0K", "0", "0%", "$0.3125"]
    assert "       broke: tool, 20.1K tokens not read, $0.1156: tool X changed" in lines
    assert (
        "       cold: lifetime_5m, 50.3K tokens not read, $0.2892: 8 minutes idle; the cache lives for 5"
        in lines
    )
    assert lines[-4].startswith("calls 4, cold 1 · 80.0K read, 120.9K written, 0 neither · 39.8%")
    assert lines[-3] == "cost $0.7956 · with an ideal cache $0.3908 · without one $1.0045"
    assert lines[-2] == "breaks and cold calls $0.4048: lifetime_5m 1 × $0.2892, tool 1 × $0.1156"
    assert lines[-1].startswith("the cache (5m) expired")


def test_the_json_adds_up(transcript):
    """Totals are the sums of the calls, and a bare prompt costs more than a cached one."""
    found = json.loads(holdfast("cache", transcript, "--json").stdout)
    calls, total = found["calls"], found["total"]
    assert total["calls"] == len(calls) > 10
    assert total["read_tokens"] == sum(call["read_tokens"] for call in calls)
    assert total["ideal_usd"] <= total["usd"] < total["bare_usd"]
    assert found["seconds_to_expiry"] == 0.0


def test_a_session_without_usage_says_so(tmp_path):
    """Nothing is made up."""
    path = tmp_path / "list.json"
    path.write_text(json.dumps([{"role": "user", "content": "hi"}]))
    done = holdfast("cache", path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "No call here reports its usage.\n"


def test_forks_are_shown_as_such(tmp_path):
    """In their place among the calls, in words and in JSON."""
    usage = Usage(input_tokens=40, cache_read_tokens=50_000)
    fork = Forked(n=2, at=2.0, source="compact", model="claude-opus-5", usage=usage)
    path = tmp_path / "log.jsonl"
    write_log(path, Header(session="one"), [call(1, 1.0, 0, 50_000), fork])
    assert holdfast("cache", path).stdout.splitlines()[2].endswith("fork: compact")
    found = json.loads(holdfast("cache", path, "--json").stdout)
    assert [call["source"] for call in found["calls"]] == ["main", "compact"]
