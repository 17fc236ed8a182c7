"""Brings mail into the conversation: a stage that runs before every call.

What waits in the mailboxes comes in; hidden messages go into the log, oldest first, each with
the cursor of its mail in the same entry. So the log itself says how far the mail was read, and
a session that is killed and resumed goes on exactly there. How much one round is told is
bounded; the rest waits for the next. Mail nobody can read leaves a `Failed`.
"""

from collections.abc import Iterable
from pathlib import Path

from holdfast.agent.subagents.mail import render
from holdfast.agent.subagents.mailbox import Letter, UnreadMail, read_cursor
from holdfast.errors import StoreError
from holdfast.log.entries import AnyEntry, Failed, Said
from holdfast.messages import Text
from holdfast.turn.engine import Engine


class _BoxError(Exception):
    """A mailbox could not be read; unlike the log's own errors this stops nothing."""


class Delivery:
    """The stage of one agent, over its mailboxes: the session's own, and its team's."""

    def __init__(self, *boxes: Path) -> None:
        self._boxes = boxes
        self._inboxes: tuple[UnreadMail, ...] | None = None
        self._trouble = ""

    async def __call__(self, engine: Engine) -> None:
        """Deliver what waits; a mailbox that cannot be read is told once and tried again."""
        try:
            self._deliver(engine)
            self._trouble = ""
        except _BoxError as error:
            self._inboxes = None
            if str(error) != self._trouble:
                self._trouble = str(error)
                engine.record(Failed(what="mailbox", error=self._trouble))

    def also(self, box: Path) -> None:
        """Bring in the mail of a further mailbox, such as a team's that was founded since."""
        if box not in self._boxes:
            self._boxes = (*self._boxes, box)
            self._inboxes = None

    def is_waiting(self, engine: Engine) -> bool:
        """Say whether something waits; a mailbox that cannot be read has nothing."""
        try:
            return bool(self._waiting(engine))
        except _BoxError:
            return False

    def _deliver(self, engine: Engine) -> None:
        room_chars = engine.settings.agents.mail_round_chars
        for inbox, letter in self._waiting(engine):
            entry = delivered_as(letter)
            size_chars = _chars(entry)
            if size_chars > room_chars < engine.settings.agents.mail_round_chars:
                return  # a single mail may be as long as it likes; a second one has to fit
            engine.record(entry)
            inbox.delivered(letter)
            room_chars -= size_chars

    def _waiting(self, engine: Engine) -> list[tuple[UnreadMail, Letter]]:
        if self._inboxes is None:
            cursors = cursors_in(engine.view.history)
            self._inboxes = tuple(UnreadMail(box, cursors) for box in self._boxes)
        try:
            return [(inbox, letter) for inbox in self._inboxes for letter in inbox.unread()]
        except StoreError as error:
            raise _BoxError(str(error)) from error


def delivered_as(letter: Letter) -> Said | Failed:
    """Make the one entry that brings a mail and says that it was brought."""
    if letter.mail is None:
        return Failed(
            what="mail", error=f"a mail could not be read: {letter.reason}", detail=letter.cursor
        )
    return Said(content=(Text(text=render(letter.mail)),), hidden=True, mail=letter.cursor)


def cursors_in(history: Iterable[AnyEntry]) -> dict[str, int]:
    """Find in a log how far each mailbox was read."""
    cursors: dict[str, int] = {}
    for entry in history:
        match entry:
            case Said(mail=str(mark)) if mark:
                found = read_cursor(mark)
            case Failed(what="mail", detail=str(mark)):
                found = read_cursor(mark)
            case _:
                continue
        if found is not None:
            cursors[found[0]] = max(found[1], cursors.get(found[0], 0))
    return cursors


def _chars(entry: Said | Failed) -> int:
    match entry:
        case Said(content=(Text(text=text),)):
            return len(text)
        case _:
            return 0
