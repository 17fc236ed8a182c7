"""Renders one HTML file that contains its data, script and style, and fetches nothing.

The data is JSON in a script element, with every `<` escaped, so no session text can end the
element. The content security policy allows only the script and style in the file, by hash. Trusted
types keep text from becoming markup.
"""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import msgspec

from longhold.insight.pages.session_data import SessionData
from longhold.insight.pages.tables import Columns, columns, sanitise
from longhold.insight.report import IN_ORDER

NAME_CHARS = 400
MOST_ROWS = 5_000
"""The limit for rows. Tables by time keep the newest rows, other tables the most expensive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportData:
    lines: tuple[str, ...]
    total: dict[str, float]
    losses: tuple[dict[str, Any], ...]
    tables: dict[str, Columns]


def report_data(report: Mapping[str, Any], lines: Sequence[str]) -> ReportData:
    """Convert a report into data for a page. All texts in the result are sanitised."""
    return ReportData(
        lines=tuple(sanitise(line, NAME_CHARS * 4) for line in lines),
        total=dict(report["total"]),
        losses=tuple(
            {name: sanitise(v, NAME_CHARS) if isinstance(v, str) else v for name, v in loss.items()}
            for loss in report["losses"]
        ),
        tables={name: _columns(name, groups) for name, groups in report["groups"].items()},
    )


def _columns(dimension: str, groups: Sequence[Mapping[str, Any]]) -> Columns:
    kept = groups[-MOST_ROWS:] if dimension in IN_ORDER else groups[:MOST_ROWS]
    table: Columns = {
        "name": [sanitise(group["name"], NAME_CHARS) for group in kept],
        "title": [sanitise(group["title"], NAME_CHARS) for group in kept],
    }
    for column in kept[0]["spending"] if kept else ():
        values = (group["spending"][column] for group in kept)
        table[column] = [round(v, 6) if isinstance(v, float) else v for v in values]
    return table


SCRIPTS = (
    "uPlot.iife.min.js",
    "base.js",
    "table.js",
    "charts.js",
    "session.js",
    "report.js",
    "main.js",
)
STYLES = ("uPlot.min.css", "page.css")
DOCTYPE = "<!doctype html>"

_HOLE = re.compile(r"\{(policy|title|style|data|script)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """A session in a list. None means unknown until the session is read."""

    id: str
    name: str
    format: str
    title: str = ""
    model: str = ""
    directory: str = ""
    last_at: float = 0.0
    calls: int | None = None
    usd: float | None = None
    lost_usd: float | None = None
    hit_share: float | None = None
    compactions: int | None = None
    saved_usd: float | None = None
    """The saving relative to the client's unmodified requests. Only a gateway knows it."""
    decisions: Mapping[int, tuple[float, float]] | None = None
    """The predicted and actual savings until the next decision, by entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageDocument:
    title: str
    sessions: Columns
    mode: Literal["file", "live"] = "file"
    can_undo: bool = False
    pages: Mapping[str, SessionData] = field(default_factory=dict)
    report: ReportData | None = None


def row_of(data: SessionData) -> SessionRow:
    return SessionRow(
        id=data.id,
        name=data.name,
        format=data.format,
        title=data.title,
        model=data.model,
        last_at=data.last_at,
        calls=data.totals["calls"],
        usd=data.totals["usd"] + data.estimated_usd,
        lost_usd=data.avoidable_usd,
        hit_share=data.hit_share,
        compactions=len(data.tables["compactions"]["n"]),
    )


def session_columns(rows: Sequence[SessionRow]) -> Columns:
    return columns(SessionRow, rows)


def render(
    rows: Sequence[SessionRow],
    pages: Mapping[str, SessionData],
    *,
    mode: Literal["file", "live"] = "file",
    title: str = "",
    can_undo: bool = False,
) -> str:
    title = title or (rows[0].title or rows[0].name if len(rows) == 1 else "Sessions")
    columns = session_columns(rows)
    return _fill(
        PageDocument(title=title, mode=mode, can_undo=can_undo, sessions=columns, pages=pages)
    )


def render_report(report: ReportData) -> str:
    title = report.lines[0] if report.lines else "Report"
    return _fill(PageDocument(title=title, sessions=session_columns(()), report=report))


def _fill(document: PageDocument) -> str:
    parts = {
        "policy": policy(is_live=document.mode == "live"),
        "title": _escape(document.title),
        "style": _join_static(STYLES),
        "data": json_in_html(document),
        "script": _join_static(SCRIPTS),
    }
    # Replace in one pass, so that inserted parts are not searched for placeholders.
    return _HOLE.sub(lambda hole: parts[hole[1]], _static("page.html"))


def json_in_html(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def policy(*, is_live: bool) -> str:
    connect = "'self'" if is_live else "'none'"
    return (
        f"default-src 'none'; script-src {_hash(SCRIPTS)}; style-src {_hash(STYLES)}; "
        f"connect-src {connect}; base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )


@cache
def _static(name: str) -> str:
    return files("longhold.insight.pages").joinpath("static", name).read_text(encoding="utf-8")


@cache
def _join_static(names: tuple[str, ...]) -> str:
    return "\n".join(map(_static, names))


def _hash(names: tuple[str, ...]) -> str:
    digest = hashlib.sha256(_join_static(names).encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")
