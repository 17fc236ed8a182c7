"""A JSON Lines file that several processes append to under a lock, and mail built on it.

Writers decide on the current state, because they read it under the lock. The next writer removes a
killed writer's unfinished line, which was never acknowledged.
"""

import errno
import os
import random
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

import msgspec
from filelock import lock_descriptor
from msgspec import Struct

from longhold.agent.subagents.mail import Mail, Note, render, seal, unseal
from longhold.agent.subagents.names import MAIN, is_name
from longhold.core.log.entries import AnyEntry, Failed, Said
from longhold.core.log.protocol import StoredMail
from longhold.core.messages import Text, text_of
from longhold.core.settings.private_files import private_directory
from longhold.core.turn.engine import Engine
from longhold.errors import ConfigError, StoreError

LIMIT_BYTES = 64 << 20
"""A longer ledger means a runaway loop."""
LOCK_SECONDS = 10.0
"""A lock is held to write one line, so a longer wait means a suspended process."""
PAUSE_SECONDS = 0.004
CHUNK_BYTES = 4_096

T = TypeVar("T", bound=Struct)


class Head(Struct, frozen=True, kw_only=True):
    """The first line: the format, and an id that shows whether the file was replaced."""

    longhold: int = 1
    ledger: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerLine(Generic[T]):
    value: T | None
    """The decoded line, or None if it could not be decoded."""
    cursor: str
    """The position after this line. See `read_cursor`."""
    reason: str = ""


Append: TypeAlias = Callable[[Sequence[T]], None]


class SharedLedger(Generic[T]):
    """A ledger and this reader's position. `after` maps ledger ids to start offsets."""

    def __init__(
        self,
        path: Path,
        kind: type[T],
        *,
        after: Mapping[str, int] | None = None,
        limit_bytes: int = LIMIT_BYTES,
    ) -> None:
        self.path = path
        self.id = ""
        self._after = after or {}
        self._place = 0
        self._limit_bytes = limit_bytes
        self._inode = 0
        self._decoder = msgspec.json.Decoder(kind)
        self._mine = threading.RLock()

    def values(self) -> list[T]:
        return [line.value for line in self.news() if line.value is not None]

    def news(self) -> list[LedgerLine[T]]:
        with self._mine:
            try:
                descriptor = _open(self.path, os.O_RDONLY)
            except FileNotFoundError:
                return []
            try:
                self._recognise(descriptor)
                size = os.fstat(descriptor).st_size
                return self._read(os.pread(descriptor, max(0, size - self._place), self._place))
            finally:
                os.close(descriptor)

    @contextmanager
    def lock(self) -> Iterator[Append[T]]:
        """Hold the lock. Yield a function that appends all values or none."""
        with self._mine:
            try:
                descriptor = _open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
            except FileNotFoundError as error:
                raise StoreError(f"{self.path.parent} does not exist; nothing was added") from error
            try:
                _take_lock(descriptor, self.path)
                self._recognise(descriptor)
                _repair(descriptor)
                yield lambda values: self._append(descriptor, values)
            finally:
                os.close(descriptor)

    def _append(self, descriptor: int, values: Sequence[T]) -> None:
        size = os.fstat(descriptor).st_size
        lines = [] if size else [msgspec.json.encode(Head(ledger=secrets.token_hex(8)))]
        lines += [self._encode(value) for value in values]
        content = b"".join(line + b"\n" for line in lines)
        if size + len(content) > self._limit_bytes:
            raise StoreError(f"{self.path} is full ({size:,} bytes); nothing was added")
        try:
            if os.write(descriptor, content) != len(content):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(descriptor)
        except OSError as error:
            with suppress(OSError):  # because readers must not find unacknowledged lines
                os.ftruncate(descriptor, size)
            raise StoreError(
                f"{self.path}: {error.strerror or error}; nothing was added"
            ) from error

    def _encode(self, value: T) -> bytes:
        try:
            line = msgspec.json.encode(value)
            self._decoder.decode(line)
        except (msgspec.ValidationError, UnicodeEncodeError) as error:
            raise StoreError(f"{self.path.name} cannot hold that: {error}") from error
        return line

    def _recognise(self, descriptor: int) -> None:
        status = os.fstat(descriptor)
        with suppress(FileNotFoundError):
            if self.path.stat().st_ino == status.st_ino and self._inode in (0, status.st_ino):
                self._inode = status.st_ino
                return
        raise StoreError(f"{self.path} was removed or replaced meanwhile; reopen it")

    def _read(self, content: bytes) -> list[LedgerLine[T]]:
        found: list[LedgerLine[T]] = []
        for line in content[: content.rfind(b"\n") + 1].splitlines(keepends=True):
            is_first = self._place == 0
            self._place += len(line)
            if is_first:
                self.id = _head(line, self.path).ledger
            elif self._place > self._after.get(self.id, 0):
                found.append(_decode(line, f"{self.id}:{self._place}", self._decoder))
        return found


def _decode(line: bytes, cursor: str, decoder: msgspec.json.Decoder[T]) -> LedgerLine[T]:
    try:
        return LedgerLine(value=decoder.decode(line), cursor=cursor)
    except (ValueError, RecursionError) as error:
        return LedgerLine(value=None, cursor=cursor, reason=str(error))


def read_cursor(text: str) -> tuple[str, int] | None:
    ledger, _, place = text.rpartition(":")
    return (ledger, int(place)) if ledger and place.isascii() and place.isdigit() else None


def _head(line: bytes, path: Path) -> Head:
    try:
        head = msgspec.json.decode(line, type=Head)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StoreError(f"{path} has no valid first line; move it away") from error
    if head.longhold != 1:
        raise StoreError(f"{path} was written by a newer version; update to use it")
    return head


def _open(path: Path, flags: int) -> int:
    try:
        return os.open(path, flags | os.O_NOFOLLOW, 0o600)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}; it must be your own plain file") from error


def _take_lock(descriptor: int, path: Path) -> None:
    """Wait for the lock, at random intervals so that waiters do not retry in step."""
    deadline = time.monotonic() + LOCK_SECONDS
    while not lock_descriptor(descriptor, blocking=False):
        if time.monotonic() > deadline:
            raise StoreError(f"{path} is held by another process; try again later")
        time.sleep(PAUSE_SECONDS * random.uniform(0.25, 1.0))


def _repair(descriptor: int) -> None:
    """Remove a killed writer's unfinished line. The lock must be held."""
    size = end = os.fstat(descriptor).st_size
    while end:
        start = max(0, end - CHUNK_BYTES)
        newline = os.pread(descriptor, end - start, start).rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    if end != size:
        os.ftruncate(descriptor, end)


Letter: TypeAlias = LedgerLine[Mail]
"""A mail, or the reason why it cannot be read, and the cursor after it."""


def agent_box(session_directory: Path, agent: str) -> Path:
    if not is_name(agent):
        raise ConfigError(f"{agent!r} is not an agent id")
    return private_directory(session_directory / "mail") / f"{agent}.jsonl"


class Mailbox:
    def __init__(self, path: Path) -> None:
        self._ledger = SharedLedger(path, Mail)
        self._there: set[tuple[str, str, str]] = set()

    def send(self, mail: Mail) -> bool:
        """Append a mail. Return False if it is a duplicate. Raise `StoreError` on failure."""
        with self._ledger.lock() as append:
            self._there.update(map(_key, self._ledger.values()))
            if _key(mail) in self._there:
                return False
            append((seal(mail),))
            return True


def _key(mail: Mail) -> tuple[str, str, str]:
    return mail.session, mail.sender, mail.id


class UnreadMail:
    def __init__(self, path: Path, cursors: Mapping[str, int] | None = None) -> None:
        self._ledger = SharedLedger(path, Mail, after=cursors)
        self._waiting: list[Letter] = []

    def letters(self) -> list[Letter]:
        """Return unread letters, oldest first. Each remains until it is marked as delivered."""
        self._waiting += self._news()
        return list(self._waiting)

    def _news(self) -> list[Letter]:
        return [_open_letter(letter) for letter in self._ledger.news()]

    def mark_delivered(self, letter: Letter) -> None:
        """Remove the oldest letter, once its entry is in the log."""
        assert self._waiting[0] is letter, "mail is delivered in order"
        self._waiting.pop(0)


def _open_letter(letter: Letter) -> Letter:
    """Reject a mail that is not sealed, or that another session may not send."""
    try:
        mail = letter.value and unseal(letter.value)
    except ValueError as error:
        return replace(letter, value=None, reason=str(error))
    opened = replace(letter, value=mail)
    return _check_sender(opened) if mail is not None and mail.session else opened


def _check_sender(letter: Letter) -> Letter:
    """Reject a mail of another session unless it is a note to the main agent."""
    mail = letter.value
    if mail is None or (isinstance(mail.body, Note) and mail.to == MAIN and mail.session):
        return letter
    return replace(letter, value=None, reason="only notes from a session to the main agent")


class UnreadStoredMail(UnreadMail):
    def __init__(self, box: StoredMail, cursors: Mapping[str, int]) -> None:
        self._box = box
        self._cursors = dict(cursors)
        self._waiting = []

    def _news(self) -> list[Letter]:
        decoder = msgspec.json.Decoder(Mail)
        found = [_decode(body, cursor, decoder) for cursor, body in self._box.after(self._cursors)]
        for letter in found:
            ledger, place = read_cursor(letter.cursor) or ("", 0)
            self._cursors[ledger] = place
        return [_check_sender(letter) for letter in found]


MAIL_ROUND_CHARS = 64_000
"""The limit for mail per round. The rest waits, so that mail cannot flood the window."""


class Delivery:
    """A stage that delivers an agent's mail from its mailbox and from `stored`.

    `stored` is the session's mailbox in a store, for mail from other sessions.
    """

    def __init__(
        self, box: Path, *, stored: StoredMail | None = None, takes_sessions: bool = True
    ) -> None:
        self._box = box
        self._stored = stored
        self._takes_sessions = takes_sessions
        self._inboxes: tuple[UnreadMail, ...] | None = None
        self._problem = ""

    async def __call__(self, engine: Engine) -> None:
        """Deliver waiting mail. An unreadable mailbox is recorded once and retried."""
        try:
            waiting = self._waiting(engine)
        except StoreError as error:
            self._inboxes = None
            if str(error) != self._problem:
                self._problem = str(error)
                engine.record(Failed(what="mailbox", error=self._problem))
            return
        self._problem, room_chars = "", MAIL_ROUND_CHARS
        for inbox, letter in waiting:
            entry = _make_mail_entry(letter, takes_sessions=self._takes_sessions)
            size_chars = len(text_of(entry.content)) if isinstance(entry, Said) else 0
            if size_chars > room_chars < MAIL_ROUND_CHARS:
                return  # because the first mail may have any length, and further ones must fit
            engine.record(entry)
            inbox.mark_delivered(letter)
            room_chars -= size_chars

    def waiting_lines(self, engine: Engine) -> list[str]:
        try:
            mails = [letter.value for _, letter in self._waiting(engine)]
        except StoreError:
            return []
        return [
            f"mail from {mail.sender}" if mail else "mail that cannot be read" for mail in mails
        ]

    def _waiting(self, engine: Engine) -> list[tuple[UnreadMail, Letter]]:
        if self._inboxes is None:
            cursors = cursors_in(engine.view.history)
            stored = (UnreadStoredMail(self._stored, cursors),) if self._stored else ()
            self._inboxes = (UnreadMail(self._box, cursors), *stored)
        return [(inbox, letter) for inbox in self._inboxes for letter in inbox.letters()]


def _make_mail_entry(letter: Letter, *, takes_sessions: bool) -> Said | Failed:
    mail, reason = letter.value, letter.reason
    if mail is not None and mail.session and not takes_sessions:
        mail, reason = None, "it is from another session, and agents.sessions_mail is off"
    if mail is None:
        return Failed(
            what="mail", error=f"a mail could not be read: {reason}", detail=letter.cursor
        )
    return Said(
        content=(Text(text=render(mail)),),
        hidden=True,
        mail=letter.cursor,
        is_outside=bool(mail.session) and mail.is_outside,  # agents here have their own logs
    )


def cursors_in(history: Iterable[AnyEntry]) -> dict[str, int]:
    cursors: dict[str, int] = {}
    for entry in history:
        match entry:
            case Said(mail=mark) | Failed(what="mail", detail=mark):
                if found := read_cursor(mark):
                    cursors[found[0]] = max(found[1], cursors.get(found[0], 0))
    return cursors
