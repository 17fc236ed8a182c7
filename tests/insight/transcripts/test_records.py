"""JSON records: times, invalid lines, and documents without an end."""

import pytest

from longhold.core.log.cursor import clamp_time
from longhold.session.importing.json_records import (
    MOST_LEVELS,
    UnreadableRecord,
    count,
    decode_record,
    first_record,
    records,
    seconds,
    timestamp,
)
from longhold.session.importing.transcript_writer import ImportAccount


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        ("2026-02-01T10:00:00.500Z", 1769940000.5),
        ("2026-02-01T10:00:00", 1769940000.0),
        ("2026-02-01T12:00:00+02:00", 1769940000.0),
        (1769940000500, 1769940000.5),
        ("yesterday", 0.0),
        ("9999-12-31T23:59:59-23:59", 0.0),
        (10**400, 0.0),
        (1e300, 0.0),
        (-5, 0.0),
        (True, 0.0),
        (None, 0.0),
    ],
)
def test_moments_are_read_in_every_shape(timestamp: object, expected: float):
    assert seconds(timestamp) == expected


def test_a_moment_that_is_written_is_read_again():
    assert seconds(timestamp(1769940000.5)) == 1769940000.5


@pytest.mark.parametrize("at", [1e300, -1e300, float("inf"), float("nan"), 253402300799.9999])
def test_a_moment_that_is_no_date_is_written_as_none(at: float):
    assert clamp_time(at) == 0.0
    assert timestamp(at) == "1970-01-01T00:00:00.000Z"


@pytest.mark.parametrize(
    ("value", "expected"),
    [(7, 7), (0, 0), (True, 0), (-1, 0), (10**25, 0), (7.0, 0), ("7", 0), (None, 0), ([], 0)],
)
def test_a_count_is_a_whole_number_or_nothing(value: object, expected: int):
    assert type(count(value)) is int and count(value) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (rb'"\ud83d"', "\ufffd"),
        (rb'"\ude00 \uD83D\uDE00"', "\ufffd \U0001f600"),
        (rb'"\\ud83d\ud83d"', "\\ud83d\ufffd"),
        (b'"\xf0\x9f and more"', "\ufffd and more"),
        (b'"\xed\xa0\xbd"', "\ufffd\ufffd\ufffd"),
    ],
)
def test_half_a_character_is_replaced_and_counted(text: bytes, expected: str):
    account = ImportAccount()
    assert decode_record(text, account) == expected
    assert account.repaired == {"characters cut in half": 1}


def test_text_that_is_no_json_is_not_mended():
    account = ImportAccount()
    assert isinstance(decode_record(rb'{"\ud83d', account), UnreadableRecord)
    assert account.repaired == {}


@pytest.mark.parametrize("levels", [MOST_LEVELS + 1, 990, 100_000])
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_what_is_nested_too_deep_is_malformed(levels: int, opening: bytes, closing: bytes):
    inner = b"0" if closing == b"}" else b""
    line = opening * levels + inner + closing * levels
    assert decode_record(line) == UnreadableRecord(f"nested deeper than {MOST_LEVELS} levels")


def test_what_is_nested_less_deep_is_read():
    assert not isinstance(decode_record(b"[" * MOST_LEVELS + b"]" * MOST_LEVELS), UnreadableRecord)
    assert decode_record(b"[" + b"[]," * 500 + b"[]]") == [[]] * 501


def test_the_first_record_is_behind_marks_and_blank_lines():
    assert first_record(b"\xef\xbb\xbf\n \n{}\n[]") == {}
    assert first_record(b"\xef\xbb\xbf{}\n") == {}
    assert isinstance(first_record(b"\n"), UnreadableRecord)


def test_lines_keep_their_numbers_past_blank_ones():
    account = ImportAccount()
    read = list(records([b"\xef\xbb\xbf{}\n", b" \n", b"[]\n", b'{"a":1}\n', b"\xff\n"], account))
    assert read == [(1, {}), (4, {"a": 1})]
    assert account.malformed[0] == (3, "not a record but list")
    assert [number for number, _ in account.malformed] == [3, 5]
    assert account.records == 4
