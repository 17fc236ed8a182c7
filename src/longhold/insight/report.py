"""What all sessions cost, what of it could have been avoided, and by which remedies."""

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

from longhold.insight.cost import Tokens
from longhold.insight.index import SessionIndex, select_below
from longhold.insight.remedies import Loss, Remedy, is_avoidable, losses, remedies

DIMENSIONS = ("day", "month", "project", "model", "agent", "source", "session")
"""What spending can be listed by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spending(Tokens):
    """A sum of calls, as far as transcripts record them, with what is estimated beside it."""

    calls: int = 0
    recorded_usd: float = 0.0
    unrecorded_usd: float = 0.0
    """About what output and summaries cost that were not recorded."""
    unrecorded_output: int = 0
    unrecorded_calls: int = 0
    unpriced_calls: int = 0
    avoidable_usd: float = 0.0

    @property
    def usd(self) -> float:
        return self.recorded_usd + self.unrecorded_usd


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingGroup:
    name: str
    spending: Spending
    title: str = ""
    """Of a session."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingReport:
    sessions: int = 0
    first_day: str = ""
    last_day: str = ""
    total: Spending = field(default_factory=Spending)
    losses: tuple[Loss, ...] = ()
    """What cold calls cost beyond warm ones, by cause, largest first."""
    remedies: tuple[Remedy, ...] = ()
    """What would have saved most, largest first."""
    groups: dict[str, tuple[SpendingGroup, ...]] = field(default_factory=dict)
    """By each dimension: days and months in order, all else dearest first."""
    unreadable: tuple[str, ...] = ()
    """Files that are no sessions, or could not be read, each with the reason."""

    @property
    def days(self) -> int:
        """How many days it covers, the first and the last included."""
        if not self.first_day:
            return 0
        return (date.fromisoformat(self.last_day) - date.fromisoformat(self.first_day)).days + 1

    @property
    def avoidable_usd(self) -> float:
        return sum(loss.usd for loss in self.losses if loss.is_avoidable)


def make_report(index: SessionIndex, roots: Sequence[Path], *, since: str = "") -> SpendingReport:
    scope, values = select_below(roots)
    rows = index.sums(scope, values, since)
    problems = index.rows(
        f"SELECT path, problem FROM sessions WHERE problem != '' AND {scope}", values
    )
    spent = [(row, _spending(row)) for row in rows]
    days = sorted({row["day"] for row in rows if row["day"]})
    return SpendingReport(
        sessions=len({(row["agent"], row["session"]) for row in rows}),
        first_day=(since or days[0]) if days else "",
        last_day=days[-1] if days else "",
        total=_sum_up([spending for _, spending in spent]),
        losses=losses(rows),
        remedies=remedies(rows),
        groups={name: _group(spent, name) for name in DIMENSIONS},
        unreadable=tuple(
            row["problem"] if row["path"] in row["problem"] else f"{row['path']}: {row['problem']}"
            for row in problems
        ),
    )


def _spending(row: sqlite3.Row) -> Spending:
    avoidable = is_avoidable(row["cause"], is_expected=bool(row["is_expected"]))
    return Spending(
        calls=row["rows"] - row["unrecorded_calls"],
        recorded_usd=row["usd"],
        avoidable_usd=row["lost_usd"] if avoidable else 0.0,
        **{
            name: row[name]
            for name in Spending.__dataclass_fields__
            if name not in ("calls", "recorded_usd", "avoidable_usd")
        },
    )


_NAMES: dict[str, Callable[[sqlite3.Row], str]] = {
    "day": lambda row: str(row["day"] or "undated"),
    "month": lambda row: str(row["day"] or "undated")[:7],
    "project": lambda row: str(row["directory"] or "unknown"),
    "model": lambda row: str(row["model"]),
    "agent": lambda row: str(row["agent"]),
    "source": lambda row: str(row["source"]),
    "session": lambda row: str(row["session"]),
}


def _group(
    spent: Iterable[tuple[sqlite3.Row, Spending]], dimension: str
) -> tuple[SpendingGroup, ...]:
    name_of = _NAMES[dimension]
    parts: dict[str, list[Spending]] = defaultdict(list)
    titles: dict[str, str] = {}
    for row, spending in spent:
        name = name_of(row)
        parts[name].append(spending)
        if dimension == "session":
            titles.setdefault(name, str(row["title"]))
    groups = [
        SpendingGroup(name=name, spending=_sum_up(each), title=titles.get(name, ""))
        for name, each in parts.items()
    ]
    if dimension in ("day", "month"):
        return tuple(sorted(groups, key=lambda group: group.name))
    return tuple(sorted(groups, key=lambda group: -group.spending.usd))


def _sum_up(parts: Sequence[Spending]) -> Spending:
    names = Spending.__dataclass_fields__
    return Spending(**{name: sum(getattr(each, name) for each in parts) for name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary:
    agent: str = ""
    model: str = ""
    """The one that most was spent on."""
    calls: int = 0
    usd: float = 0.0
    is_estimated: bool = False
    last_at: float = 0.0
    """When it was last answered; 0 if nothing says so."""


def summarise(index: SessionIndex, roots: Sequence[Path]) -> dict[str, SessionSummary]:
    """Describe each session of some places, by its file; what a copy repeats is counted there too."""
    scope, values = select_below(roots)
    rows = index.rows(_SUMMARY.format(scope=scope), values)
    found: dict[str, SessionSummary] = {}
    for row in rows:
        before = found.get(
            row["path"], SessionSummary(agent=row["agent"], model=row["model"] or "")
        )
        found[row["path"]] = replace(
            before,
            calls=before.calls + row["calls"],
            usd=before.usd + row["usd"],
            is_estimated=before.is_estimated or bool(row["is_estimated"]),
            last_at=max(before.last_at, row["last_at"]),
        )
    return found


_SUMMARY = """
SELECT path, agent, model, count(model) AS calls, max(coalesce(at, 0)) AS last_at,
    total(usd) + total(unrecorded_usd) AS usd, total(unrecorded_usd) > 0 AS is_estimated
FROM sessions LEFT JOIN calls ON sessions.id = calls.file
WHERE {scope} GROUP BY path, model ORDER BY path, usd DESC
"""
