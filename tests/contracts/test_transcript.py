"""The contract of a transcript format: `longhold.insight.transcripts.formats.Format`."""

import pytest

from longhold.core.log.entries import Imported, Replied, Said
from longhold.core.messages.rules import violations
from longhold.core.view import fold
from longhold.insight.transcripts.formats import open_transcript


def read(path):
    with open_transcript(path) as transcript:
        return transcript.format, list(transcript.entries)


def test_its_files_are_recognised_as_its_own(sample):
    format, path = sample
    assert read(path)[0] == format.NAME


@pytest.mark.parametrize("other", [b"", b"\0\0\0", b"{}", b"[]", b"<html>", b"PK\x03\x04"])
def test_other_files_are_not_claimed(sample, other):
    assert not sample[0].sniff(other)


def test_entries_are_numbered_and_an_account_comes_last(sample):
    _, entries = read(sample[1])
    assert [entry.n for entry in entries] == list(range(1, len(entries) + 1))
    assert isinstance(entries[-1], Imported)
    assert any(isinstance(entry, Said) for entry in entries)
    assert any(isinstance(entry, Replied) for entry in entries)


def test_the_view_is_one_that_apis_accept(sample):
    view = fold(read(sample[1])[1])
    assert not violations(view.messages())


def test_what_it_writes_it_reads_again(sample, tmp_path):
    format, path = sample
    view = fold(read(path)[1])
    again = tmp_path / f"again{path.suffix}"
    again.write_bytes(b"".join(format.write(view, session="s", directory=str(tmp_path))))
    name, entries = read(again)
    assert name == format.NAME
    assert texts(fold(entries)) == texts(view)


def texts(view):
    return [
        (message.role, block.text)
        for message in view.messages()
        for block in message.content
        if hasattr(block, "text")
    ]


@pytest.mark.parametrize("cut", [1, 10, 20])
def test_a_file_that_was_cut_short_does_not_crash(sample, tmp_path, cut):
    from longhold.errors import TranscriptError

    format, path = sample
    short = tmp_path / "short"
    short.write_bytes(path.read_bytes()[:-cut])
    try:
        name, entries = read(short)
    except TranscriptError:
        return
    assert name == format.NAME or entries
