"""The status line and the hook for Claude Code, on its transcripts."""

import json
import os
import re
import resource
import subprocess
import sys
import time
from datetime import UTC, datetime

import pytest

from longhold.core.settings import home
from longhold.insight.clients.claude_code import keep, status_line
from longhold.insight.clients.known_status import known_line

AT = datetime(2026, 1, 5, 10, 0, tzinfo=UTC).timestamp()
WINDOW = {"context_window_size": 200_000}


def record(kind, n, content, **more):
    return {
        "type": kind,
        "uuid": f"u{n}",
        "parentUuid": f"u{n - 1}" if n else None,
        "sessionId": "s",
        "timestamp": datetime.fromtimestamp(AT + n, UTC).isoformat().replace("+00:00", "Z"),
        "message": {"role": kind, "content": content},
        **more,
    }


def answer(n, text, **writes):
    usage = {
        "input_tokens": 10,
        "output_tokens": 5,
        "cache_read_input_tokens": 50_000,
        "cache_creation_input_tokens": sum(writes.values()),
        "cache_creation": writes,
    }
    made = record("assistant", n, [{"type": "text", "text": text}])
    made["message"] |= {"id": f"msg_{n}", "model": "claude-sonnet-4-5", "usage": usage}
    return made


@pytest.fixture
def transcript(tmp_path):
    def write(*records):
        path = tmp_path / "s.jsonl"
        path.write_text("".join(json.dumps(each) + "\n" for each in records))
        return str(path)

    return write


@pytest.mark.parametrize(
    ("writes", "later", "says"),
    [
        ({"ephemeral_5m_input_tokens": 1_000}, 61, "cache 4:00"),
        ({"ephemeral_1h_input_tokens": 1_000}, 61, "cache 59:00"),
        ({"ephemeral_5m_input_tokens": 1_000}, 400, "cache cold: the next call writes about $0.19"),
    ],
)
def test_the_status_line_counts_the_cache_down(transcript, writes, later, says):
    path = transcript(record("user", 0, "hi"), answer(1, "hello", **writes))
    given = {"transcript_path": path, "cost": {"total_cost_usd": 1.5}, "context_window": WINDOW}
    assert status_line(given, AT + later) == f"51.0K of 200.0K, 74 % left · {says} · $1.50"


def test_a_status_line_is_made_of_whatever_is_there():
    assert status_line({}, AT) == ""
    assert status_line({"cost": {"total_cost_usd": 0.5}, "transcript_path": "/none"}, AT) == "$0.50"


def test_before_a_compaction_the_client_is_told_what_to_keep(transcript):
    path = transcript(
        record("user", 0, "Never rename kingfisher_total in billing/store.py"),
        answer(1, "I will leave it."),
        record("user", 2, "<command-name>/compact</command-name>"),
    )
    said = keep({"transcript_path": path, "hook_event_name": "PreCompact"})
    assert "must keep it word for word" in said
    assert "kingfisher_total" in said.splitlines()[1]
    assert said.splitlines()[-1] == "- Never rename kingfisher_total in billing/store.py"


def test_after_a_compaction_only_what_the_summary_lacks_is_given_back(transcript):
    boundary = {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": "b",
        "compactMetadata": {"trigger": "auto", "preTokens": 5},
    }
    path = transcript(
        record("user", 0, "Never rename kingfisher_total"),
        answer(1, "Fine."),
        record("user", 2, "Look at heron_total too"),
        answer(3, "Looked."),
        boundary,
        record("user", 4, "Summary: Look at heron_total too", isCompactSummary=True),
    )
    said = keep({"transcript_path": path, "hook_event_name": "SessionStart", "source": "compact"})
    assert said.startswith("Kept by Longhold")
    assert "kingfisher_total" in said
    assert "heron" not in said


def test_a_secret_is_not_carried_over(transcript):
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    path = transcript(record("user", 0, f"use the token {key}"), answer(1, "ok"))
    assert key not in keep({"transcript_path": path, "hook_event_name": "PreCompact"})
    assert keep({"transcript_path": "/none"}) == ""


def test_a_status_line_is_cheap_also_after_each_change(transcript, tmp_path):
    """At most six empty programs more than one: 60 ms of CPU where an empty one takes 10.

    A ratio, because the same code takes 45 ms on one machine and 70 ms on another.
    """
    last = answer(1, "hello", ephemeral_1h_input_tokens=1_000)
    last["timestamp"] = datetime.fromtimestamp(time.time(), UTC).isoformat()
    path = transcript(record("user", 0, "long " * 400_000), last)
    given = {"transcript_path": path, "cost": {"total_cost_usd": 1.5}, "context_window": WINDOW}
    environment = {**os.environ, "LONGHOLD_HOME": str(tmp_path / "home")}

    def run(*words, **more):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, "-P", *words],
            input=json.dumps({**given, **more}).encode(),
            capture_output=True,
            env=environment,
            check=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return done.stdout.decode(), spent

    def timeless(line):
        return re.sub(r"cache 5\d:\d\d", "cache 5M:SS", line)

    status = ("-m", "longhold", "statusline")
    whole, _ = run(*status)
    assert timeless(whole) == "51.0K of 200.0K, 74 % left · cache 5M:SS · $1.50\n"
    empty, repeated, changed = [], [], []
    for n in range(2, 6):
        empty.append(run("-c", "")[1])
        line, spent = run(*status, session_id="x", cost={"total_cost_usd": n})
        assert f"cache 5M:SS · ${n}.00" in timeless(line)
        repeated.append(spent)
        again = {
            **answer(n, "again", ephemeral_1h_input_tokens=n * 5_000),
            "timestamp": last["timestamp"],
        }
        with open(path, "a") as file:
            file.write(json.dumps(again) + "\n")
        line, spent = run(*status)
        assert line.startswith(f"{50 + n * 5}.0K of 200.0K")
        changed.append(spent)
    assert min(repeated) < 7 * min(empty)
    assert min(changed) < 7 * min(empty)


def test_another_model_is_priced_anew(transcript):
    path = transcript(record("user", 0, "hi"), answer(1, "x", ephemeral_5m_input_tokens=1_000))
    given = {"transcript_path": path, "context_window": WINDOW}
    text = json.dumps(given).encode()
    assert "$0.19" in status_line(given, AT + 900)
    assert "$0.19" in known_line(text, home(), AT + 900)
    other = answer(2, "y", ephemeral_5m_input_tokens=1_000)
    other["message"]["model"] = "claude-opus-4-5"
    with open(path, "a") as file:
        file.write(json.dumps(other) + "\n")
    assert known_line(text, home(), AT + 900) is None
    assert "$0.32" in status_line(given, AT + 900)
    assert "$0.32" in known_line(text, home(), AT + 901)
    assert known_line(text, home(), AT + 2_000) is None
