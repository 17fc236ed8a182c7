"""A session's door: a Unix socket through which other sessions of the user leave mail.

It lies in the session's own directory, which is private, and is open while the session runs.
One mail comes in over a connection and one answer goes out: taken, or why not. Who knocks must
be a process of the same user, as the kernel says; where the kernel does not say, no door is
opened. Only plain notes are taken, of limited size, within a limited time. What is taken is in
the session's mailbox before the answer, so it is delivered like all other mail.
"""

import asyncio
import os
import socket
import stat
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from holdfast.agent.subagents.mail import Mail, Note
from holdfast.agent.subagents.names import MAIN
from holdfast.errors import StoreError

DOOR = "mail.sock"
"""The socket's name in a session's directory."""
LINE_BYTES = 1 << 20
"""A mail of the longest body, written in JSON."""
WAIT_SECONDS = 5.0
"""For one mail and its answer; both ends are on this machine."""
AT_ONCE = 8
"""Connections that are listened to side by side; others wait."""
PATH_BYTES = 100
"""What a socket's path may have on every system; longer ones are reached by a link."""


class SocketReply(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is said back."""

    is_taken: bool
    why: str = ""


class MailSocket:
    """The listening side."""

    def __init__(self, directory: Path, take: Callable[[Mail], object]) -> None:
        self.path = directory / DOOR
        self._take = take
        self._server: asyncio.Server | None = None
        self._room = asyncio.Semaphore(AT_ONCE)

    async def open(self) -> bool:
        """Begin to listen; say whether this system can tell who knocks."""
        if not hasattr(socket, "SO_PEERCRED"):
            return False
        _clear(self.path)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with _reachable(self.path) as short:
                listener.bind(short)
            self.path.chmod(0o600)
            self._server = await asyncio.start_unix_server(
                self._attend, sock=listener, limit=LINE_BYTES
            )
        except BaseException:
            listener.close()
            raise
        return True

    async def close(self) -> None:
        """Stop listening and take the socket away."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
            self._server = None
            self.path.unlink(missing_ok=True)

    async def _attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Hear one mail and answer; whatever goes wrong with a caller stays with the caller."""
        try:
            async with self._room, asyncio.timeout(WAIT_SECONDS):
                answer = await self._heard(reader, writer)
                writer.write(msgspec.json.encode(answer) + b"\n")
                await writer.drain()
        except (TimeoutError, OSError):
            pass
        finally:
            writer.close()

    async def _heard(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> SocketReply:
        if _peer_user(writer) != os.getuid():
            return SocketReply(is_taken=False, why="this session is another user's")
        try:
            mail = msgspec.json.decode(await reader.readline(), type=Mail)
        except (ValueError, RecursionError) as error:  # also a line over the limit
            return SocketReply(is_taken=False, why=f"that is no mail: {error}")
        if not isinstance(mail.body, Note) or mail.to != MAIN or not mail.session:
            return SocketReply(is_taken=False, why="only notes from a session to the main agent")
        try:
            await asyncio.to_thread(self._take, mail)
        except StoreError as error:
            return SocketReply(is_taken=False, why=str(error))
        return SocketReply(is_taken=True)


async def hand_over(directory: Path, mail: Mail) -> None:
    """Bring a mail to the door of another session; raises `StoreError` if it was not taken."""
    path = directory / DOOR
    _check_ours(path)
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            answer = await _spoken(path, mail)
    except (TimeoutError, OSError, msgspec.DecodeError) as error:
        raise StoreError(f"the session does not answer ({error or 'timeout'})") from error
    if not answer.is_taken:
        raise StoreError(f"the session did not take it: {answer.why}")


async def _spoken(path: Path, mail: Mail) -> SocketReply:
    with _reachable(path) as short:
        reader, writer = await asyncio.open_unix_connection(short, limit=LINE_BYTES)
    try:
        if _peer_user(writer) != os.getuid():
            return SocketReply(is_taken=False, why="it is another user's")
        writer.write(msgspec.json.encode(mail) + b"\n")
        await writer.drain()
        return msgspec.json.decode(await reader.readline(), type=SocketReply)
    finally:
        writer.close()


def _peer_user(writer: asyncio.StreamWriter) -> int | None:
    """Ask the kernel whose process is at the other end."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    end = writer.get_extra_info("socket")
    size = struct.calcsize("3i")
    _pid, user, _group = struct.unpack(
        "3i", end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    )
    return int(user)


def _check_ours(path: Path) -> None:
    """Make sure that the socket and the directory around it are the user's alone."""
    try:
        door, around = path.lstat(), path.parent.stat()
    except OSError as error:
        raise StoreError("the session is not running, or takes no mail") from error
    if not stat.S_ISSOCK(door.st_mode) or {door.st_uid, around.st_uid} != {os.getuid()}:
        raise StoreError(f"{path} is no socket of yours")
    if around.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise StoreError(f"{path.parent} can be written by others; make it private")


def _clear(path: Path) -> None:
    """Take away the socket of a process that died; the log's lock says that we are the only one."""
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise StoreError(f"{path} is in the way and no socket; move it away")
        path.unlink()


@contextmanager
def _reachable(path: Path) -> Iterator[str]:
    """Give a path to a socket that is short enough for the system."""
    if len(os.fsencode(path)) <= PATH_BYTES:
        yield str(path)
        return
    with tempfile.TemporaryDirectory(prefix="hf-") as place:
        link = Path(place) / "d"
        link.symlink_to(path.parent.resolve(), target_is_directory=True)
        yield str(link / path.name)
