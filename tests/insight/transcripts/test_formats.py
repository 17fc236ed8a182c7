"""Detecting a file's format, and reading it completely or reporting why not."""

import gzip
import itertools
import json
import os
import random
from pathlib import Path

import msgspec
import pytest

from generated_sessions import generate
from longhold.core.log.entries import Imported, Ran, Replied, Said
from longhold.core.messages import Text
from longhold.core.view import fold
from longhold.errors import TranscriptError
from longhold.insight.transcripts.formats import (
    CLIENTS,
    FORMATS,
    is_log,
    load_format,
    losses,
    open_transcript,
    read_lines,
)
from longhold.session.importing.transcript_writer import TranscriptWriter

CLAUDE = b"".join(generate(1, 60))
LIST = json.dumps(
    [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "a", "name": "read", "input": {"path": "x"}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "a", "content": "body"}],
        },
    ]
).encode()


def read(path, progress=None):
    with open_transcript(path, progress) as transcript:
        return transcript.format, list(transcript.entries), transcript.account


def test_a_plain_file_and_a_gzipped_one_read_alike(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(CLAUDE)
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(CLAUDE))
    format, entries, account = read(tmp_path / "a.jsonl")
    packed_format, packed, _ = read(tmp_path / "a.jsonl.gz")
    assert format == packed_format == "claude-code"
    assert entries[:-1] == packed[:-1]
    assert isinstance(entries[-1], Imported)
    assert entries[-1].records == account.records == CLAUDE.count(b"\n")
    assert entries[-1].source == str(tmp_path / "a.jsonl")


def test_progress_is_told_in_bytes_of_the_file(tmp_path):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(CLAUDE))
    steps = []
    read(path, steps.append)
    assert steps == sorted(steps)
    assert steps[-1] == path.stat().st_size


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_recognises_what_it_writes(tmp_path, name):
    view = fold(load_format("anthropic").read(iter([LIST]), TranscriptWriter()))
    path = tmp_path / "file"
    path.write_bytes(b"".join(load_format(name).write(view)))
    format, entries, _ = read(path)
    assert format == name
    assert fold(entries).messages() == view.messages()
    assert losses(name, view) == {}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("at", [1e300, -1e300, 2.0**62])
def test_a_date_that_is_none_does_not_stop_an_export(name, at):
    view = fold([Said(n=1, at=at, content=(Text(text="hi"),))])
    again = fold(read_lines(load_format(name).write(view), name))
    assert again.messages() == view.messages()


@pytest.mark.parametrize("name", CLIENTS)
def test_a_line_that_is_nested_too_deep_is_left_out_by_every_format(name):
    view = fold(load_format("anthropic").read(iter([LIST]), TranscriptWriter()))
    lines = b"".join(load_format(name).write(view)).splitlines(keepends=True)
    deep = b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"\n"
    writer = TranscriptWriter()
    list(load_format(name).read(iter([*lines, deep]), writer))
    assert [number for number, _ in writer.account.malformed] == [len(lines) + 1]


def test_a_name_that_is_no_text_is_kept_in_a_form_that_is(tmp_path):
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.jsonl"))
    path.write_bytes(CLAUDE)
    *_, imported = read(path)[1]
    assert imported.source == f"{tmp_path}/caf\ufffd.jsonl"
    assert msgspec.json.encode(imported)


def test_a_path_may_be_given_as_text(tmp_path):
    path = tmp_path / "file.jsonl"
    path.write_bytes(CLAUDE)
    with open_transcript(str(path)) as transcript:
        assert transcript.format == "claude-code"
        assert list(transcript.entries)


def test_a_format_nobody_has():
    with pytest.raises(TranscriptError, match="is not a format; there are claude-code, codex, pi"):
        load_format("emacs")


def test_lines_are_read_in_a_format_that_is_known():
    assert [type(entry) for entry in read_lines([LIST], "anthropic")] == [Said, Replied, Ran]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty; there is nothing to read"),
        (b"\n  \n", "is empty; there is nothing to read"),
        (b"hello there\n", "has an unknown format; expected claude-code, codex"),
        (b'{"a":1}\n', "openai, or a Longhold log"),
        (b'{"longhold":1,"session":"s"}\n', "is a Longhold log"),
        (b"[" * 60_000, "has an unknown format"),
        (b"[" * 5_000 + b"]" * 5_000, "has an unknown format"),
        (b'{"a":' * 5_000 + b"1" + b"}" * 5_000, "has an unknown format"),
        (b"\x7fELF\0\0\0", "is a binary file, not a transcript"),
        (bytes(range(256)) * 40, "is a binary file, not a transcript"),
        (gzip.compress(b""), "is empty; there is nothing to read"),
        (gzip.compress(CLAUDE)[:100], "cannot be unpacked"),
        (b"\x1f\x8b" + b"not really", "cannot be unpacked"),
        (gzip.compress(b"x" * 50)[:10] + b"\xff" * 30, "cannot be unpacked"),
    ],
    ids=itertools.count(),
)
def test_a_file_that_is_no_transcript_gets_one_clear_line(tmp_path, content, says):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(TranscriptError) as caught:
        read(path)
    assert says in str(caught.value)
    assert str(caught.value).startswith(f"{path} ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("damage", ["cut", "spoilt"])
def test_a_packed_file_that_breaks_midway_is_reported(tmp_path, damage):
    noise = random.Random(1)
    lines = [
        json.dumps(
            {"type": "user", "uuid": f"u{i}", "message": {"content": noise.randbytes(99).hex()}}
        )
        for i in range(3_000)
    ]
    packed = bytearray(gzip.compress("\n".join(lines).encode()))
    middle = len(packed) * 2 // 3
    packed[middle:] = b"" if damage == "cut" else b"\xff" * (len(packed) - middle)
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(packed)
    got = []
    with (
        pytest.raises(TranscriptError, match="cannot be read to its end"),
        open_transcript(path) as transcript,
    ):
        got.extend(transcript.entries)
    assert len(got) > 500


def test_zeroes_a_crash_left_do_not_make_a_transcript_binary(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\0" * 512 + b"\n" + CLAUDE)
    format, _, account = read(path)
    assert format == "claude-code"
    assert [number for number, _ in account.malformed] == [1]


def test_a_directory_with_a_null_character_is_none(tmp_path):
    line = {"type": "user", "cwd": "/home/dev\0", "sessionId": "s", "uuid": "u", "message": {}}
    line["message"] = {"role": "user", "content": "hi"}
    (tmp_path / "a.jsonl").write_text(json.dumps(line) + "\n")
    with open_transcript(tmp_path / "a.jsonl") as transcript:
        assert transcript.directory == ""


def test_a_directory_a_missing_file_and_a_stream(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, says in [
        (tmp_path, "is a directory; name a transcript inside it"),
        (tmp_path / "no", "does not exist; check the path"),
        (tmp_path / "pipe", "is a stream, which cannot be read twice; save it to a file"),
    ]:
        with pytest.raises(TranscriptError, match=says):
            read(path)
        assert not is_log(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_one_may_not_read(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(CLAUDE)
    path.chmod(0)
    with pytest.raises(TranscriptError, match="cannot be read; check its permissions"):
        read(path)


def test_an_import_is_a_stream(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(CLAUDE * 40)
    steps = []
    with open_transcript(path, steps.append) as transcript:
        next(transcript.entries)
        assert len(steps) < 5


def test_a_recorded_file_is_recognised(recorded: Path):
    with open_transcript(recorded) as transcript:
        assert f"/{transcript.format}/" in str(recorded)


@pytest.mark.parametrize("piece", [b" " * (1 << 20), (b"x" * 1_023 + b"\n") * 1_024])
def test_a_small_file_does_not_unpack_to_gigabytes(tmp_path, piece):
    file = tmp_path / "bomb.jsonl.gz"
    with gzip.open(file, "wb") as packed:
        packed.write(CLAUDE)
        for _ in range(70):
            packed.write(piece)
    with pytest.raises(TranscriptError, match="more than"), open_transcript(file) as transcript:
        for _ in transcript.entries:
            pass


@pytest.mark.parametrize("before", [[], [{"type": "queue-operation", "operation": "enqueue"}]])
def test_a_session_that_begins_with_a_long_paste_is_recognised(tmp_path, before):
    said = {"role": "user", "content": "x" * 300_000}
    record = {"type": "user", "uuid": "u1", "sessionId": "s", "cwd": "/home/dev", "message": said}
    path = tmp_path / "long.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in (*before, record)))
    with open_transcript(path) as transcript:
        entries = list(transcript.entries)
    assert (transcript.format, transcript.directory) == ("claude-code", "/home/dev")
    assert any(isinstance(entry, Said) for entry in entries)
