"""What a replay reads from a recording, and how close the simulator comes to it."""

import json

import pytest

from conftest import RECORDED
from generated_sessions import write
from longhold.core.log.entries import Said
from longhold.core.messages import Text
from longhold.core.request.billing.tokens import encode
from longhold.insight.replay.recorded_session import RecordedSession, filler, read_recording
from longhold.insight.replay.run import ReplayOptions, replay

SMALL = ("2026-01-05_51", "2026-01-10_0e", "2026-01-25_89", "2026-01-29_54", "2026-02-10_62")


def test_the_frame_is_what_the_first_prompt_has_beyond_the_record(recording):
    first = recording.answers[0].usage.prompt_tokens
    assert 0 < recording.frame_tokens <= first
    assert recording.missing_tokens == 0
    assert recording.model == "claude-opus-4-5-20251101" and recording.window_tokens == 200_000


def test_history_before_the_first_record_is_not_taken_for_the_frame(tmp_path):
    path = tmp_path / "late.jsonl"
    write(path, 5, 80)
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for record in records:
        usage = record.get("message", {}).get("usage")
        if usage:
            usage["cache_read_input_tokens"] = usage.get("cache_read_input_tokens", 0) + 100_000
    path.write_text("\n".join(map(json.dumps, records)))
    late = read_recording(path)
    assert late.frame_tokens <= 70_000 and late.missing_tokens > 30_000


def test_names_come_in_the_order_of_the_text():
    paths = [f"src/part_{n}.py" for n in (7, 2, 9, 4, 1, 8)]
    said = Said(n=1, content=(Text(text=f"Look at {', then '.join(paths)}."),))
    assert list(RecordedSession("one", [said]).names(said)) == paths


def test_a_filler_has_the_size_that_was_asked_for():
    assert len(encode(filler(20_000))) == pytest.approx(20_000, rel=0.03)


def test_broken_records_are_counted_and_the_rest_is_read(tmp_path):
    path = tmp_path / "broken.jsonl"
    write(path, 5, 60, malformed=3)
    assert read_recording(path).broken == 3


@pytest.mark.skipif(not RECORDED.is_dir(), reason="no recorded transcripts here")
def test_the_recorded_cache_reads_come_out_of_the_simulator():
    folder = RECORDED / "claude-code" / "entire-cli"
    files = [path for path in folder.iterdir() if path.name.startswith(SMALL)]
    found = replay(files, [], ReplayOptions())
    assert found.sessions == len(SMALL)
    assert found.as_recorded.read_ratio == pytest.approx(1.0, abs=0.05)
    assert found.as_recorded.tally.cache_read_tokens == sum(
        answer.usage.cache_read_tokens for path in files for answer in read_recording(path).answers
    )
