"""A session's mail socket, which receives mail from other sessions of the same user.

The kernel must confirm the peer's user; without that support no socket is opened. A note is stored
in the mailbox before the reply.
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

from longhold.agent.subagents.mail import Mail, explain_unsendable
from longhold.errors import StoreError

SOCKET_NAME = "mail.sock"
LINE_BYTES = 1 << 20
"""Fits a mail with the longest body as JSON."""
WAIT_SECONDS = 5.0
AT_ONCE = 8
PATH_BYTES = 100
"""Allowed on every system; longer socket paths go through a symlink."""


class SocketReply(Struct, frozen=True, kw_only=True, omit_defaults=True):
    is_taken: bool
    why: str = ""


class MailSocket:
    def __init__(self, directory: Path, take: Callable[[Mail], object]) -> None:
        self.path = directory / SOCKET_NAME
        self._take = take
        self._server: asyncio.Server | None = None
        self._room = asyncio.Semaphore(AT_ONCE)

    async def open(self) -> bool:
        """Start listening; return False if the system cannot identify peers."""
        if not hasattr(socket, "SO_PEERCRED"):
            return False
        _clear(self.path)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with _shorten_path(self.path) as short:
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
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
            self._server = None
            with suppress(OSError):  # the next process clears a leftover socket
                self.path.unlink()

    async def _attend(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection; its errors affect only the peer."""
        try:
            async with self._room, asyncio.timeout(WAIT_SECONDS):
                reply = await self._receive(reader, writer)
                writer.write(msgspec.json.encode(reply) + b"\n")
                await writer.drain()
        except (TimeoutError, OSError):
            pass
        finally:
            writer.close()

    async def _receive(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> SocketReply:
        if _peer_user(writer) != os.getuid():
            return SocketReply(is_taken=False, why="this session belongs to another user")
        try:
            mail = msgspec.json.decode(await reader.readline(), type=Mail)
        except (ValueError, RecursionError) as error:  # also a line over the limit
            return SocketReply(is_taken=False, why=f"that is not a mail: {error}")
        if why := explain_unsendable(mail):
            return SocketReply(is_taken=False, why=why)
        try:
            await asyncio.to_thread(self._take, mail)
        except StoreError as error:
            return SocketReply(is_taken=False, why=str(error))
        return SocketReply(is_taken=True)


async def hand_over(directory: Path, mail: Mail) -> None:
    """Send a mail to another session; raise `StoreError` if it was refused."""
    path = directory / SOCKET_NAME
    _check_ours(path)
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            reply = await _exchange(path, mail)
    except (TimeoutError, OSError, msgspec.DecodeError) as error:
        raise StoreError(f"the session does not answer ({error or 'timeout'})") from error
    if not reply.is_taken:
        raise StoreError(f"the session did not take it: {reply.why}")


async def _exchange(path: Path, mail: Mail) -> SocketReply:
    with _shorten_path(path) as short:
        reader, writer = await asyncio.open_unix_connection(short, limit=LINE_BYTES)
    try:
        if _peer_user(writer) != os.getuid():
            return SocketReply(is_taken=False, why="it belongs to another user")
        writer.write(msgspec.json.encode(mail) + b"\n")
        await writer.drain()
        return msgspec.json.decode(await reader.readline(), type=SocketReply)
    finally:
        writer.close()


def _peer_user(writer: asyncio.StreamWriter) -> int | None:
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    end = writer.get_extra_info("socket")
    size = struct.calcsize("3i")
    _pid, user, _group = struct.unpack(
        "3i", end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    )
    return int(user)


def _check_ours(path: Path) -> None:
    try:
        found, parent = path.lstat(), path.parent.stat()
    except OSError as error:
        raise StoreError("the session is not running or accepts no mail") from error
    if not stat.S_ISSOCK(found.st_mode) or {found.st_uid, parent.st_uid} != {os.getuid()}:
        raise StoreError(f"{path} is not a socket of yours")
    if parent.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise StoreError(f"{path.parent} can be written by others; make it private")


def _clear(path: Path) -> None:
    """Remove a dead process's socket; the log's lock guarantees that no other process runs."""
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise StoreError(f"{path} is not a socket; move it away")
        path.unlink()


@contextmanager
def _shorten_path(path: Path) -> Iterator[str]:
    if len(os.fsencode(path)) <= PATH_BYTES:
        yield str(path)
        return
    with tempfile.TemporaryDirectory(prefix="lh-") as place:
        link = Path(place) / "d"
        link.symlink_to(path.parent.resolve(), target_is_directory=True)
        yield str(link / path.name)
