"""An agent's mailbox: a ledger that others append to, and a reader's cursor.

A send succeeds once the mail is on disk, and sending the same mail again changes nothing, so a
killed sender may simply repeat itself. A reader stores its cursor in the same log entry that
contains the mail (see `delivery`), so a mail is neither lost nor delivered twice, whenever the
reader is killed. Mail is kept in the order it was sent.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import msgspec

from holdfast.agent.subagents.ledger import LedgerLine, SharedLedger, read_cursor
from holdfast.agent.subagents.mail import Mail, not_for_a_session
from holdfast.log.protocol import StoredMail

Letter: TypeAlias = LedgerLine[Mail]
"""A mail with the cursor of its reader once it is delivered, or why it cannot be read."""


class Mailbox:
    """The sending side of one agent's mailbox."""

    def __init__(self, path: Path) -> None:
        self._ledger = SharedLedger(path, Mail)
        self._there: set[tuple[str, str, str]] = set()

    def send(self, mail: Mail) -> bool:
        """Append a mail; return False if it was there already. Raises `StoreError` on failure."""
        with self._ledger.locked() as append:
            self._there.update(map(_key, self._ledger.values()))
            if _key(mail) in self._there:
                return False
            append((mail,))
            return True


def _key(mail: Mail) -> tuple[str, str, str]:
    return mail.session, mail.sender, mail.id


class UnreadMail:
    """The reading side of one agent's mailbox."""

    def __init__(self, path: Path, cursors: Mapping[str, int] | None = None) -> None:
        self._ledger = SharedLedger(path, Mail, after=cursors)
        self._waiting: list[Letter] = []

    def letters(self) -> list[Letter]:
        """Return what is waiting, oldest first; it stays until it is `delivered`."""
        self._waiting += self._news()
        return list(self._waiting)

    def _news(self) -> list[Letter]:
        return self._ledger.news()

    def delivered(self, letter: Letter) -> None:
        """Remove the oldest letter, after its entry was written."""
        assert self._waiting[0] is letter, "mail is delivered in order"
        self._waiting.pop(0)


class UnreadStoredMail(UnreadMail):
    """The reading side of a session's mailbox in a store."""

    def __init__(self, box: StoredMail, cursors: Mapping[str, int]) -> None:
        self._box = box
        self._cursors = dict(cursors)
        self._waiting = []

    def _news(self) -> list[Letter]:
        found = [_letter(cursor, body) for cursor, body in self._box.after(self._cursors)]
        for letter in found:
            ledger, place = read_cursor(letter.cursor) or ("", 0)
            self._cursors[ledger] = place
        return found


def _letter(cursor: str, body: bytes) -> Letter:
    """Read a mail; it is data, and only notes may come from another session."""
    try:
        mail = msgspec.json.decode(body, type=Mail)
    except (ValueError, RecursionError) as error:
        return LedgerLine(value=None, cursor=cursor, reason=str(error))
    if why := not_for_a_session(mail):
        return LedgerLine(value=None, cursor=cursor, reason=why)
    return LedgerLine(value=mail, cursor=cursor)
