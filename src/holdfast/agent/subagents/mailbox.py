"""An agent's mailbox: a ledger that others append to, and a reader's cursor.

A send succeeds once the mail is on disk, and sending the same mail again changes nothing, so a
killed sender may simply repeat itself. A reader stores its cursor in the same log entry that
contains the mail (see `delivery`), so a mail is neither lost nor delivered twice, whenever the
reader is killed. Mail is kept in the order it was sent.
"""

from dataclasses import dataclass
from pathlib import Path

from holdfast.agent.subagents.ledger import LedgerLine, SharedLedger, Unreadable
from holdfast.agent.subagents.mail import Mail


class Mailbox:
    """The sending side of one agent's mailbox."""

    def __init__(self, path: Path) -> None:
        self._ledger = SharedLedger(path, Mail)
        self._there: set[tuple[str, str, str]] = set()

    def send(self, mail: Mail) -> bool:
        """Append a mail; return False if it was there already. Raises `StoreError` on failure."""
        with self._ledger.locked() as append:
            self._there.update(
                _key(line.value) for line in self._ledger.news() if isinstance(line, LedgerLine)
            )
            if _key(mail) in self._there:
                return False
            append((mail,))
            return True


def _key(mail: Mail) -> tuple[str, str, str]:
    return mail.session, mail.sender, mail.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A mail from a mailbox, or the reason why it cannot be read."""

    mail: Mail | None
    cursor: str
    """The reader's cursor once this one is delivered."""
    reason: str = ""


class UnreadMail:
    """The reading side of one agent's mailbox."""

    def __init__(self, path: Path, cursors: dict[str, int] | None = None) -> None:
        self._ledger = SharedLedger(path, Mail)
        self._cursors = cursors or {}
        self._waiting: list[Letter] = []

    def letters(self) -> list[Letter]:
        """Return what is waiting, oldest first; it stays until it is `delivered`."""
        if not self._ledger.place:
            self._ledger.go_to(self._cursors.get(self._ledger.identify(), 0))
        for line in self._ledger.news():
            cursor = f"{self._ledger.id}:{line.end}"
            match line:
                case LedgerLine(value=mail):
                    self._waiting.append(Letter(mail=mail, cursor=cursor))
                case Unreadable(reason=reason):
                    self._waiting.append(Letter(mail=None, cursor=cursor, reason=reason))
        return list(self._waiting)

    def delivered(self, letter: Letter) -> None:
        """Remove the oldest letter, after its entry was written."""
        assert self._waiting[0] is letter, "mail is delivered in order"
        self._waiting.pop(0)


def read_cursor(text: str) -> tuple[str, int] | None:
    ledger, _, place = text.rpartition(":")
    return (ledger, int(place)) if ledger and place.isascii() and place.isdigit() else None
