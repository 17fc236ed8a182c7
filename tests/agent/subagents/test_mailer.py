"""Messages on their way."""

import pytest

from agent.subagents.orders import not_resumed, order
from longhold.agent.subagents.ledger import Mailbox, UnreadMail
from longhold.agent.subagents.mail import Note, ShutdownRequest
from longhold.agent.subagents.mail_socket import MailSocket
from longhold.agent.subagents.mailer import MAIL_CHARS, Around, Mailer, Peer, Unsent, agent_box
from longhold.agent.subagents.tasks import TaskList
from longhold.agent.subagents.teammates import Teammates
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


async def test_a_teammate_finds_it_in_the_teams_mailbox(tmp_path):
    team = Teammates(session="s1", tasks=TaskList(tmp_path / "tasks.jsonl"))
    team.join(order("ada"))
    around = Around(me="lead", teammates=("ada",), is_lead=True)
    asks = ShutdownRequest(request_id="r1", reason="we are done")
    await _mailer(tmp_path, around, team=lambda: team).send("ada", asks)
    assert [mail.body for mail in _mails(team.box("ada"))] == [asks]


async def test_all_get_it_and_who_does_not_is_named(tmp_path):
    team = Teammates(session="s1", tasks=TaskList(tmp_path / "tasks.jsonl"))
    around = Around(me="lead", peers=(Peer(id="a1"),), teammates=("gone",))
    said = await _mailer(tmp_path, around, team=lambda: team).send("all", NOTE)
    assert said.startswith("queued for a1; not sent to gone: 'gone' is not in the team")


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


async def test_another_session_takes_it_at_its_socket(tmp_path):
    other = tmp_path / "s2"
    other.mkdir(mode=0o700)
    box = Mailbox(agent_box(other, "main"))
    socket = MailSocket(other, box.send)
    await socket.open()
    mailer = _mailer(tmp_path, Around(me="main"), find_session=lambda id: tmp_path / id)
    assert await mailer.send("session:s2", NOTE) == "accepted by the session s2"
    await socket.close()
    [mail] = _mails(agent_box(other, "main"))
    assert (mail.session, mail.sender) == ("s1", "main")


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
