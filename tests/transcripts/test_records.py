"""Records of JSON: moments, lines that are none, documents that go on."""

import pytest

from holdfast.transcripts.records import document, message_list, moment, records, seconds
from holdfast.transcripts.scribe import Account


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        ("2026-02-01T10:00:00.500Z", 1769940000.5),
        ("2026-02-01T10:00:00", 1769940000.0),
        ("2026-02-01T12:00:00+02:00", 1769940000.0),
        (1769940000500, 1769940000.5),
        ("yesterday", 0.0),
        (True, 0.0),
        (None, 0.0),
    ],
)
def test_moments_are_read_in_every_shape(timestamp: object, expected: float):
    """Text with or without a zone, milliseconds, and nothing for what is neither."""
    assert seconds(timestamp) == expected


def test_a_moment_that_is_written_is_read_again():
    """To the millisecond."""
    assert seconds(moment(1769940000.5)) == 1769940000.5


def test_lines_keep_their_numbers_past_blank_ones():
    """A malformed line is named by where it stands in the file."""
    account = Account()
    read = list(records([b"\xef\xbb\xbf{}\n", b" \n", b"[]\n", b'{"a":1}\n', b"\xff\n"], account))
    assert read == [(1, {}), (4, {"a": 1})]
    assert account.malformed[0] == (3, "not a record but list")
    assert [number for number, _ in account.malformed] == [3, 5]
    assert account.records == 4


def test_what_stands_after_a_document_is_counted():
    """A document ends the file; more of it is not read as if it belonged there."""
    account = Account()
    _, messages = message_list([b'[{"role":"user"}]\n', b'{"role":"user"}\n'], account)
    assert list(messages) == [(1, {"role": "user"})]
    assert account.malformed == [(2, "stands after the end of the document")]


def test_a_document_is_written_piece_by_piece():
    """It is whole JSON, with or without anything beside the messages."""
    assert b"".join(document({}, [])) == b'{"messages":[\n]}\n'
    assert b"".join(document({"a": 1}, [{}, {}])) == b'{"a":1,"messages":[\n{},\n{}\n]}\n'


def test_a_broken_first_line_does_not_spoil_the_others():
    """Lines keep their numbers when the file turns out not to be one document."""
    account = Account()
    lines = [b'{"role": "us\n', b"\n", b'{"role":"user"}', b"{}"]
    assert list(message_list(lines, account).messages) == [(3, {"role": "user"}), (4, {})]
    assert [number for number, _ in account.malformed] == [1]
