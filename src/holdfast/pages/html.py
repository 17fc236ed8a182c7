"""One HTML file that holds its data, its script and its style, and fetches nothing.

Data stands in a script element as JSON in which no `<` is left, so nothing in a session can end
it. The policy allows only the script and the style that are in the file, by their hashes, and with
trusted types no text can become markup.
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

from holdfast.pages.report_data import ReportData
from holdfast.pages.session_data import SessionData
from holdfast.pages.tables import Columns, columns

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
"""What a page begins with."""

_HOLE = re.compile(r"\{(policy|title|style|data|script)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """A session in a list; what is None is not known before the session is read."""

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
    """Against what its client's own requests would have cost; only a gateway knows."""
    decisions: Mapping[int, tuple[float, float]] | None = None
    """By entry: what all in force were to save until the next decision, and what they did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageDocument:
    """The data of a page: sessions with the pages that are in the file, or a report."""

    title: str
    sessions: Columns
    mode: Literal["file", "live"] = "file"
    can_undo: bool = False
    pages: Mapping[str, SessionData] = field(default_factory=dict)
    report: ReportData | None = None


def row_of(data: SessionData, directory: str = "") -> SessionRow:
    calls = data.tables["calls"]
    lost = zip(calls["lost_usd"], calls["is_expected"], strict=True)
    return SessionRow(
        id=data.id,
        name=data.name,
        format=data.format,
        title=data.title,
        model=data.model,
        directory=directory,
        last_at=data.last_at,
        calls=data.totals.calls,
        usd=data.totals.usd,
        lost_usd=sum(usd for usd, is_expected in lost if not is_expected),
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
    """Write the page of one session, or of several with a list in front."""
    title = title or (rows[0].title or rows[0].name if len(rows) == 1 else "Sessions")
    columns = session_columns(rows)
    return _filled(
        PageDocument(title=title, mode=mode, can_undo=can_undo, sessions=columns, pages=pages)
    )


def render_report(report: ReportData) -> str:
    """Write the page of what all sessions cost."""
    title = report.lines[0] if report.lines else "Report"
    return _filled(PageDocument(title=title, sessions=session_columns(()), report=report))


def _filled(document: PageDocument) -> str:
    parts = {
        "policy": policy(is_live=document.mode == "live"),
        "title": _escaped(document.title),
        "style": _joined(STYLES),
        "data": json_in_html(document),
        "script": _joined(SCRIPTS),
    }
    # In one pass: a part is never searched for further holes.
    return _HOLE.sub(lambda hole: parts[hole[1]], _static("page.html"))


def json_in_html(value: Any) -> str:
    """Encode a value so that it can stand inside a script element."""
    text = msgspec.json.encode(value).decode()
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def policy(*, is_live: bool) -> str:
    """Return the content security policy: what is in the file, and nothing else."""
    connect = "'self'" if is_live else "'none'"
    return (
        f"default-src 'none'; script-src {_hash(SCRIPTS)}; style-src {_hash(STYLES)}; "
        f"connect-src {connect}; base-uri 'none'; form-action 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    )


@cache
def _static(name: str) -> str:
    return files("holdfast.pages").joinpath("static", name).read_text(encoding="utf-8")


@cache
def _joined(names: tuple[str, ...]) -> str:
    return "\n".join(map(_static, names))


def _hash(names: tuple[str, ...]) -> str:
    digest = hashlib.sha256(_joined(names).encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")
