"""What was spent, on what, and whether more may be.

A session's spending is in its log; a day's is in a ledger under the home directory that all
sessions write to. A limit that is reached ends a run before the next call.
"""

import errno
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Protocol, Self

import msgspec
from msgspec import Struct

from longhold.core.log.cursor import LogCursor
from longhold.core.log.entries import AnyEntry, Asked, Forked, Replied
from longhold.core.log.unique_answers import MAIN, day_of, paid_calls
from longhold.core.messages import Usage
from longhold.core.messages.text import dollars, exact_dollars
from longhold.core.messages.usage import add_fields
from longhold.core.models.prices import usage_cost
from longhold.core.settings import BudgetSettings, home
from longhold.core.settings.files import PRIVATE_FILE, private_directory
from longhold.errors import StoreError


class Spent(Struct, frozen=True, kw_only=True):
    usd: float = 0.0
    input_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    answers: int = 0

    @property
    def tokens(self) -> int:
        return (
            self.input_tokens
            + self.cache_read_tokens
            + self.cache_write_tokens
            + self.output_tokens
        )

    def __add__(self, other: "Spent") -> "Spent":
        return add_fields(self, other)


def price_call(model: str, usage: Usage, at: date | None = None) -> Spent:
    """Price one call at a day's prices; a model without a published price costs nothing here."""
    priced = usage_cost(model, usage, at)
    return Spent(
        usd=priced.total if priced else 0.0,
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        answers=1,
    )


def sum_spending(entries: Iterable[AnyEntry]) -> Spent:
    calls = paid_calls(entries)
    return sum((price_call(call.model, call.usage, day_of(call.at)) for call in calls), Spent())


def _read_ledger(file: Path) -> Spent:
    """Add up a day's ledger; a line that a crash tore is left out."""
    total = Spent()
    try:
        lines = file.read_bytes().split(b"\n")
    except OSError:
        return total
    for line in lines:
        try:
            total = total + msgspec.json.decode(line, type=Spent)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
    return total


class DayLedger(Protocol):
    """What all sessions spent today, kept where they all reach it."""

    def add(self, spent: Spent) -> None: ...
    def today(self) -> Spent: ...
    def by_day(self) -> dict[str, Spent]:
        """Return every day's sum, oldest first."""


@dataclass(frozen=True, slots=True)
class FileLedger:
    """A directory with a file for each day, a line for each call."""

    directory: Path = field(default_factory=lambda: home() / "spent")

    @property
    def file(self) -> Path:
        return self.directory / f"{time.strftime('%Y-%m-%d')}.jsonl"

    def add(self, spent: Spent) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        try:
            descriptor = os.open(self.file, flags, PRIVATE_FILE)
        except FileNotFoundError:
            private_directory(self.directory)
            descriptor = os.open(self.file, flags, PRIVATE_FILE)
        try:
            # the newline comes first, so that a line torn by a crash spoils only itself
            line = b"\n" + msgspec.json.encode(spent)
            if os.write(descriptor, line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        finally:
            os.close(descriptor)

    def today(self) -> Spent:
        return _read_ledger(self.file)

    def by_day(self) -> dict[str, Spent]:
        return {file.stem: _read_ledger(file) for file in sorted(self.directory.glob("*.jsonl"))}


@dataclass(slots=True)
class Budget:
    """What this session and this day have spent, against their limits."""

    limits: BudgetSettings
    session: Spent = field(default_factory=Spent)
    ledger: DayLedger = field(default_factory=FileLedger)
    is_simulated: Callable[[], bool] = lambda: False
    """Whether calls cost nothing just now; they count for the session's limits only."""
    problem: str = ""
    """Why the day's ledger could not be written; '' while it can."""
    _unwritten: Spent = field(default_factory=Spent)
    """What the day's ledger lacks; it is written with the next call, and counts until then."""

    def pay(self, model: str, usage: Usage) -> Spent:
        """Count a call for the session and, as far as it can be written, in the day's ledger."""
        spent = price_call(model, usage)
        self.session = self.session + spent
        if self.is_simulated():
            return spent
        self._unwritten = self._unwritten + spent
        try:
            self.ledger.add(self._unwritten)
        except (OSError, StoreError) as error:
            self.problem = f"the day's spending is not written down: {error}"
        else:
            self._unwritten, self.problem = Spent(), ""
        return spent

    def day(self) -> Spent:
        return self.ledger.today() + self._unwritten

    def describe_limit(self) -> str:
        """Describe the limit that is reached; '' if none is."""
        found = _describe_excess(
            "session", self.session, self.limits.max_usd, self.limits.max_tokens
        )
        if found or not (self.limits.max_usd_per_day or self.limits.max_tokens_per_day):
            return found
        return _describe_excess(
            "day", self.day(), self.limits.max_usd_per_day, self.limits.max_tokens_per_day
        )


def _describe_excess(what: str, spent: Spent, max_usd: float, max_tokens: int) -> str:
    parts = (
        f"{spent.answers} answers: {spent.input_tokens:,} tokens uncached, "
        f"{spent.cache_read_tokens:,} read from the cache, {spent.cache_write_tokens:,} written to it, "
        f"{spent.output_tokens:,} output"
    )
    if max_usd and spent.usd >= max_usd:
        return f"the {what}'s {dollars(max_usd)} are spent ({exact_dollars(spent.usd)} on {parts})"
    if max_tokens and spent.tokens >= max_tokens:
        return f"the {what}'s {max_tokens:,} tokens are spent ({spent.tokens:,} on {parts})"
    return ""


COMPACT = "compact"
"""The layer that makes room, which a young session may need as well."""
SAVING = (COMPACT, "notes")
"""Layers whose calls spare others; the rest together may use half of the share."""


ASIDE = "aside"
"""A question that the user asks beside the conversation."""


def is_own(source: str) -> bool:
    return source not in (MAIN, ASIDE) and not source.startswith("agent:")


@dataclass(slots=True)
class OwnSpending:
    """Follows a log: what the engine spent on itself, by layer, and what all others did."""

    main: Spent = field(default_factory=Spent)
    layers: dict[str, Spent] = field(default_factory=dict)
    _cursor: LogCursor = field(default_factory=LogCursor)
    _response: str = ""
    _piece: Spent = field(default_factory=Spent)
    """Of the last answer so far: each of its pieces says what all of it used."""

    @property
    def own(self) -> Spent:
        return sum(self.layers.values(), Spent())

    @property
    def total(self) -> Spent:
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
                    spent = price_call(entry.model, entry.usage, day_of(entry.at))
                    if is_own(source):
                        self.layers[source] = self.layers.get(source, Spent()) + spent
                    else:
                        self.main = self.main + spent
        return self

    def _end_answer(self) -> None:
        self.main, self._piece, self._response = self.main + self._piece, Spent(), ""

    def refusal(self, limits: BudgetSettings, source: str, expected_usd: float) -> str:
        """Say why the engine may not make a call of its own; '' if it may."""
        own, total = self.own, self.total
        if not limits.own_share:
            return ""
        if own.answers >= total.answers - own.answers:
            return f"the engine's own {own.answers} calls would outnumber the session's"
        floor = limits.own_floor_usd if source == COMPACT else 0.0
        share = limits.own_share if source in SAVING else limits.own_share / 2
        if not expected_usd or own.usd + expected_usd <= max(floor, share * total.usd):
            return ""
        return (
            f"the engine spent {exact_dollars(own.usd)} of {exact_dollars(total.usd)} on itself, and a call of about "
            f"{exact_dollars(expected_usd)} is over its share, {share:.1%} (budget.own_share)"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledFigures:
    """What is known of a session without reading it, by whoever passed its calls on."""

    calls: int
    usd: float
    hit_share: float
    saved_usd: float
    model: str
    agent: str
    decisions: Mapping[int, tuple[float, float]]
