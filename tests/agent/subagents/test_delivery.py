"""Mail enters the conversation exactly once."""

import contextlib

import pytest

from longhold.agent.subagents.ledger import Delivery, Mailbox
from longhold.agent.subagents.mail import Mail, Note
from longhold.core.log import Header, Log
from longhold.core.log.entries import Failed, Framed, Said, Switched
from longhold.core.messages import text_of
from longhold.core.settings import AgentsSettings, Settings
from longhold.core.turn.engine import Engine


def _open(tmp_path, **limits):
    path = tmp_path / "s.jsonl"
    log = Log.open(path) if path.exists() else Log.create(path, Header(session="s"))
    return Engine(log, Settings(agents=AgentsSettings(**limits)))


def _send(box, *texts, sender="ada"):
    for text in texts:
        Mailbox(box).send(Mail(id=text[:8], sender=sender, to="main", body=Note(text=text)))


def _told(engine):
    return [
        text_of(entry.content).split("| ", 1)[1].split("\n")[0]
        for entry in engine.view.history
        if isinstance(entry, Said)
    ]


@pytest.fixture
def box(tmp_path):
    """A mailbox."""
    return tmp_path / "main.jsonl"


async def test_mail_is_said_hidden_and_once(tmp_path, box):
    with _open(tmp_path).log as log:
        engine = Engine(log, Settings())
        deliver = Delivery(box)
        _send(box, "one", "two")
        await deliver(engine)
        await deliver(engine)
        assert _told(engine) == ["one", "two"]
        assert all(entry.hidden for entry in engine.view.history if isinstance(entry, Said))


@pytest.mark.parametrize("killed_after", range(4))
async def test_a_kill_between_reading_and_delivering_changes_nothing(tmp_path, box, killed_after):
    _send(box, "one", "two", "three")
    first = _open(tmp_path)
    written = []

    class Killed(BaseException):
        pass

    record = first.record

    def dying(entry):
        if len(written) == killed_after:
            raise Killed
        written.append(entry)
        return record(entry)

    first.record = dying
    with contextlib.suppress(Killed):
        await Delivery(box)(first)
    first.log.close()
    second = _open(tmp_path)
    await Delivery(box)(second)
    assert _told(second) == ["one", "two", "three"]
    second.log.close()


async def test_a_delivery_that_failed_midway_is_made_up_by_the_same_stage(tmp_path, box):
    _send(box, "one", "two")
    engine, deliver = _open(tmp_path), Delivery(box)
    record, failures = engine.record, iter([False, True])

    def failing(entry):
        if next(failures, False):
            raise RuntimeError("disk")
        return record(entry)

    engine.record = failing
    with pytest.raises(RuntimeError):
        await deliver(engine)
    await deliver(engine)
    assert _told(engine) == ["one", "two"]
    engine.log.close()


async def test_a_flood_waits_for_later_rounds(tmp_path, box):
    engine, deliver = _open(tmp_path), Delivery(box)
    _send(box, "a" * 100_000, "b" * 30_000, "c" * 30_000, "d" * 30_000)
    await deliver(engine)
    assert len(_told(engine)) == 1
    await deliver(engine)
    assert [text[0] for text in _told(engine)] == ["a", "b", "c"]
    await deliver(engine)
    assert len(_told(engine)) == 4
    engine.log.close()


async def test_mail_nobody_can_read_is_told_once_and_passed(tmp_path, box):
    _send(box, "one")
    with box.open("ab") as file:
        file.write(b"nonsense\n")
    for _ in range(2):
        engine = _open(tmp_path)
        await Delivery(box)(engine)
        engine.log.close()
    failed = [entry for entry in engine.view.history if isinstance(entry, Failed)]
    assert [entry.what for entry in failed] == ["mail"]
    assert _told(engine) == ["one"]


async def test_a_mailbox_that_cannot_be_read_stops_nothing(tmp_path, box):
    box.write_text("hello\n")
    engine, deliver = _open(tmp_path), Delivery(box)
    await deliver(engine)
    await deliver(engine)
    assert [entry.what for entry in engine.view.history] == ["mailbox"]
    box.unlink()
    _send(box, "one")
    await deliver(engine)
    assert _told(engine) == ["one"]
    engine.log.close()


async def test_mail_is_part_of_the_next_request_and_not_of_the_prefix_before_it(tmp_path, box):
    engine = _open(tmp_path)
    engine.record(Switched(model="claude-opus-4-6"))
    engine.record(Framed())
    engine.say("hello")
    _send(box, "approved by the user")
    request = await engine.prepare((Delivery(box),), max_output_tokens=10)
    texts = [block["text"] for block in request.kwargs["messages"][-1]["content"]]
    assert texts[0] == "hello"
    assert texts[1].startswith('<mail from="ada"') and "not from the user" in texts[1]
    engine.log.close()
