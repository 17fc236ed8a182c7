"""Any sequence of lines opens to a valid view, and all damage is reported."""

import random
from pathlib import Path

import msgspec
import pytest

from damage import DAMAGE_KINDS, damage_log
from longhold.core.log import Log, load
from longhold.core.log.entries import AnyEntry
from longhold.core.messages.rules import violations
from longhold.core.settings import Settings
from longhold.core.turn.engine import Engine
from longhold.core.view import fold
from longhold.errors import NewerFormat, TranscriptError

RELEASE = Path(__file__).parents[1] / "fixtures" / "releases" / "0.1.0.jsonl"
SEEDS = 60


def is_entry(line):
    try:
        msgspec.json.decode(line, type=AnyEntry)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


def opens(path):
    """Open a log as a session does; say whether it did, and what was reported."""
    try:
        engine = Engine(Log.open(path), Settings())
    except NewerFormat:
        return []  # one bit of the first line says so
    except TranscriptError:
        lines = path.read_bytes().splitlines()[:20]
        assert not any(map(is_entry, lines)), "there was something to open"
        return []
    with engine.log:
        engine.repair()
        assert violations(engine.view.messages()) == violations(engine.view.render_seen()) == []
        engine.say("go on")
        assert violations(engine.view.messages()) == []
        assert fold(load(path).entries).messages() == engine.view.messages()
        return [*engine.log.damage, *engine.view.damage]


@pytest.mark.parametrize("kind", DAMAGE_KINDS)
@pytest.mark.parametrize("times", [1, 4])
def test_a_damaged_log_opens_and_can_be_gone_on_with(tmp_path, kind, times):
    whole = RELEASE.read_bytes()
    dice = random.Random(f"{kind} {times}")
    path = tmp_path / "s.jsonl"
    for _ in range(SEEDS):
        data = whole
        for _ in range(times):
            data = damage_log(data, kind, dice)
        path.write_bytes(data)
        opens(path)


def test_entries_in_another_order_are_read_in_the_order_of_their_numbers(tmp_path):
    whole = RELEASE.read_bytes()
    lines = whole.splitlines(keepends=True)
    lines[3], lines[9] = lines[9], lines[3]
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"".join(lines))
    loaded, before = load(path), load(RELEASE)
    assert loaded.entries == before.entries
    assert {found.line for found in loaded.damage} <= {5, 6, 7, 8, 9, 10}
    assert loaded.damage
    assert fold(loaded.entries).messages() == fold(before.entries).messages()


@pytest.mark.parametrize("first", [b"", b"\x00\x00\n", b"{\n"])
def test_a_damaged_first_line_is_rebuilt_from_the_files_name(tmp_path, first):
    lines = RELEASE.read_bytes().splitlines(keepends=True)
    path = tmp_path / "20260101-120000-abcdef00.jsonl"
    path.write_bytes(b"".join([first, *lines[1:]]))
    loaded = load(path)
    assert loaded.header.session == path.stem
    assert loaded.entries == load(RELEASE).entries
    assert [found.line for found in loaded.damage] == [1]


def test_what_is_left_of_a_first_line_says_where_the_session_belongs(tmp_path):
    lines = RELEASE.read_bytes().splitlines(keepends=True)
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"".join([lines[0].replace(b'"longhold"', b'"holdfasu"'), *lines[1:]]))
    assert load(path).header.directory == load(RELEASE).header.directory
