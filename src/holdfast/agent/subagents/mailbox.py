"""An agent's mailbox: a ledger that others append to, and a reader's cursor.

A send succeeds once the mail is on disk, and sending the same mail again changes nothing, so a
killed sender may simply repeat itself. A reader stores its cursor in the same log entry that
contains the mail (see `delivery`), so a mail is neither lost nor delivered twice, whenever the
reader is killed. Mail is kept in the order it was sent.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from holdfast.agent.subagents.ledger import LedgerLine, SharedLedger
from holdfast.agent.subagents.mail import Mail

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
        self._waiting += self._ledger.news()
        return list(self._waiting)

    def delivered(self, letter: Letter) -> None:
        """Remove the oldest letter, after its entry was written."""
        assert self._waiting[0] is letter, "mail is delivered in order"
        self._waiting.pop(0)
