"""`longhold cache`: calls, breaks and totals."""

import json

import pytest

from command_line import longhold
from generated_sessions import write
from longhold.core.log import Header, write_log
from longhold.core.log.entries import CacheBroke, Forked, Replied
from longhold.core.messages import Usage


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
    done = longhold("cache", path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:4] == [
        "one: 40 % of the prompts was read from the cache (4 calls, 200.9K tokens)",
        "$0.40 of $0.80, 51 %, was lost to cold calls and breaks:",
        "        $0.29  1 time: you came back after the cache had expired",
        "        $0.12  1 time: a tool was added, removed or changed",
    ]
    assert "       broke: 20.1K tokens not read, $0.12: tool X changed" in lines
    assert (
        "       cold: 50.3K tokens not read, $0.29: 8 minutes idle; the cache lives for 5" in lines
    )
    assert lines[-2] == "$0.80; with an ideal cache $0.39, without one $1.00"
    assert lines[-1].startswith("the cache (5m) expired")


def test_only_cold_calls_are_listed_unless_all_are_asked_for(tmp_path):
    path = tmp_path / "log.jsonl"
    write_log(path, Header(session="one"), [call(1, 1.0, 0, 50_000), call(2, 2.0, 50_000, 100)])
    assert "Nothing was lost" in longhold("cache", path).stdout
    assert "50.0K" not in longhold("cache", path).stdout
    assert longhold("cache", path, "--calls").stdout.count("50.0K") == 2


def test_the_json_adds_up(transcript):
    found = json.loads(longhold("cache", transcript, "--json").stdout)
    calls, total = found["calls"], found["total"]
    assert total["calls"] == len(calls) > 10
    assert total["read_tokens"] == sum(call["read_tokens"] for call in calls)
    assert total["ideal_usd"] <= total["usd"] < total["bare_usd"]
    assert found["seconds_to_expiry"] == 0.0


def test_a_session_without_usage_says_so(tmp_path):
    path = tmp_path / "list.json"
    path.write_text(json.dumps([{"role": "user", "content": "hi"}]))
    done = longhold("cache", path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "list.json: no call has recorded usage.\n"


def test_forks_are_shown_as_such(tmp_path):
    usage = Usage(input_tokens=40, cache_read_tokens=50_000)
    fork = Forked(n=2, at=2.0, source="compact", model="claude-opus-5", usage=usage)
    path = tmp_path / "log.jsonl"
    write_log(path, Header(session="one"), [call(1, 1.0, 0, 50_000), fork])
    assert "fork: compact" in longhold("cache", path, "--calls").stdout
    found = json.loads(longhold("cache", path, "--json").stdout)
    assert [call["source"] for call in found["calls"]] == ["main", "compact"]
