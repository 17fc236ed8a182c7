"""An agent's mailbox: a ledger others append to, and a cursor that goes along with delivery.

A send succeeds once the mail is on the disk, and the same mail sent again changes nothing, so
a sender that was killed may simply repeat itself. A reader keeps its cursor in the very entry
that brings a mail into its log (see `delivery`): killed at whatever point, it finds each mail
delivered or not, never lost or doubled. Mail is kept in the order it was sent.
"""

from dataclasses import dataclass
from pathlib import Path

from holdfast.agent.subagents.ledger import LedgerLine, SharedLedger, Spoilt
from holdfast.agent.subagents.mail import Mail


class Mailbox:
    """Where mail for one agent is put."""

    def __init__(self, path: Path) -> None:
        self._ledger = SharedLedger(path, Mail)
        self._there: set[tuple[str, str, str]] = set()

    def send(self, mail: Mail) -> bool:
        """Put a mail in; say whether it was not there already. Raises `StoreError` if it cannot."""
        with self._ledger.held() as append:
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
    """A mail as it was found, or the reason why it cannot be read."""

    mail: Mail | None
    cursor: str
    """Where the reader is once this one has been delivered."""
    reason: str = ""


class UnreadMail:
    """What one agent has not read yet."""

    def __init__(self, path: Path, cursors: dict[str, int] | None = None) -> None:
        self._ledger = SharedLedger(path, Mail)
        self._cursors = cursors or {}
        self._waiting: list[Letter] = []

    def unread(self) -> list[Letter]:
        """Give what is waiting, oldest first; it stays until it is `delivered`."""
        if not self._ledger.place:
            self._ledger.go_to(self._cursors.get(self._ledger.identify(), 0))
        for line in self._ledger.news():
            cursor = f"{self._ledger.id}:{line.end}"
            match line:
                case LedgerLine(value=mail):
                    self._waiting.append(Letter(mail=mail, cursor=cursor))
                case Spoilt(reason=reason):
                    self._waiting.append(Letter(mail=None, cursor=cursor, reason=reason))
        return list(self._waiting)

    def delivered(self, letter: Letter) -> None:
        """Go past the oldest letter, now that its entry is written."""
        assert self._waiting[0] is letter, "mail is delivered in order"
        self._waiting.pop(0)


def read_cursor(text: str) -> tuple[str, int] | None:
    """Read a cursor as an entry holds it."""
    ledger, _, place = text.rpartition(":")
    return (ledger, int(place)) if ledger and place.isascii() and place.isdigit() else None
