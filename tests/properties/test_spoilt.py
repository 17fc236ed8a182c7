"""Transcripts with values of wrong types: read by every format, stored, and sent."""

import copy
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longhold.core.log.entries import AnyEntry
from longhold.core.messages.rules import violations
from longhold.core.view import fold
from longhold.errors import TranscriptError
from longhold.insight.transcripts.formats import FORMATS, load_format, open_transcript
from longhold.session.importing.transcript_writer import TranscriptWriter
from properties.samples import LINES, spoilt

_log_line = msgspec.json.Decoder(AnyEntry)


def own_format(name):
    return name.split(" ")[0].removeprefix("old") or "pi"


def check(lines, format):
    """Read lines in a format; what comes out can be logged, loaded, shown and written again."""
    entries = list(load_format(format).read(iter(lines), TranscriptWriter()))
    assert [_log_line.decode(msgspec.json.encode(entry)) for entry in entries] == entries
    view = fold(entries)
    assert violations(view.messages()) == violations(view.render_seen()) == []
    for other in FORMATS:
        again = fold(load_format(other).read(load_format(other).write(view), TranscriptWriter()))
        assert violations(again.messages()) == []


@pytest.mark.parametrize("name", LINES)
def test_the_samples_themselves_are_whole(name):
    lines = [json.dumps(record).encode() for record in copy.deepcopy(LINES[name])]
    scribe = TranscriptWriter()
    format = own_format(name)
    assert load_format(format).sniff(b"\n".join(lines))
    assert fold(load_format(format).read(iter(lines), scribe)).messages()
    assert scribe.account.malformed == []
    check(lines, format)


@pytest.mark.parametrize("name", LINES)
@given(st.data())
def test_a_spoilt_transcript_is_read_by_its_own_format(name, data):
    check(data.draw(spoilt(name)), own_format(name))


@given(st.sampled_from(sorted(LINES)).flatmap(spoilt), st.sampled_from(FORMATS))
def test_a_spoilt_transcript_is_read_by_any_format(lines, format):
    check(lines, format)


@given(st.sampled_from(sorted(LINES)).flatmap(spoilt))
def test_a_spoilt_file_is_read_or_refused(tmp_path, lines):
    path = tmp_path / "file.jsonl"
    path.write_bytes(b"".join(lines))
    try:
        with open_transcript(path) as transcript:
            entries = list(transcript.entries)
    except TranscriptError:
        return
    assert violations(fold(entries).messages()) == []
