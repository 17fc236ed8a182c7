"""Count each answer of a history once, sum the spending by purpose, and check budgets.

An answer may be logged in parts, and an imported log may repeat messages of an earlier session.
Entries with the same `response_id` are one answer unless a request is between them, because some
servers repeat ids. The last reported usage counts.

A session's spending is in its log. A day's spending is in a ledger that all sessions share. Once a
limit is reached, a run ends before its next call.
"""

import errno
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Protocol, Self

import msgspec

from longhold.core.log.cursor import LogCursor, clamp_time
from longhold.core.log.entries import AnyEntry, Asked, Failed, Forked, Replied, Withheld
from longhold.core.messages import Content, Usage
from longhold.core.messages.measure import Measure
from longhold.core.messages.text import dollars, exact_dollars
from longhold.core.messages.usage import Tally
from longhold.core.models.prices import price_call
from longhold.core.settings import BudgetSettings, home
from longhold.core.settings.private_files import PRIVATE_FILE, private_directory
from longhold.errors import BudgetSpent, StoreError

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
    """Return every answer, keyed by the index of its first part."""
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


def price(call: UniqueAnswer | Forked) -> Tally:
    return price_call(call.model, call.usage, day_of(call.at))


def make_failure(what: str, error: BaseException, said: str = "") -> Failed | Withheld:
    """Make the entry for work that was not done. Reaching a spending limit is not a failure."""
    if isinstance(error, BudgetSpent):
        return Withheld(what=what, why=str(error))
    return Failed(what=what, error=said or str(error) or type(error).__name__)


def sum_spending(entries: Iterable[AnyEntry]) -> Tally:
    return sum(map(price, paid_calls(entries)), Tally())


def read_ledger(lines: bytes) -> Tally:
    total = Tally()
    for line in lines.split(b"\n"):
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            total = total + msgspec.json.decode(line, type=Tally)
    return total


class DayLedger(Protocol):
    """Spending per day, shared by all sessions."""

    def add(self, spent: Tally) -> None: ...
    def today(self) -> Tally: ...


@dataclass(frozen=True, slots=True)
class FileLedger:
    directory: Path = field(default_factory=lambda: home() / "spent")
    clock: Callable[[], float] = time.time

    @property
    def file(self) -> Path:
        return self._file_of(0)

    def _file_of(self, days_ago: int) -> Path:
        day = time.localtime(self.clock() - days_ago * 86_400)
        return self.directory / f"{time.strftime('%Y-%m-%d', day)}.jsonl"

    def add(self, spent: Tally) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        try:
            descriptor = os.open(self.file, flags, PRIVATE_FILE)
        except FileNotFoundError:
            private_directory(self.directory)
            descriptor = os.open(self.file, flags, PRIVATE_FILE)
        try:
            # The newline comes first, so that a line torn by a crash damages only itself.
            line = b"\n" + msgspec.json.encode(spent.to_json())
            if os.write(descriptor, line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(descriptor)

    def today(self) -> Tally:
        return self._read(self.file)

    def last_days(self, days: int) -> Tally:
        return sum((self._read(self._file_of(ago)) for ago in range(days)), Tally())

    def _read(self, file: Path) -> Tally:
        try:
            return read_ledger(file.read_bytes())
        except OSError:
            return Tally()


@dataclass(slots=True)
class Budget:
    limits: BudgetSettings
    session: Tally = field(default_factory=Tally)
    ledger: DayLedger = field(default_factory=FileLedger)
    is_simulated: Callable[[], bool] = lambda: False
    """Whether calls are simulated. Such calls count only toward the session's limits."""
    problem: str = ""
    _unwritten: Tally = field(default_factory=Tally)
    """Spending that is not yet in the day's ledger. Limits include it already."""

    def pay(self, model: str, usage: Usage) -> Tally:
        """Add the cost of a call to the session and, if possible, to the day's ledger."""
        spent = price_call(model, usage)
        self.session = self.session + spent
        if self.is_simulated():
            return spent
        self._unwritten = self._unwritten + spent
        try:
            self.ledger.add(self._unwritten)
        except (OSError, StoreError) as error:
            self.problem = f"the day's spending cannot be recorded: {error}"
        else:
            self._unwritten, self.problem = Tally(), ""
        return spent

    def day(self) -> Tally:
        return self.ledger.today() + self._unwritten

    def describe_limit(self) -> str:
        found = _describe_excess(
            "session", self.session, self.limits.max_usd, self.limits.max_tokens
        )
        if found or not (self.limits.max_usd_per_day or self.limits.max_tokens_per_day):
            return found
        return _describe_excess(
            "day", self.day(), self.limits.max_usd_per_day, self.limits.max_tokens_per_day
        )


def _describe_excess(what: str, spent: Tally, max_usd: float, max_tokens: int) -> str:
    parts = (
        f"{spent.calls} answers ({spent.input_tokens:,} tokens uncached, "
        f"{spent.cache_read_tokens:,} read from the cache, {spent.cache_write_tokens:,} written to it, "
        f"{spent.output_tokens:,} output)"
    )
    if max_usd and spent.usd >= max_usd:
        return f"the {what}'s limit of {dollars(max_usd)} is reached: {exact_dollars(spent.usd)} for {parts}"
    if max_tokens and spent.total_tokens >= max_tokens:
        return f"the {what}'s limit of {max_tokens:,} tokens is reached: {spent.total_tokens:,} in {parts}"
    return ""


COMPACT = "compact"
"""The layer that frees context. Even a new session may need it."""
SAVING = (COMPACT, "notes")
"""Layers whose calls save other calls. The other layers together may use half of the share."""

LEARNING = ("memory", "dream", "recall")
"""Layers with a separate budget (`MemoryBudget`)."""
ASIDE = "aside"
"""A side question from the user."""


def is_own(source: str) -> bool:
    return source not in (MAIN, ASIDE) and not source.startswith("agent:")


@dataclass(slots=True)
class OwnSpending:
    """Follows a log and sums the overhead by layer and all other spending."""

    main: Tally = field(default_factory=Tally)
    layers: dict[str, Tally] = field(default_factory=dict)
    _cursor: LogCursor = field(default_factory=LogCursor)
    _response: str = ""
    _piece: Tally = field(default_factory=Tally)
    """Usage of the current answer. Each part of an answer reports the total so far."""

    @property
    def own(self) -> Tally:
        return sum(self.layers.values(), Tally())

    @property
    def total(self) -> Tally:
        return self.main + self._piece + self.own

    @property
    def share(self) -> float:
        total = self.total.usd
        return self.own.usd / total if total else 0.0

    def follow(self, history: Sequence[AnyEntry]) -> Self:
        for entry in self._cursor.advance(history):
            match entry:
                case Asked():
                    self._end_answer()
                case Replied(usage=usage) if usage is not None:
                    if not entry.response_id or entry.response_id != self._response:
                        self._end_answer()
                    self._response = entry.response_id
                    self._piece = price_call(entry.model, usage, day_of(entry.at))
                case Forked(source=source):
                    spent = price(entry)
                    if is_own(source):
                        self.layers[source] = self.layers.get(source, Tally()) + spent
                    else:
                        self.main = self.main + spent
        return self

    def take(self) -> tuple[Tally, dict[str, Tally]]:
        """Return the total and the overhead by layer, then reset both to zero."""
        taken = self.total, self.layers
        self.main, self._piece, self.layers = Tally(), Tally(), {}
        return taken

    def skip(self, history: Sequence[AnyEntry]) -> Self:
        """Ignore the entries that are already in the history."""
        self._cursor.advance(history)
        return self

    def _end_answer(self) -> None:
        self.main, self._piece, self._response = self.main + self._piece, Tally(), ""

    def refusal(self, limits: BudgetSettings, source: str, expected_usd: float) -> str:
        # Memory has a separate budget for each project.
        own = sum((spent for name, spent in self.layers.items() if name not in LEARNING), Tally())
        total = self.total
        if not limits.own_share:
            return ""
        if own.calls >= total.calls - own.calls:
            return f"Longhold's {own.calls} overhead calls would outnumber the session's calls"
        floor = limits.own_floor_usd if source == COMPACT else 0.0
        share = limits.own_share if source in SAVING else limits.own_share / 2
        if not expected_usd or own.usd + expected_usd <= max(floor, share * total.usd):
            return ""
        return (
            f"overhead is {exact_dollars(own.usd)} of {exact_dollars(total.usd)}; a call of about "
            f"{exact_dollars(expected_usd)} would exceed its share of {share:.1%} (budget.own_share)"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledFigures:
    """Figures of a session that the gateway collects without reading the session's log."""

    tally: Tally
    saved_usd: float
    model: str
    agent: str
    decisions: Mapping[int, tuple[float, float]]
