"""`longhold report`: the cost of sessions, the avoidable part, and the best remedies."""

import csv
import io
import re
import time
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from shutil import get_terminal_size
from textwrap import wrap
from typing import Any

import click

from longhold.cli import options
from longhold.cli.output import describe_recorded, encoded_out, progress_bar, report, say
from longhold.core.messages import Json
from longhold.core.messages.text import (
    clean_line,
    clean_text,
    dollars,
    percent,
    pluralize,
    shorten_path,
    tokens,
)
from longhold.core.messages.usage import Tally
from longhold.insight.report import (
    DIMENSIONS,
    IN_ORDER,
    SpendingGroup,
    SpendingReport,
    make_report,
    spending_json,
)
from longhold.insight.session_files import ID_CHARS, SessionFile, default_roots, find_sessions
from longhold.insight.session_index import SessionIndex, open_index

RECENT_DAYS = 30  # days covered by default. Without a path, older sessions need --since.
SHOWN = {"day": 14, "project": 8, "model": 8, "agent": 6, "source": 6, "session": 10}
"""The limit for rows per table in the overview. --by prints one table in full."""
NUMBERS_WIDTH = 39  # columns for the figures of a row. The name takes the rest of the line.
LEAST_NAME, MOST_WIDTH = 20, 110
DAYS = {"d": 1, "w": 7, "m": 30, "y": 365}


@click.command(epilog="Example: longhold report --since 7d --by project")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--since", default="", help="The first day: 2026-01-31, 7d, 4w, or all.")
@click.option("--by", type=click.Choice(DIMENSIONS), help="Print only this table, in full.")
@click.option("--csv", "as_csv", is_flag=True, help="Print the table (--by, or days) as CSV.")
@click.option(
    "--html",
    "page",
    type=click.Path(path_type=Path),
    help="Write the report as a page to this file.",
)
@options.as_json
def command(
    paths: tuple[Path, ...],
    since: str,
    by: str | None,
    as_csv: bool,
    page: Path | None,
    as_json: bool,
) -> None:
    """Show what your sessions cost, and what would have saved most.

    Without PATHS, the report covers the sessions of Claude Code, Codex, pi and Longhold of the last
    30 days, in their usual directories. PATHS are directories or files. Sub-agents and summaries
    are included. Costs are API list prices, even for sessions under a subscription. `--by block`
    and `--by week` show the five-hour windows and the weeks that subscriptions count. `--by
    session` adds the least that any policy could have paid. An index in Longhold's home directory
    stores the figures, so that the next report reads only changed sessions.
    """
    if as_csv and (as_json or page):
        raise click.UsageError("--csv prints one table; leave out --json and --html")
    roots = list(paths) or default_roots()
    first_day = _first_day(since or ("all" if paths else f"{RECENT_DAYS}d"))
    has_limits = by == "session"
    found = _report(roots, first_day, has_limits=has_limits)
    if not found.sessions and not paths and not since and found.newest_day:
        say(f"Nothing in the last {RECENT_DAYS} days, so this covers all sessions.", err=True)
        found = _report(roots, "", has_limits=has_limits)
    if as_csv:
        encoded_out(_csv(found, by or "day"))
        return
    document = found.to_json()
    if page:
        _write_page(page, document, list(_verdict(found)))
    report(as_json, document, _lines(found, by, roots))


def _write_page(out: Path, document: dict[str, Any], verdict: list[str]) -> None:
    from longhold.cli.inspect_command import write_page  # needed only for a page
    from longhold.insight.pages.html import render_report, report_data

    write_page(out, render_report(report_data(document, verdict)).encode())
    say(f"{out} contains the report; open it in a browser", err=True)


def _report(roots: Sequence[Path], since: str, *, has_limits: bool) -> SpendingReport:
    files = find_sessions(roots)
    with fresh_index(files) as index:
        if has_limits:
            label = f"Reading {pluralize(len(files), 'session')} for their lowest possible cost"
            with progress_bar(sum(file.bytes for file in files), label) as advance:
                index.find_limits(files, advance or (lambda _: None))
        return make_report(index, roots, since=since)


@contextmanager
def fresh_index(files: Sequence[SessionFile]) -> Iterator[SessionIndex]:
    with open_index() as index:
        changed = index.stale(files)
        total = sum(file.bytes for file in changed)
        label = f"Reading {pluralize(len(changed), 'session')}"
        with progress_bar(total, label) as advance:
            index.refresh(files, advance or (lambda _: None))
        yield index


def _first_day(since: str) -> str:
    if since == "all":
        return ""
    if ago := re.fullmatch(r"(\d{1,4})([dwmy])", since):
        days = int(ago[1]) * DAYS[ago[2]]
        return (date.fromtimestamp(time.time()) - timedelta(days=days - 1)).isoformat()
    try:
        return date.fromisoformat(since).isoformat()
    except ValueError:
        raise click.UsageError(
            f"--since {since!r} is not a day; give one such as 2026-01-31, 7d, 4w or all"
        ) from None


def _lines(found: SpendingReport, by: str | None, roots: Sequence[Path]) -> Iterator[str]:
    """Yield the tables first, so that the most important lines are at the end of the screen."""
    if not found.sessions:
        yield from _explain_nothing(found, roots)
        return
    for name in (by,) if by else SHOWN:
        groups = found.groups[name]
        if by or len(groups) > 1 or name == "session":
            yield from _table(name, groups, len(groups) if by else SHOWN[name])
            yield ""
    for agent, count in found.without_usage.items():
        yield f"{pluralize(count, f'{agent} session')} without usage: the cost is unknown and not included"
    if found.unreadable:
        files = pluralize(len(found.unreadable), "file")
        yield f"{files} could not be read as sessions; --json lists them"
    for line in _verdict(found):
        if line.startswith("\n"):
            yield ""
        yield from wrap(line.removeprefix("\n"), _width(), subsequent_indent="    ")


def _width() -> int:
    return min(get_terminal_size().columns, MOST_WIDTH)


def _explain_nothing(found: SpendingReport, roots: Sequence[Path]) -> Iterator[str]:
    if found.newest_day:
        yield f"No session in these days. The newest is from {found.newest_day}; try --since all."
        return
    for agent, count in found.without_usage.items():
        yield f"{pluralize(count, f'{agent} session')} without usage: the cost is unknown."
    yield "No session with recorded usage was found. Looked in:"
    yield from (f"  {clean_text(str(root))}" for root in roots)
    yield "Name a directory or files."


def _verdict(found: SpendingReport) -> Iterator[str]:
    total = found.total
    recorded = describe_recorded(total)
    yield (
        f"{'About ' if recorded else ''}{dollars(total.estimated_usd)} at API list prices in {pluralize(found.days, 'day')}: "
        f"{pluralize(found.sessions, 'session')}, {pluralize(total.calls, 'call')}, "
        f"{tokens(total.total_tokens)} tokens"
    )
    if recorded:
        yield f"  {recorded}"
    if total.unpriced_calls:
        yield f"  {pluralize(total.unpriced_calls, 'call')} of models without a known price: not included"
    if found.at_best_usd:
        yield (
            f"  at best {dollars(found.at_best_usd)} instead of {dollars(found.conversations_usd)} for"
            " conversations, if each new token were sent once and only needed tokens were read"
        )
    avoidable = [loss for loss in found.losses if loss.is_avoidable and loss.usd > 0]
    if avoidable:
        share = percent(found.avoidable_usd, total.estimated_usd)
        yield f"{dollars(found.avoidable_usd)} of it, {share}, was avoidable:"
        yield from (f"  {dollars(loss.usd)} because {loss.words}" for loss in avoidable)
    else:
        yield "None of it was avoidable by keeping the cache warm."
    if found.remedies:
        yield "\nWhat would have saved most"
    for number, remedy in enumerate(found.remedies, 1):
        yield f"  {number}. about {dollars(remedy.usd)}: {remedy.what}"


def _table(name: str, groups: Sequence[SpendingGroup], most: int) -> Iterator[str]:
    shown = groups[-most:] if name in IN_ORDER else groups[:most]
    width = max(LEAST_NAME, _width() - NUMBERS_WIDTH)
    yield f"{f'by {name}':<{width}} {'cost':>9} {'avoidable':>10} {'calls':>7} {'tokens':>8}"
    for group in shown:
        spent = group.spending
        avoidable = dollars(spent.lost_usd) if spent.lost_usd else ""
        yield (
            f"{_name(group, width):<{width}} {dollars(spent.estimated_usd):>9} {avoidable:>10}"
            f" {spent.calls:>7,} {tokens(spent.total_tokens):>8}"
        )
    if rest := len(groups) - len(shown):
        yield f"{rest:,} {'earlier' if name in IN_ORDER else 'more'}; --by {name} lists all"


def _name(group: SpendingGroup, width: int) -> str:
    if not group.path:
        return shorten_path(clean_text(group.name), width)
    return clean_line(f"{group.name[:ID_CHARS]}  {group.title}", width)


def _csv(found: SpendingReport, by: str) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    about = ("title", "directory", "path") if by == "session" else ()
    writer.writerow([by, *about, "usd", *spending_json(Tally())])
    for group in found.groups[by]:
        figures = (group.spending.estimated_usd, *spending_json(group.spending).values())
        names = (group.name, *(getattr(group, column) for column in about))
        writer.writerow([*map(_cell, names), *(_round(figure) for figure in figures)])
    return out.getvalue().encode("utf-8", "replace")


def _round(figure: Json) -> Json:
    return round(figure, 6) if isinstance(figure, float) else figure


def _cell(name: str) -> str:
    """Make an untrusted name harmless for terminals and spreadsheets."""
    name = clean_text(name).strip()
    begins = unicodedata.normalize("NFKC", name[:1])
    return f"'{name}" if begins in ("=", "+", "-", "@") else name
