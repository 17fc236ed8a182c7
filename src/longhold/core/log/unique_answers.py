"""The answers of a history, each counted once, with their usage.

An answer may come in parts, and an imported log may repeat its beginning after a session was
resumed as a copy. Entries with the same `response_id` are one answer unless a request is between
them, because servers repeat ids. The last usage counts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from longhold.core.log.cursor import clamp_time
from longhold.core.log.entries import AnyEntry, Asked, Forked, Replied
from longhold.core.messages import Content, Usage
from longhold.core.messages.measure import Measure

MAIN = "main"


@dataclass(slots=True, kw_only=True)
class UniqueAnswer:
    first: Replied
    model: str
    content: Content
    usage: Usage
    stop_reason: str
    measure: Measure

    @property
    def n(self) -> int:
        return self.first.n

    @property
    def response_id(self) -> str:
        return self.first.response_id

    @property
    def at(self) -> float:
        return self.first.at

    def add(self, piece: Replied) -> None:
        self.model = self.model or piece.model
        self.content += piece.content
        self.usage = piece.usage or self.usage
        self.stop_reason = piece.stop_reason or self.stop_reason
        self.measure = self.measure + piece.measure


def all_answers(history: Sequence[AnyEntry]) -> dict[int, UniqueAnswer]:
    """Return every answer by the index of its first part."""
    found: dict[int, UniqueAnswer] = {}
    known: dict[str, UniqueAnswer] = {}
    for at, entry in enumerate(history):
        if isinstance(entry, Asked):
            known.clear()
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
            measure=entry.measure,
        )
        if entry.response_id:
            known[entry.response_id] = found[at]
    return found


def answers_of(history: Sequence[AnyEntry]) -> dict[int, UniqueAnswer]:
    return {at: answer for at, answer in all_answers(history).items() if answer.usage.total_tokens}


def paid_calls(entries: Iterable[AnyEntry]) -> list[UniqueAnswer | Forked]:
    history = list(entries)
    forks = (entry for entry in history if isinstance(entry, Forked))
    return [*answers_of(history).values(), *forks]


def usage_of(entries: Iterable[AnyEntry]) -> Usage | None:
    calls = paid_calls(entries)
    return sum((call.usage for call in calls), Usage()) if calls else None


def day_of(at: float) -> date | None:
    at = clamp_time(at)
    return datetime.fromtimestamp(at, UTC).date() if at else None
