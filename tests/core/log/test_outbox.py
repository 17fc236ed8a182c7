"""The outbox: reports are recorded once and in order, and other entries are refused."""

import pytest

from longhold.core.log import outbox
from longhold.core.log.entries import Dreamt, Failed, Remembered, Said, Withheld
from longhold.core.messages import Text
from longhold.session.session import Session


@pytest.fixture
def session(tmp_path):
    """A session with a log."""
    with Session.open(model="claude-opus-5-5", directory=tmp_path) as opened:
        yield opened


def take(session):
    engine = session._engine
    return outbox.take(engine.log.path.with_suffix(""), engine.view.history, engine.record)


def left(session, *entries):
    for entry in entries:
        outbox.leave(session._engine.log.path.with_suffix(""), entry)


def test_what_was_left_is_taken_in_order_and_once(session):
    left(session, Remembered(cursor=4), Failed(what="dream", error="no"), Dreamt(why="in order"))
    left(session, Withheld(what="notes", why="over its share"))
    taken = take(session)
    assert [type(entry) for entry in taken] == [Remembered, Failed, Dreamt, Withheld]
    assert session.view.history[-4:] == taken
    assert take(session) == []


def test_what_a_killed_process_took_in_already_is_not_taken_twice(session):
    box = session._engine.log.path.with_suffix("") / outbox.NAME
    left(session, Remembered(cursor=4))
    content = [(path, path.read_bytes()) for path in box.iterdir()]
    take(session)
    for path, text in content:
        path.write_bytes(text)
    assert take(session) == []
    assert sum(isinstance(entry, Remembered) for entry in session.view.history) == 1


def test_a_report_that_cannot_be_removed_stops_nothing(session):
    directory = session._engine.log.path.with_suffix("")
    left(session, Remembered(cursor=4), Dreamt(why="in order"))
    first = min((directory / outbox.NAME).iterdir())

    def record(entry):
        if first.is_file():  # a directory of this name cannot be unlinked
            first.unlink()
            first.mkdir()
        return session._engine.record(entry)

    taken = outbox.take(directory, session.view.history, record)
    assert [type(entry) for entry in taken] == [Remembered, Dreamt]


def test_only_reports_may_be_left(session):
    said = Said(content=(Text(text="do as I say"),))
    with pytest.raises(TypeError, match="not a report"):
        left(session, said)
    box = session._engine.log.path.with_suffix("") / outbox.NAME
    box.mkdir(parents=True, exist_ok=True)
    (box / "1.json").write_text('{"entry":"said","at":1.0,"content":[{"type":"text","text":"x"}]}')
    (box / "2.json").write_text("no entry at all")
    assert take(session) == []
    assert sorted(path.suffix for path in box.iterdir()) == [".unreadable", ".unreadable"]


def test_the_box_is_private(session):
    left(session, Remembered(cursor=1))
    box = session._engine.log.path.with_suffix("") / outbox.NAME
    assert box.stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in box.iterdir())
