"""Other agents' sessions, compacted offline: a new file, with the old file unchanged."""

import hashlib
import json

from click.testing import CliRunner

from longhold.cli import cli
from longhold.core.messages.rules import violations
from longhold.core.view import fold
from longhold.errors import RequestRejected
from longhold.insight.transcripts.formats import open_transcript


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_every_recorded_session_compacts_by_digest(recorded, tmp_path):
    before, out = sha256(recorded), tmp_path / "out.jsonl"
    done = CliRunner().invoke(cli, ["compact", str(recorded), "--out", str(out), "--json"])
    assert sha256(recorded) == before
    if isinstance(done.exception, RequestRejected):
        assert not out.exists()
        return
    assert done.exit_code == 0, done.output
    told = json.loads(done.output)
    assert told["preview"]["after_tokens"] < told["preview"]["before_tokens"]
    with open_transcript(out) as transcript:
        view = fold(transcript.entries)
    assert transcript.format == told["format"]
    assert violations(view.messages()) == []
    said = json.dumps([str(message) for message in view.messages()])
    assert recorded.name in said  # where the rest can be found
