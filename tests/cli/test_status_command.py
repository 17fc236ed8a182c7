"""`longhold status`: the state of a session for other programs."""

import json

from command_line import longhold
from generated_sessions import write


def test_the_state_of_a_session_is_one_line_or_one_document(tmp_path):
    file = tmp_path / "session.jsonl"
    write(file, 3, 200)
    found = json.loads(longhold("status", file, "--json").stdout)
    left = (found["line_tokens"] - found["used_tokens"]) / found["line_tokens"]
    assert found["percent_left"] == max(0, round(left * 100))
    assert 0 < found["used_tokens"] < found["limit_tokens"]
    assert found["usd"] > 0
    assert found["cache_seconds"] == 0
    line = longhold("status", file).stdout
    assert f"{found['percent_left']} % left" in line
    assert "cache cold" in line
