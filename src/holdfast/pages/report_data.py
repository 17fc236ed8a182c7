"""What all sessions cost, as the tables of a page; from the values that `holdfast report` prints."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.pages.tables import Columns
from holdfast.pages.texts import shown

NAME_CHARS = 400
MOST_ROWS = 5_000
"""Of one table; days and months keep their newest, all else the dearest."""
IN_ORDER = ("day", "month")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportData:
    """What the page of a report is drawn from."""

    lines: tuple[str, ...]
    """The verdict, as it is printed."""
    total: dict[str, float]
    losses: tuple[dict[str, Any], ...]
    tables: dict[str, Columns]
    """Spending by day, month, project, model, agent, source and session."""


def report_data(report: Mapping[str, Any], lines: Sequence[str]) -> ReportData:
    """Take a report as plain values; every text in the result is safe to show."""
    return ReportData(
        lines=tuple(shown(line, NAME_CHARS * 4) for line in lines),
        total=dict(report["total"]),
        losses=tuple(
            {name: shown(v, NAME_CHARS) if isinstance(v, str) else v for name, v in loss.items()}
            for loss in report["losses"]
        ),
        tables={name: _columns(name, groups) for name, groups in report["groups"].items()},
    )


def _columns(dimension: str, groups: Sequence[Mapping[str, Any]]) -> Columns:
    kept = groups[-MOST_ROWS:] if dimension in IN_ORDER else groups[:MOST_ROWS]
    table: Columns = {
        "name": [shown(group["name"], NAME_CHARS) for group in kept],
        "title": [shown(group["title"], NAME_CHARS) for group in kept],
    }
    for field in kept[0]["spending"] if kept else ():
        values = (group["spending"][field] for group in kept)
        table[field] = [round(v, 6) if isinstance(v, float) else v for v in values]
    return table
