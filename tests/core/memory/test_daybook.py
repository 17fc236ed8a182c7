"""The daybook: only the user's messages since a time."""

import os

import msgspec
import pytest

from longhold.core.log.entries import Ran, Said
from longhold.core.log.shared import FileRecords
from longhold.core.memory.dreaming import daybook
from longhold.core.messages import Text

SINCE = 1_790_000_000.0
DAY = 86_400.0


def said(n, text, at=SINCE + DAY, **more):
    return Said(n=n, at=at, content=(Text(text=text),), **more)


@pytest.fixture
def write(tmp_path):
    """Write a log with these entries, last changed at a time."""

    def make(session, *entries, at=SINCE + DAY):
        path = tmp_path / f"{session}.jsonl"
        path.write_bytes(b"".join(msgspec.json.encode(one) + b"\n" for one in entries))
        os.utime(path, (at, at))

    return make


@pytest.fixture
def told(tmp_path):
    """Read the daybook of the logs."""

    def read(most_chars=10_000):
        return daybook(FileRecords(tmp_path), SINCE, current="mine", most_chars=most_chars)

    return read


def test_the_users_words_are_listed_with_where_they_stand(write, told):
    write(
        "s1",
        said(1, "before", at=SINCE - 1),
        said(2, "No,\ndeploy on Fridays."),
        said(3, "a reminder", hidden=True),
        said(4, "mail", mail="main 3"),
        Ran(n=5, tool_use_id="t", content="a page"),
    )
    write("mine", said(1, "the session that asks"))
    write("old", said(1, "touched long ago"), at=SINCE - 1)
    assert told() == "s1.jsonl:\n- #2 (2026-09-22) No, deploy on Fridays."


def test_the_newest_fit_and_the_rest_is_counted(write, told):
    write("long", *(said(n, f"word {n} " * 10) for n in range(1, 50)), at=SINCE + 2 * DAY)
    write("short", said(1, "we moved to Port"))
    found = told(most_chars=1_000)
    assert "#49 " in found and "#1 (2026-09-22) word" not in found
    assert "earlier messages not listed" in found and "we moved to Port" in found
    assert len(found) <= 1_100


def test_a_secret_is_masked_and_a_damaged_line_passed_over(tmp_path, write, told):
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    write("s1", said(1, f"use {key}"), said(2, "all good"))
    path = tmp_path / "s1.jsonl"
    path.write_bytes(b'{"entry":"said","n":9,\n' + path.read_bytes())
    os.utime(path, (SINCE + DAY, SINCE + DAY))
    assert key not in told() and "all good" in told()
