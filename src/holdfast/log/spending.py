"""What was spent, on what, and whether more may be.

Every answer's usage is priced and kept: for the session by its log, for the day in a ledger
under the home directory that all sessions write to. A limit that is reached ends a run cleanly,
before the next call, and says where the money went.
"""

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from msgspec import Struct

from holdfast.log.entries import AnyEntry, Forked, Replied
from holdfast.messages import Usage
from holdfast.models.prices import cost
from holdfast.settings import BudgetSettings, home
from holdfast.settings.files import PRIVATE_FILE, private_directory


class Spent(Struct, frozen=True, kw_only=True):
    """Tokens and dollars, by what they were spent on."""

    usd: float = 0.0
    input_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    answers: int = 0

    @property
    def tokens(self) -> int:
        """All tokens, whatever they cost."""
        return (
            self.input_tokens
            + self.cache_read_tokens
            + self.cache_write_tokens
            + self.output_tokens
        )

    def __add__(self, other: "Spent") -> "Spent":
        return self._with(other, 1)

    def __sub__(self, other: "Spent") -> "Spent":
        return self._with(other, -1)

    def _with(self, other: "Spent", times: int) -> "Spent":
        fields = self.__struct_fields__
        return Spent(
            **{name: getattr(self, name) + times * getattr(other, name) for name in fields}
        )


def spent_on(model: str, usage: Usage) -> Spent:
    """Price one answer; a model without a published price costs nothing here."""
    priced = cost(
        model,
        uncached_tokens=usage.input_tokens,
        read_tokens=usage.cache_read_tokens,
        write_5m_tokens=usage.written_5m_tokens,
        write_1h_tokens=usage.written_1h_tokens,
        output_tokens=usage.output_tokens,
    )
    return Spent(
        usd=priced.total if priced else 0.0,
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        answers=1,
    )


def spent_in(entries: Iterable[AnyEntry]) -> Spent:
    """Sum up a log, forks included; an answer in pieces is paid for once, by its last usage."""
    last: dict[str, Replied] = {}
    total = Spent()
    for entry in entries:
        if isinstance(entry, Replied) and entry.usage:
            last[entry.response_id] = entry
        elif isinstance(entry, Forked):
            total = total + spent_on(entry.model, entry.usage)
    for entry in last.values():
        assert entry.usage is not None
        total = total + spent_on(entry.model, entry.usage)
    return total


@dataclass(slots=True)
class Budget:
    """What this session and this day have spent, against their limits."""

    limits: BudgetSettings
    session: Spent = field(default_factory=Spent)
    ledger: Path = field(default_factory=lambda: home() / "spent")

    def pay(self, model: str, usage: Usage) -> Spent:
        """Count an answer, here and in the day's ledger."""
        spent = spent_on(model, usage)
        self.session = self.session + spent
        # the newline comes first, so that a line torn by a crash spoils only itself
        self._append(b"\n" + msgspec.json.encode(spent))
        return spent

    def _append(self, line: bytes) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        try:
            descriptor = os.open(self._today(), flags, PRIVATE_FILE)
        except FileNotFoundError:
            private_directory(self.ledger)
            descriptor = os.open(self._today(), flags, PRIVATE_FILE)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)

    def day(self) -> Spent:
        """Sum up today's ledger; a line that a crash tore is passed by."""
        total = Spent()
        try:
            lines = self._today().read_bytes().split(b"\n")
        except FileNotFoundError:
            return total
        for line in lines:
            try:
                total = total + msgspec.json.decode(line, type=Spent)
            except msgspec.DecodeError:
                continue
        return total

    def exhausted(self) -> str:
        """Name the limit that is reached, or nothing."""
        found = _over("session", self.session, self.limits.max_usd, self.limits.max_tokens)
        if found or not (self.limits.max_usd_per_day or self.limits.max_tokens_per_day):
            return found
        return _over("day", self.day(), self.limits.max_usd_per_day, self.limits.max_tokens_per_day)

    def _today(self) -> Path:
        return self.ledger / f"{time.strftime('%Y-%m-%d')}.jsonl"


def _over(what: str, spent: Spent, max_usd: float, max_tokens: int) -> str:
    parts = (
        f"{spent.answers} answers: {spent.input_tokens:,} tokens uncached, "
        f"{spent.cache_read_tokens:,} read from the cache, {spent.cache_write_tokens:,} written to it, "
        f"{spent.output_tokens:,} output"
    )
    if max_usd and spent.usd >= max_usd:
        return f"the {what}'s ${max_usd:.2f} are spent (${spent.usd:.4f} on {parts})"
    if max_tokens and spent.tokens >= max_tokens:
        return f"the {what}'s {max_tokens:,} tokens are spent ({spent.tokens:,} on {parts})"
    return ""
