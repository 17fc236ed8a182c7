"""Importing a session under a given name."""

import json
import os
from pathlib import Path

from command_line import longhold
from generated_sessions import generate

SESSION = b"".join(generate(1, 40))


def test_a_name_that_is_no_text_can_be_imported(tmp_path, monkeypatch):
    odd = os.fsdecode(b"caf\xe9")
    (tmp_path / odd).mkdir()
    monkeypatch.chdir(tmp_path / odd)
    Path(f"s{odd}.jsonl").write_bytes(SESSION)
    done = longhold("sessions", "import", f"s{odd}.jsonl", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["format"] == "claude-code"
