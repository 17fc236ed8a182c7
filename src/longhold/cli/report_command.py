"""`longhold report`: the cost of sessions, the avoidable part, and the best remedies."""

import csv
import io
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import click

from longhold.cli import options
from longhold.cli.output import encoded_out, format_unrecorded, progress_bar, report, say
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
    SpendingGroup,
    SpendingReport,
    make_report,
    spending_json,
)
from longhold.insight.session_files import SessionFile, default_roots, find_sessions
from longhold.insight.session_index import SessionIndex, open_index

RECENT_DAYS = 30
"""Days covered by default; without a path, older sessions need --since."""
SHOWN = {"day": 14, "project": 8, "model": 8, "agent": 6, "source": 6, "session": 10}
"""Rows per table in the overview; --by shows all of one."""
NAME_CHARS, TITLE_CHARS = 44, 50
DAYS = {"d": 1, "w": 7, "m": 30, "y": 365}


@click.command(epilog="Example: longhold report --since 7d --by project")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option("--since", default="", help="From this day on: 2026-01-31, 7d, 4w, or all.")
@click.option("--by", type=click.Choice(DIMENSIONS), help="Only this table, all of it.")
@click.option("--csv", "as_csv", is_flag=True, help="Print the table (--by, or days) as CSV.")
@click.option(
    "--html", "page", type=click.Path(path_type=Path), help="Write a page of it to this file."
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

    Without PATHS: the sessions of Claude Code, Codex, pi and Longhold where they keep them, of the
    last 30 days. PATHS are directories or files. Sub-agents and summaries are counted in. What was
    read is kept in an index under Longhold's home; the next time only what changed is read.
    """
    roots = list(paths) or default_roots()
    found = _report(roots, _first_day(since or ("all" if paths else f"{RECENT_DAYS}d")))
    if not found.sessions and not paths and not since:
        found = _report(roots, "")
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
    say(f"{out} is the page of this report; open it in a browser", err=True)


def _report(roots: Sequence[Path], since: str) -> SpendingReport:
    with fresh_index(find_sessions(roots)) as index:
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
    """Return the first day to include; '' for all."""
    if since == "all":
        return ""
    if ago := re.fullmatch(r"(\d{1,4})([dwmy])", since):
        days = int(ago[1]) * DAYS[ago[2]]
        return (date.fromtimestamp(time.time()) - timedelta(days=days - 1)).isoformat()
    try:
        return date.fromisoformat(since).isoformat()
    except ValueError:
        raise click.UsageError(
            f"--since {since!r} is no day; give one such as 2026-01-31, 7d, 4w or all"
        ) from None


def _lines(found: SpendingReport, by: str | None, roots: Sequence[Path]) -> Iterator[str]:
    if not found.sessions:
        yield "No session with calls was found. Looked in:"
        yield from (f"  {clean_text(str(root))}" for root in roots)
        yield "Name a directory or files, or give --since all."
        return
    yield from _verdict(found)
    for name in (by,) if by else SHOWN:
        groups = found.groups[name]
        if by or len(groups) > 1 or name == "session":
            yield from _table(name, groups, len(groups) if by else SHOWN[name])
    if found.unreadable:
        count = pluralize(len(found.unreadable), "file")
        yield f"\n{count} could not be read as sessions; --json lists them"


def _verdict(found: SpendingReport) -> Iterator[str]:
    total = found.total
    about = "About " if total.unrecorded_usd else ""
    yield (
        f"{about}{dollars(total.estimated_usd)} in {pluralize(found.days, 'day')}: "
        f"{pluralize(found.sessions, 'session')}, {pluralize(total.calls, 'call')}, "
        f"{tokens(total.total_tokens)} tokens"
    )
    if about:
        missing = format_unrecorded(total.unrecorded_output, total.unrecorded_calls)
        yield f"  {dollars(total.usd)} recorded, and {missing}"
    if total.unpriced_calls:
        yield f"  {pluralize(total.unpriced_calls, 'call')} of models without a known price: not included"
    avoidable = [loss for loss in found.losses if loss.is_avoidable and loss.usd > 0]
    if avoidable:
        reasons = ", ".join(f"{dollars(loss.usd)} because {loss.words}" for loss in avoidable)
        share = percent(found.avoidable_usd, total.estimated_usd)
        yield f"{dollars(found.avoidable_usd)} of it, {share}, was avoidable: {reasons}."
    else:
        yield "Nothing of it was avoidable by keeping the cache warm."
    if found.remedies:
        yield "\nWhat would have saved most"
    for number, remedy in enumerate(found.remedies, 1):
        yield f"  {number}. about {dollars(remedy.usd)}: {remedy.what}"


def _table(name: str, groups: Sequence[SpendingGroup], most: int) -> Iterator[str]:
    in_order = name in ("day", "month")
    shown = groups[-most:] if in_order else groups[:most]
    yield f"\n{f'by {name}':<{NAME_CHARS}} {'cost':>9} {'avoidable':>10} {'calls':>7} {'tokens':>8}"
    for group in shown:
        spent = group.spending
        place = shorten_path(clean_text(group.name), NAME_CHARS)
        avoidable = dollars(spent.lost_usd) if spent.lost_usd else ""
        yield (
            f"{place:<{NAME_CHARS}} {dollars(spent.estimated_usd):>9} {avoidable:>10}"
            f" {spent.calls:>7,} {tokens(spent.total_tokens):>8}"
            f"  {clean_line(group.title, TITLE_CHARS)}"
        ).rstrip()
    if rest := len(groups) - len(shown):
        yield f"{rest:,} {'earlier' if in_order else 'more'}; --by {name} lists all"


def _csv(found: SpendingReport, by: str) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([by, "usd", *spending_json(Tally())])
    for group in found.groups[by]:
        spent = group.spending
        writer.writerow([_cell(group.name), spent.estimated_usd, *spending_json(spent).values()])
    return out.getvalue().encode("utf-8", "replace")


def _cell(name: str) -> str:
    """Keep a terminal from obeying an untrusted name, and a spreadsheet from evaluating it."""
    name = clean_text(name).strip()
    return f"'{name}" if name[:1] in ("=", "+", "-", "@") else name
