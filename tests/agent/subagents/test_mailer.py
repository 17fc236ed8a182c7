"""Sending messages."""

import asyncio
import stat

import pytest

from agent.subagents.orders import not_resumed
from longhold.agent.subagents.ledger import Delivery, Mailbox, UnreadMail, agent_box
from longhold.agent.subagents.mail import Mail, Note, ShutdownRequest
from longhold.agent.subagents.mailer import MAIL_CHARS, Around, Mailer, Peer, Unsent
from longhold.core.log.entries import Failed, Said
from longhold.core.log.stores import default_store
from longhold.core.memory.untrusted_input import watch_session
from longhold.core.settings import Settings
from longhold.core.turn.engine import Engine
from longhold.errors import ConfigError, SessionNotFound, StoreError

NOTE = Note(text="hi", summary="a greeting")


def _mailer(tmp_path, around, resume=not_resumed, **more):
    place = tmp_path / "s1"
    return Mailer(session="s1", directory=place, around=lambda: around, resume=resume, **more)


def _mails(path):
    return [letter.value for letter in UnreadMail(path).letters()]


async def test_a_running_agent_finds_it_in_its_mailbox(tmp_path):
    mailer = _mailer(tmp_path, Around(me="main", peers=(Peer(id="a1", name="finder"),)))
    assert await mailer.send("finder", NOTE) == "queued for a1"
    [mail] = _mails(agent_box(tmp_path / "s1", "a1"))
    assert (mail.sender, mail.to, mail.body) == ("main", "a1", NOTE)


async def test_a_stopped_agent_is_started_after_its_mail_is_there(tmp_path):
    seen = []

    async def resume(agent):
        seen.append((agent, len(_mails(agent_box(tmp_path / "s1", agent)))))

    around = Around(me="main", peers=(Peer(id="a1", state="stopped"),))
    said = await _mailer(tmp_path, around, resume=resume).send("a1", NOTE)
    assert seen == [("a1", 1)]
    assert "was resumed" in said


async def test_whom_the_user_stopped_gets_nothing(tmp_path):
    around = Around(me="main", peers=(Peer(id="a1", state="stopped_by_user"),))
    with pytest.raises(Unsent, match="The user stopped"):
        await _mailer(tmp_path, around).send("a1", NOTE)
    assert _mails(agent_box(tmp_path / "s1", "a1")) == []


async def test_the_same_id_is_sent_once(tmp_path):
    mailer = _mailer(tmp_path, Around(me="main", peers=(Peer(id="a1"),)))
    for _ in range(2):
        await mailer.send("a1", NOTE, id="tool-7")
    assert len(_mails(agent_box(tmp_path / "s1", "a1"))) == 1


async def test_a_teammate_finds_a_request_in_its_mailbox(tmp_path):
    around = Around(me="main", peers=(Peer(id="a1", name="ada", is_teammate=True),))
    asks = ShutdownRequest(request_id="r1", reason="we are done")
    await _mailer(tmp_path, around).send("ada", asks)
    assert [mail.body for mail in _mails(agent_box(tmp_path / "s1", "a1"))] == [asks]


async def test_all_get_it_and_who_does_not_is_named(tmp_path):
    around = Around(me="main", peers=(Peer(id="a1"), Peer(id="a2")))
    agent_box(tmp_path / "s1", "a2").mkdir()
    said = await _mailer(tmp_path, around).send("all", NOTE)
    assert said.startswith("queued for a1; not sent to a2: ")


async def test_nothing_and_too_much_are_not_sent(tmp_path):
    mailer = _mailer(tmp_path, Around(me="main", peers=(Peer(id="a1"),)))
    with pytest.raises(Unsent, match="write it to a file"):
        await mailer.send("a1", Note(text="x" * (MAIL_CHARS + 1)))
    with pytest.raises(Unsent, match="is empty"):
        await mailer.send("a1", Note(text=" \n"))


async def test_a_stopped_agent_that_cannot_be_started_is_told(tmp_path):
    async def resume(agent):
        raise StoreError(f"{agent} cannot be resumed: its definition is gone")

    around = Around(me="main", peers=(Peer(id="a1", state="stopped"),))
    with pytest.raises(Unsent, match="cannot be resumed"):
        await _mailer(tmp_path, around, resume=resume).send("a1", NOTE)


def _delivered(tmp_path, box, **options):
    """Return the entries and the provenance of a session that takes the mail in a box."""
    with default_store().create(directory=tmp_path) as log:
        engine = Engine(log, Settings())
        asyncio.run(Delivery(box, **options)(engine))
        return engine.view.history, watch_session(engine)()


@pytest.mark.parametrize("is_outside", [True, False])
def test_mail_to_another_session_carries_the_mark_of_its_sender(tmp_path, is_outside):
    more = {"find_session": lambda id: tmp_path / id, "is_outside": lambda: is_outside}
    mailer = _mailer(tmp_path, Around(me="main"), **more)
    sent = asyncio.run(mailer.send("session:s2", NOTE))
    assert sent == "put into the mailbox of the session s2"
    box = agent_box(tmp_path / "s2", "main")
    [mail] = _mails(box)
    assert (mail.session, mail.sender) == ("s1", "main")
    [said], is_marked = _delivered(tmp_path, box)
    assert isinstance(said, Said) and is_marked is is_outside


def test_a_mailbox_is_private(tmp_path):
    box = agent_box(tmp_path / "s2", "main")
    Mailbox(box).send(Mail(id="1", sender="ada", to="main", body=NOTE))
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (box, box.parent, box.parent.parent)]
    assert modes == [0o600, 0o700, 0o700]


@pytest.mark.parametrize("wrong", [{"body": ShutdownRequest(request_id="r")}, {"to": "worker"}])
def test_another_session_sends_only_notes_to_the_main_agent(tmp_path, wrong):
    box = agent_box(tmp_path / "s2", "main")
    mail = {"id": "1", "sender": "main", "to": "main", "session": "s1", "body": NOTE} | wrong
    Mailbox(box).send(Mail(**mail))
    [failed], _ = _delivered(tmp_path, box)
    assert isinstance(failed, Failed) and "only notes from a session" in failed.error


def test_mail_of_other_sessions_can_be_switched_off(tmp_path):
    box = agent_box(tmp_path / "s2", "main")
    for session in ("s1", ""):
        Mailbox(box).send(Mail(id="1", sender="ada", to="main", session=session, body=NOTE))
    failed, said = _delivered(tmp_path, box, takes_sessions=False)[0]
    assert isinstance(failed, Failed) and "agents.sessions_mail is off" in failed.error
    assert isinstance(said, Said)


async def test_a_session_that_is_not_there_or_is_this_one_is_told(tmp_path):
    def nobody(id):
        raise SessionNotFound(f"there is no session {id!r}")

    with pytest.raises(Unsent, match="no session 's9'"):
        await _mailer(tmp_path, Around(me="main"), find_session=nobody).send("session:s9", NOTE)
    here = _mailer(tmp_path, Around(me="main"), find_session=lambda id: tmp_path / "s1")
    with pytest.raises(Unsent, match="this session"):
        await here.send("session:s1", NOTE)


@pytest.mark.parametrize("agent", ["../x", "a/b", "a\n", ""])
def test_a_mailbox_lies_in_its_session(tmp_path, agent):
    with pytest.raises(ConfigError):
        agent_box(tmp_path, agent)


async def test_a_disk_that_says_no_is_a_message_that_was_not_sent(tmp_path):
    mailer = _mailer(tmp_path, Around(me="main", peers=(Peer(id="a1"),)))
    agent_box(tmp_path / "s1", "a1").mkdir()
    with pytest.raises(Unsent, match="not sent to a1"):
        await mailer.send("a1", NOTE)
    assert issubclass(StoreError, OSError)
