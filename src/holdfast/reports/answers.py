"""The answers of a history, each once.

Entries come in; out come the answers that tell their usage, by the place of their first piece.
An answer may come in pieces, and a file may hold its whole beginning twice, as one does that
was copied when a session went on from an earlier one: pieces of one response are one answer,
wherever they stand, and its last usage counts. What cost what is told by `bill` and `calls`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from holdfast.log.entries import AnyEntry, Replied
from holdfast.messages import Content, Usage

MAIN = "main"
"""What the conversation itself is called among those who ask."""


@dataclass(slots=True, kw_only=True)
class UniqueAnswer:
    """One answer, put together from its pieces."""

    first: Replied
    model: str
    content: Content
    usage: Usage
    stop_reason: str

    def add(self, piece: Replied) -> None:
        """Take in a further piece."""
        self.model = self.model or piece.model
        self.content += piece.content
        self.usage = piece.usage or self.usage
        self.stop_reason = piece.stop_reason or self.stop_reason

    @property
    def is_told(self) -> bool:
        """Say whether its usage says anything."""
        return self.usage.total_tokens > 0


def answers_of(history: Sequence[AnyEntry]) -> dict[int, UniqueAnswer]:
    """Put every answer that tells its usage together; by the place of its first piece."""
    found: dict[int, UniqueAnswer] = {}
    known: dict[str, UniqueAnswer] = {}
    for at, entry in enumerate(history):
        if not isinstance(entry, Replied):
            continue
        if entry.response_id in known:
            known[entry.response_id].add(entry)
            continue
        found[at] = UniqueAnswer(
            first=entry,
            model=entry.model,
            content=entry.content,
            usage=entry.usage or Usage(),
            stop_reason=entry.stop_reason,
        )
        if entry.response_id:
            known[entry.response_id] = found[at]
    return {at: answer for at, answer in found.items() if answer.is_told}


def day_of(at: float) -> date | None:
    """Say on which day something was, for its prices; None where the log does not say when."""
    return datetime.fromtimestamp(at, UTC).date() if at else None
