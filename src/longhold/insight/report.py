"""The cost of all sessions, the avoidable part, and remedies."""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import date
from pathlib import Path

from msgspec import structs

from longhold.core.messages import JsonObject
from longhold.core.messages.usage import Tally
from longhold.insight.cost import kinds_json
from longhold.insight.remedies import Loss, Remedy, is_avoidable, losses, remedies
from longhold.insight.session_index import SessionIndex, select_below

DIMENSIONS = ("day", "month", "project", "model", "agent", "source", "session")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingGroup:
    name: str
    spending: Tally
    """`lost_usd` is the avoidable cost."""
    title: str = ""


def spending_json(tally: Tally) -> JsonObject:
    return {
        "calls": tally.calls,
        **kinds_json(tally),
        "recorded_usd": tally.usd,
        "unrecorded_usd": tally.unrecorded_usd,
        "unrecorded_output": tally.unrecorded_output,
        "unrecorded_calls": tally.unrecorded_calls,
        "unpriced_calls": tally.unpriced_calls,
        "avoidable_usd": tally.lost_usd,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingReport:
    sessions: int = 0
    first_day: str = ""
    last_day: str = ""
    total: Tally = field(default_factory=Tally)
    losses: tuple[Loss, ...] = ()
    """Extra cost of cold calls by cause, largest first."""
    remedies: tuple[Remedy, ...] = ()
    groups: dict[str, tuple[SpendingGroup, ...]] = field(default_factory=dict)
    """By dimension: days and months in order, others most expensive first."""
    unreadable: tuple[str, ...] = ()
    """Files that are not sessions or could not be read, each with the reason."""

    @property
    def days(self) -> int:
        if not self.first_day:
            return 0
        return (date.fromisoformat(self.last_day) - date.fromisoformat(self.first_day)).days + 1

    @property
    def avoidable_usd(self) -> float:
        return sum(loss.usd for loss in self.losses if loss.is_avoidable)

    def to_json(self) -> JsonObject:
        plain = {one.name: getattr(self, one.name) for one in fields(self)}
        return plain | {
            "total": spending_json(self.total),
            "losses": [asdict(loss) for loss in self.losses],
            "groups": {
                name: [
                    {"name": one.name, "spending": spending_json(one.spending), "title": one.title}
                    for one in groups
                ]
                for name, groups in self.groups.items()
            },
            "avoidable_usd": self.avoidable_usd,
        }


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
        total=sum((tally for _, tally in spent), Tally()),
        losses=losses(rows),
        remedies=remedies(rows),
        groups={name: _group(spent, name) for name in DIMENSIONS},
        unreadable=tuple(
            row["problem"] if row["path"] in row["problem"] else f"{row['path']}: {row['problem']}"
            for row in problems
        ),
    )


def _spending(row: sqlite3.Row) -> Tally:
    tally = Tally(**{name: row[name] for name in Tally.__struct_fields__})
    is_lost = is_avoidable(row["cause"], is_expected=bool(row["is_expected"]))
    return tally if is_lost else structs.replace(tally, lost_usd=0.0)


_NAMES: dict[str, Callable[[sqlite3.Row], str]] = {
    "day": lambda row: str(row["day"] or "undated"),
    "month": lambda row: str(row["day"] or "undated")[:7],
    "project": lambda row: str(row["directory"] or "unknown"),
    "model": lambda row: str(row["model"]),
    "agent": lambda row: str(row["agent"]),
    "source": lambda row: str(row["source"]),
    "session": lambda row: str(row["session"]),
}


def _group(spent: Iterable[tuple[sqlite3.Row, Tally]], dimension: str) -> tuple[SpendingGroup, ...]:
    name_of = _NAMES[dimension]
    groups: dict[str, SpendingGroup] = {}
    for row, tally in spent:
        name, title = name_of(row), row["title"] if dimension == "session" else ""
        known = groups.get(name, SpendingGroup(name=name, spending=Tally(), title=title))
        groups[name] = replace(known, spending=known.spending + tally)
    if dimension in ("day", "month"):
        return tuple(sorted(groups.values(), key=lambda group: group.name))
    return tuple(sorted(groups.values(), key=lambda group: -group.spending.estimated_usd))


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary:
    agent: str = ""
    model: str = ""
    """The model with the highest cost."""
    calls: int = 0
    usd: float = 0.0
    is_estimated: bool = False
    last_at: float = 0.0


def summarise(index: SessionIndex, roots: Sequence[Path]) -> dict[str, SessionSummary]:
    """Describe each session by file. Calls that a copy repeats count in both."""
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
