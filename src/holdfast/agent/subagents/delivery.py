"""A stage that brings mail into the conversation before every call.

Waiting mail becomes hidden messages, oldest first, each with its cursor in the same log entry. So
the log says how far the mail was read, and a resumed session continues exactly there. The amount
per round is bounded; the rest waits. A mail that cannot be read becomes a `Failed` entry.
"""

from collections.abc import Iterable
from pathlib import Path

from holdfast.agent.subagents.ledger import read_cursor
from holdfast.agent.subagents.mail import render
from holdfast.agent.subagents.mailbox import Letter, UnreadMail, UnreadStoredMail
from holdfast.errors import StoreError
from holdfast.log.entries import AnyEntry, Failed, Said
from holdfast.log.protocol import StoredMail
from holdfast.messages import Text, text_of
from holdfast.turn.engine import Engine


class _BoxError(Exception):
    """A mailbox could not be read; unlike an error of the log, this stops nothing."""


class Delivery:
    """The stage of one agent, over its own mailbox and that of its team."""

    def __init__(self, *boxes: Path, stored: StoredMail | None = None) -> None:
        self._boxes = boxes
        self._stored = stored
        """The session's mailbox in a store, for the agent that other sessions write to."""
        self._inboxes: tuple[UnreadMail, ...] | None = None
        self._problem = ""

    async def __call__(self, engine: Engine) -> None:
        """Deliver what waits; an unreadable mailbox is recorded once and retried."""
        try:
            self._deliver(engine)
            self._problem = ""
        except _BoxError as error:
            self._inboxes = None
            if str(error) != self._problem:
                self._problem = str(error)
                engine.record(Failed(what="mailbox", error=self._problem))

    def also(self, box: Path) -> None:
        """Add a mailbox, such as that of a team created since."""
        if box not in self._boxes:
            self._boxes = (*self._boxes, box)
            self._inboxes = None

    def is_waiting(self, engine: Engine) -> bool:
        """Return whether mail waits; an unreadable mailbox counts as empty."""
        return bool(self.waiting_lines(engine))

    def waiting_lines(self, engine: Engine) -> list[str]:
        """Say in a line each which mail waits; an unreadable mailbox counts as empty."""
        try:
            return [_line(letter) for _, letter in self._waiting(engine)]
        except _BoxError:
            return []

    def _deliver(self, engine: Engine) -> None:
        room_chars = engine.settings.agents.mail_round_chars
        for inbox, letter in self._waiting(engine):
            entry = delivered_as(letter)
            size_chars = len(text_of(entry.content)) if isinstance(entry, Said) else 0
            if size_chars > room_chars < engine.settings.agents.mail_round_chars:
                return  # the first mail may be of any length, further ones must fit
            engine.record(entry)
            inbox.delivered(letter)
            room_chars -= size_chars

    def _waiting(self, engine: Engine) -> list[tuple[UnreadMail, Letter]]:
        if self._inboxes is None:
            cursors = cursors_in(engine.view.history)
            stored = (UnreadStoredMail(self._stored, cursors),) if self._stored else ()
            self._inboxes = (*(UnreadMail(box, cursors) for box in self._boxes), *stored)
        try:
            return [(inbox, letter) for inbox in self._inboxes for letter in inbox.letters()]
        except StoreError as error:
            raise _BoxError(str(error)) from error


def delivered_as(letter: Letter) -> Said | Failed:
    """Make the entry that holds a mail and its cursor."""
    if letter.value is None:
        return Failed(
            what="mail", error=f"a mail could not be read: {letter.reason}", detail=letter.cursor
        )
    return Said(content=(Text(text=render(letter.value)),), hidden=True, mail=letter.cursor)


def _line(letter: Letter) -> str:
    mail = letter.value
    return "mail that cannot be read" if mail is None else f"mail from {mail.sender}"


def cursors_in(history: Iterable[AnyEntry]) -> dict[str, int]:
    """Return how far each mailbox was read, according to a log."""
    cursors: dict[str, int] = {}
    for entry in history:
        match entry:
            case Said(mail=mark) | Failed(what="mail", detail=mark):
                if found := read_cursor(mark):
                    cursors[found[0]] = max(found[1], cursors.get(found[0], 0))
    return cursors
