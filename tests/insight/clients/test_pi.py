"""The commands that pi's extension calls, for any agent's session file."""

import json
import re
from datetime import datetime

import pytest

from command_line import longhold
from longhold.insight.clients.pi import status_line

ASKED = "Never rename Kingfisher in config_store.py"


def entry(n: int, kind: str = "message", **fields) -> dict:
    return {
        "type": kind,
        "id": f"e{n}",
        "parentId": f"e{n - 1}" if n > 1 else None,
        "timestamp": f"2026-01-05T08:0{n}:00.000Z",
        **fields,
    }


def spoken(role: str, text: str, **fields) -> dict:
    return {"role": role, "content": [{"type": "text", "text": text}], **fields}


@pytest.fixture
def session(tmp_path):
    """A session that pi compacted into a summary that says nothing."""
    usage = {"input": 1_000, "output": 10, "cacheRead": 40_000, "cacheWrite": 10_000}
    answer = {"model": "claude-sonnet-4-5", "provider": "anthropic", "stopReason": "stop"}
    records = [
        {"type": "session", "version": 3, "id": "s", "cwd": "/", "timestamp": "2026-01-05T08:00Z"},
        entry(1, message=spoken("user", ASKED)),
        entry(2, message=spoken("assistant", "All right.", usage=usage, **answer)),
        entry(3, message=spoken("user", "Go on.")),
        entry(4, "compaction", summary="Some talk.", firstKeptEntryId="e3", tokensBefore=51_000),
    ]
    path = tmp_path / "session.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in records))
    return path


def test_the_status_line_says_until_when_the_cache_is_warm(session):
    """By the clock, because nothing draws it again until the next answer.

    The answer cost five cents, the summary that pi did not record about two.
    """
    answered = datetime.fromisoformat("2026-01-05T08:02:00Z").timestamp()
    warm = status_line(session, answered + 60)
    assert re.match(r"51\.0K of 200\.0K, 74 % left · cache warm until \d\d:\d\d:\d\d · ", warm)
    cold = status_line(session, answered + 3_000)
    assert "cache cold since 2026-01-05" in cold  # not a time of day, as that day is long gone
    assert cold.split(" · ")[2] == "$0.07"


def test_what_the_last_compaction_left_out_is_printed(session):
    done = longhold("keep", session)
    assert ASKED in done.stdout
    assert done.stdout.startswith("Kept by Longhold")


def test_a_file_without_an_answer_has_no_status_line(tmp_path):
    path = tmp_path / "new.jsonl"
    path.write_text(json.dumps({"type": "session", "version": 3, "id": "s", "cwd": "/"}) + "\n")
    done = longhold("statusline", path)
    assert done.returncode != 0
    assert not done.stdout
