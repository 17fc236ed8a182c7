"""Reads JSON records, one per line. The account lists unreadable lines with the reason."""

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from longhold.core.log.cursor import clamp_time
from longhold.core.messages import Json, JsonObject
from longhold.core.wire.messages import is_deep
from longhold.session.importing.transcript_writer import ImportAccount

Numbered = Iterator[tuple[int, JsonObject]]

MOST_LEVELS = 200  # deeper JSON would overflow the stack. Real records have ten levels.


LARGEST_COUNT = 2**53  # larger numbers are not counts, and some JSON decoders do not support them

_first_value = json.JSONDecoder()  # reports where a value ends, which the faster decoder does not

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_HALF = r"\ufffd"

_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|(u[dD][89a-fA-F][\da-fA-F]{2})|.)",
    re.DOTALL,
)
"""An escape in JSON. The group matches one half of a broken surrogate pair."""


class UnreadableRecord(NamedTuple):
    reason: str


def decode_record(
    text: bytes | bytearray, account: ImportAccount | None = None
) -> Json | UnreadableRecord:
    """Decode JSON. Broken surrogate pairs are repaired and counted."""
    value = _parse_json(text)
    if isinstance(value, UnreadableRecord) and (whole := _replace_halves(text)) != text:
        value = _parse_json(whole)
        if account is not None and not isinstance(value, UnreadableRecord):
            account.repaired["characters cut in half"] += 1
    return value


def first_record(text: bytes) -> Json | UnreadableRecord:
    lines = number_lines(text.split(b"\n"))
    return next((decode_record(line) for _, line in lines), UnreadableRecord("there is no line"))


def records(lines: Iterable[bytes], account: ImportAccount) -> Numbered:
    yield from objects(number_lines(lines), account)


def number_lines(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    for number, text in enumerate(lines, 1):
        text = text.removeprefix(_BYTE_ORDER_MARK) if number == 1 else text
        if text.strip():
            yield number, text


def objects(lines: Iterable[tuple[int, bytes | bytearray]], account: ImportAccount) -> Numbered:
    for number, text in lines:
        account.count()
        value = decode_record(text, account)
        if isinstance(value, UnreadableRecord) and (joined := _split(text)):
            account.repaired["records that shared a line"] += len(joined)
            for each in joined:
                yield from check_record(number, each, account)
        else:
            yield from check_record(number, value, account)


def _split(text: bytes | bytearray) -> list[Json]:
    """Split objects that share a line because of several writers or a lost newline."""
    left, found = text.decode("utf-8", "replace").strip(), []
    while left:
        try:
            value, end = _first_value.raw_decode(left)
        except (ValueError, RecursionError):
            return []
        if not isinstance(value, dict) or is_deep(value, MOST_LEVELS):
            return []
        found.append(value)
        left = left[end:].lstrip()
    return found


def check_record(number: int, value: Json | UnreadableRecord, account: ImportAccount) -> Numbered:
    if isinstance(value, dict):
        yield number, value
    elif isinstance(value, UnreadableRecord):
        account.malformed.append((number, value.reason))
    else:
        account.malformed.append((number, f"not a record but {type(value).__name__}"))


def seconds(timestamp: Json) -> float:
    """Parse an ISO timestamp (UTC by default) or milliseconds since the epoch, or return 0."""
    if isinstance(timestamp, bool) or not isinstance(timestamp, int | float | str):
        return 0.0
    try:
        if not isinstance(timestamp, str):
            return clamp_time(timestamp / 1000)
        timestamp = datetime.fromisoformat(timestamp)
        return clamp_time(
            (timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)).timestamp()
        )
    except (ValueError, OverflowError):
        return 0.0


def count(value: Json) -> int:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole and 0 <= value <= LARGEST_COUNT else 0


def timestamp(at: float) -> str:
    text = datetime.fromtimestamp(clamp_time(at), UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def line(record: JsonObject) -> bytes:
    return msgspec.json.encode(record) + b"\n"


def _parse_json(text: bytes | bytearray) -> Json | UnreadableRecord:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return UnreadableRecord(f"not JSON: {error}")
    except RecursionError:
        return UnreadableRecord(f"nested deeper than {MOST_LEVELS} levels")
    if text.count(b"{") + text.count(b"[") > MOST_LEVELS and is_deep(value, MOST_LEVELS):
        return UnreadableRecord(f"nested deeper than {MOST_LEVELS} levels")
    return value


def _replace_halves(text: bytes | bytearray) -> bytes:
    return _ESCAPE.sub(
        lambda escape: _HALF if escape[1] else escape[0], text.decode("utf-8", "replace")
    ).encode()
