"""The cost of all sessions, the avoidable part of it, and ways to avoid it."""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import date, datetime
from pathlib import Path

from longhold.core.messages import JsonObject
from longhold.core.messages.usage import Tally
from longhold.core.models.capabilities import canonical_name
from longhold.insight.cost import kinds_json
from longhold.insight.remedies import Loss, Remedy, losses, only_avoidable, remedies
from longhold.insight.session_index import SessionIndex, select_below

DIMENSIONS = ("day", "week", "month", "block", "project", "model", "agent", "source", "session")
IN_ORDER = ("day", "week", "month", "block")
"""Dimensions that are sorted by time. The others are sorted by cost, highest first."""
BLOCK_SECONDS = 5 * 3_600
"""The length of the blocks in which subscriptions count usage. They begin at a full hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendingGroup:
    name: str
    spending: Tally
    """`lost_usd` is the avoidable cost."""
    title: str = ""
    path: str = field(default="", compare=False)
    directory: str = ""


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
    remedies: tuple[Remedy, ...] = ()
    groups: dict[str, tuple[SpendingGroup, ...]] = field(default_factory=dict)
    unreadable: tuple[str, ...] = ()
    without_usage: dict[str, int] = field(default_factory=dict)
    """The number of sessions by agent that have no usage, so that their cost is unknown."""
    newest_day: str = ""
    at_best_usd: float = 0.0
    """The least that the conversations' calls could have cost, for sessions where it is known."""
    conversations_usd: float = 0.0

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
                    {
                        "name": one.name,
                        "spending": spending_json(one.spending),
                        "title": one.title,
                        "path": one.path,
                        "directory": one.directory,
                    }
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
    blocks = _find_blocks({row["slot"] for row in rows if row["slot"]})
    days = sorted({row["day"] for row in rows if row["day"]})
    return SpendingReport(
        sessions=len({(row["agent"], row["session"]) for row in rows}),
        first_day=(since or days[0]) if days else "",
        last_day=days[-1] if days else "",
        total=sum((tally for _, tally in spent), Tally()),
        losses=losses(rows),
        remedies=remedies(rows),
        groups={name: _group(spent, name, blocks) for name in DIMENSIONS},
        unreadable=tuple(
            row["problem"] if row["path"] in row["problem"] else f"{row['path']}: {row['problem']}"
            for row in problems
        ),
        without_usage={
            row["agent"]: row["n"] for row in index.rows(_NO_USAGE.format(scope=scope), values)
        },
        newest_day=index.rows(_NEWEST.format(scope=scope), values)[0]["day"] or "",
        **_sum_limits(index, rows),
    )


_LIMITS = """
SELECT file, at_best_usd / sum(usd) AS share FROM sessions JOIN calls ON sessions.id = calls.file
WHERE source = 'main' AND at_best_usd > 0 GROUP BY file HAVING sum(usd) > 0
"""


def _sum_limits(index: SessionIndex, rows: Iterable[sqlite3.Row]) -> dict[str, float]:
    shares = {row["file"]: row["share"] for row in index.rows(_LIMITS)}
    paid = [row for row in rows if row["source"] == "main" and row["file"] in shares]
    return {
        "at_best_usd": sum(row["usd"] * shares[row["file"]] for row in paid),
        "conversations_usd": sum(row["usd"] for row in paid),
    }


_NO_USAGE = """
SELECT agent, count(*) AS n FROM sessions
WHERE problem = '' AND turns > 0 AND id NOT IN (SELECT file FROM calls) AND {scope} GROUP BY agent
"""
_NEWEST = """
SELECT date(max(at), 'unixepoch', 'localtime') AS day
FROM calls JOIN sessions ON sessions.id = calls.file WHERE {scope} AND at > 0
"""


def _find_blocks(slots: Iterable[int]) -> dict[int, str]:
    began, found = -BLOCK_SECONDS, dict[int, str]()
    for slot in sorted(slots):
        if slot >= began + BLOCK_SECONDS:
            began = slot - slot % 3_600
        found[slot] = f"{datetime.fromtimestamp(began):%Y-%m-%d %H:%M}"
    return found


def _spending(row: sqlite3.Row) -> Tally:
    tally = Tally(**{name: row[name] for name in Tally.__struct_fields__})
    return only_avoidable(tally, row["cause"] or "", is_expected=bool(row["is_expected"]))


UNDATED = "undated"
SOURCES = {
    "main": "conversation",
    "compact": "summaries",
    "stopped": "answers that were stopped",
    "branch": "answers on another branch",
}


def _week(day: str | None) -> str:
    return f"{date.fromisoformat(day):%G-W%V}" if day else UNDATED


_NAMES: dict[str, Callable[[sqlite3.Row], str]] = {
    "day": lambda row: str(row["day"] or UNDATED),
    "week": lambda row: _week(row["day"]),
    "month": lambda row: str(row["day"] or UNDATED)[:7],
    "project": lambda row: str(row["directory"] or "unknown"),
    "model": lambda row: _model_name(str(row["model"])),
    "agent": lambda row: str(row["agent"]),
    "source": lambda row: SOURCES.get(row["source"], str(row["source"])),
    "session": lambda row: str(row["session"]),
}


def _model_name(name: str) -> str:
    return canonical_name(name) if name.startswith("claude-") else name


def _group(
    spent: Iterable[tuple[sqlite3.Row, Tally]], dimension: str, blocks: Mapping[int, str]
) -> tuple[SpendingGroup, ...]:
    groups: dict[str, SpendingGroup] = {}
    for row, tally in spent:
        is_block = dimension == "block"
        name = blocks.get(row["slot"], UNDATED) if is_block else _NAMES[dimension](row)
        known = groups.get(name) or SpendingGroup(
            name=name, spending=Tally(), **_about(row, dimension)
        )
        groups[name] = replace(known, spending=known.spending + tally)
    if dimension in IN_ORDER:
        return tuple(sorted(groups.values(), key=lambda group: group.name))
    return tuple(sorted(groups.values(), key=lambda group: -group.spending.estimated_usd))


def _about(row: sqlite3.Row, dimension: str) -> dict[str, str]:
    names = ("title", "path", "directory") if dimension == "session" else ()
    return {name: str(row[name] or "") for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSummary:
    agent: str = ""
    model: str = ""
    calls: int = 0
    usd: float = 0.0
    avoidable_usd: float = 0.0
    hit_share: float = 0.0
    is_estimated: bool = False
    compactions: int = 0
    last_at: float = 0.0
    session: str = ""
    title: str = ""
    directory: str = ""


def summarise(index: SessionIndex, roots: Sequence[Path]) -> dict[str, SessionSummary]:
    """Summarise the session in each file. A call that is in two files counts in both."""
    scope, values = select_below(roots)
    found: dict[str, list[sqlite3.Row]] = defaultdict(list)
    for row in index.rows(_SUMMARY.format(scope=scope), values):
        found[row["path"]].append(row)
    return {path: _summary(rows) for path, rows in found.items()}


def _summary(rows: Sequence[sqlite3.Row]) -> SessionSummary:
    first, by_model = rows[0], Counter[str]()
    for row in rows:
        by_model[row["model"] or ""] += row["usd"] + row["unrecorded_usd"]
    tally = sum(map(_spending, rows), Tally())
    return SessionSummary(
        **{name: first[name] or "" for name in ("agent", "session", "title", "directory")},
        model=by_model.most_common(1)[0][0],
        calls=tally.calls,
        usd=tally.estimated_usd,
        avoidable_usd=tally.lost_usd,
        hit_share=tally.hit_share,
        is_estimated=tally.unrecorded_usd > 0,
        compactions=first["compactions"],
        last_at=max(row["last_at"] for row in rows),
    )


_SUMMARY = f"""
SELECT path, agent, session, title, directory, compactions, model, cause, is_expected,
    max(coalesce(at, 0)) AS last_at,
    {", ".join(f"coalesce(sum({name}), 0) AS {name}" for name in Tally.__struct_fields__)}
FROM sessions LEFT JOIN calls ON sessions.id = calls.file
WHERE {{scope}} GROUP BY path, model, cause, is_expected
"""
