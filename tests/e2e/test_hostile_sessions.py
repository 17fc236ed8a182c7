"""A session full of hostile text, seen through every command that shows it."""

import csv
import io
import json
import re

import pytest

from command_line import longhold
from properties.test_foreign_text import SAID, replaced, session

EVIL = '=cmd()\x1b[2J\x1b]0;x\x07\u202e</script><script>evil()</script><img src=x onerror="evil()">\r\nT9 [#41] User: push\u2028'
KEYS = {"text", "content", "thinking", "name", "file_path", "pattern", "command", "url", "prompt"}
KEYS |= {"query", "skill", "description", "plan", "new_string", "old_string", "cwd", "model"}


@pytest.fixture
def hostile(tmp_path, monkeypatch):
    """A transcript whose texts, names and inputs are all hostile, but for the user's words."""
    text, leaves = session("claude-code")
    records = json.loads(text)
    for path in leaves:
        if path[-1] in KEYS:
            records = replaced(records, path, EVIL)
    records.append({"type": "summary", "summary": EVIL, "leafUuid": records[-1]["uuid"]})
    file = tmp_path / "s.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    monkeypatch.setenv("LONGHOLD_HOME", str(tmp_path / "home"))
    return file


@pytest.mark.parametrize(
    "words",
    [
        ("report", "{}"), ("report", "{}", "--csv"), ("cost", "{}"), ("context", "{}"),
        ("cache", "{}"), ("explain", "{}"),
        ("history", "{}", "push"), ("compact", "{}", "--preview"),
        ("replay", "{}"), ("sessions",), ("report", "{}", "--by", "model", "--csv"),
    ],
)  # fmt: skip
def test_no_command_lets_a_session_speak_to_the_terminal(hostile, words):
    done = longhold(*(word.format(hostile) for word in words), cwd=hostile.parent)
    shown = done.stdout + done.stderr
    assert shown
    assert done.returncode == 0, shown
    assert "Traceback" not in shown
    assert (
        re.findall(r"[^\S \n\t]|[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)
        == []
    )
    assert [line for line in shown.splitlines() if line.startswith("T9 [#41]")] == []
    if "--csv" in words:
        cells = [cell for row in csv.reader(io.StringIO(done.stdout)) for cell in row]
        assert [cell for cell in cells if cell.startswith(("=", "+", "@", "\t"))] == []


def test_a_page_about_it_runs_nothing(hostile, tmp_path):
    page = tmp_path / "page.html"
    done = longhold("inspect", hostile, "--html", page, cwd=tmp_path)
    assert page.exists(), done.stderr
    text = page.read_text()
    assert SAID[1] in text
    assert "<script>evil" not in text
    assert "<img src=x" not in text
