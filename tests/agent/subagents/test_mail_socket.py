"""Mail between sessions of one user, through a socket."""

import asyncio
import os
import socket
import stat

import msgspec
import pytest

from longhold.agent.subagents import mail_socket as doors
from longhold.agent.subagents.mail import Mail, Note, ShutdownRequest
from longhold.agent.subagents.mail_socket import SOCKET_NAME, MailSocket, hand_over
from longhold.errors import StoreError

pytestmark = pytest.mark.skipif(
    not hasattr(socket, "SO_PEERCRED"), reason="the kernel does not say who knocks"
)


def _mail(text="hi", **more):
    fields = {"id": "1", "sender": "main", "to": "main", "session": "s1", "body": Note(text=text)}
    return Mail(**(fields | more))


@pytest.fixture
def place(tmp_path):
    """A session's directory."""
    (tmp_path / "s").mkdir(mode=0o700)
    return tmp_path / "s"


@pytest.fixture
async def taken(place):
    """What an open socket took."""
    got = []
    listening = MailSocket(place, got.append)
    assert await listening.open()
    yield got
    await listening.close()
    assert not (place / SOCKET_NAME).exists()


async def test_a_note_is_taken_before_it_counts_as_sent(place, taken):
    await hand_over(place, _mail())
    assert taken == [_mail()]


async def test_the_socket_is_private(place, taken):
    assert stat.S_IMODE((place / SOCKET_NAME).stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "wrong",
    [
        {"body": ShutdownRequest(request_id="r")},
        {"to": "worker"},
        {"session": ""},
    ],
)
async def test_only_notes_from_a_session_to_the_main_agent_are_taken(place, taken, wrong):
    with pytest.raises(StoreError, match="did not take it"):
        await hand_over(place, _mail(**wrong))
    assert taken == []


async def _said(place, content):
    reader, writer = await asyncio.open_unix_connection(str(place / SOCKET_NAME))
    writer.write(content)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.parametrize(
    "content",
    [
        b"nonsense\n",
        b"",
        b"\xff\n",
        b"[" * 9_000 + b"\n",
        b'{"id":"1","sender":"user","to":"main","session":"s1","body":{"type":"note","text":"ok"}}\n',
    ],
)
async def test_what_is_no_mail_is_answered_and_forgotten(place, taken, content):
    answer = msgspec.json.decode(await _said(place, content))
    assert answer["is_taken"] is False
    await hand_over(place, _mail())
    assert len(taken) == 1


async def test_a_mail_beyond_the_limit_is_not_read(place, taken):
    try:
        answer = await _said(place, b"x" * (2 * doors.LINE_BYTES))
        assert not answer or msgspec.json.decode(answer)["is_taken"] is False
    except ConnectionError:
        pass  # hung up on, which is an answer as well
    await hand_over(place, _mail())
    assert len(taken) == 1


async def test_who_knocks_and_says_nothing_is_not_waited_for(place, taken, monkeypatch):
    monkeypatch.setattr(doors, "WAIT_SECONDS", 0.2)
    reader, writer = await asyncio.open_unix_connection(str(place / SOCKET_NAME))
    await hand_over(place, _mail())
    assert await asyncio.wait_for(reader.read(), 2) == b""
    writer.close()
    assert len(taken) == 1


async def test_another_users_process_is_turned_away(place, taken, monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 12_345)
    answer = await _said(place, b"")
    assert b"another user" in answer
    assert taken == []


async def test_a_mail_that_could_not_be_kept_is_not_taken(place):
    def full(_mail):
        raise StoreError("the mailbox is full")

    listening = MailSocket(place, full)
    await listening.open()
    with pytest.raises(StoreError, match="the mailbox is full"):
        await hand_over(place, _mail())
    await listening.close()


async def test_a_session_that_does_not_run_takes_nothing(place):
    with pytest.raises(StoreError, match="not running"):
        await hand_over(place, _mail())
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(place / SOCKET_NAME))
    left.close()
    with pytest.raises(StoreError, match="does not answer"):
        await hand_over(place, _mail())
    listening = MailSocket(place, lambda mail: None)
    await listening.open()  # takes its place
    await hand_over(place, _mail())
    await listening.close()


async def test_a_file_in_the_place_of_the_socket_is_neither_used_nor_removed(place):
    (place / SOCKET_NAME).write_text("precious")
    with pytest.raises(StoreError, match="not a socket of yours"):
        await hand_over(place, _mail())
    with pytest.raises(StoreError, match="is not a socket"):
        await MailSocket(place, lambda mail: None).open()
    assert (place / SOCKET_NAME).read_text() == "precious"


async def test_a_socket_that_cannot_be_removed_lets_a_session_end(place):
    listening = MailSocket(place, lambda mail: None)
    await listening.open()
    (place / SOCKET_NAME).unlink()
    (place / SOCKET_NAME).mkdir()
    await listening.close()


async def test_a_directory_others_can_write_is_not_trusted(place, taken):
    place.chmod(0o777)
    with pytest.raises(StoreError, match="make it private"):
        await hand_over(place, _mail())
    place.chmod(0o700)


async def test_a_path_too_long_for_a_socket_works_all_the_same(tmp_path):
    deep = tmp_path / ("x" * 120) / ("y" * 60)
    deep.mkdir(parents=True, mode=0o700)
    deep.chmod(0o700)
    got = []
    listening = MailSocket(deep, got.append)
    await listening.open()
    await hand_over(deep, _mail())
    await listening.close()
    assert got == [_mail()]
