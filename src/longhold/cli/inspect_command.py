"""`longhold inspect`: a page about one session or a directory, as one HTML file."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click

from longhold.cli import options
from longhold.cli.output import report, say
from longhold.cli.target import NEWEST, CommandTarget, open_target
from longhold.core.log.reading import open_to_read
from longhold.core.messages.text import human_size, pluralize
from longhold.core.settings import PageSettings, Settings, load_settings
from longhold.core.settings.private_files import write_private
from longhold.errors import LongholdError, TranscriptError
from longhold.insight.context import session_window
from longhold.insight.pages.html import DOCTYPE, render, row_of
from longhold.insight.pages.session_data import SessionData, session_data
from longhold.insight.session_files import SessionFile, find_sessions


@click.command(epilog="Example: longhold inspect newest --html session.html")
@click.argument("target", default=NEWEST)
@click.option("--html", type=click.Path(path_type=Path), help="Write the page to this file.")
@options.as_json
def command(target: str, html: Path | None, as_json: bool) -> None:
    """Write a page about a session: context, cache, money, changes.

    TARGET is a session's id, a file, or a directory of sessions; by default this project's newest
    session. The page is one file that opens offline; secrets are masked and long texts cut.
    --json prints its data instead.
    """
    if html is None and not as_json:
        raise click.UsageError("name the file for the page: --html FILE; --json prints its data")
    settings = load_settings()
    found = list(_sessions(target, settings))
    if html is not None:
        rows = [row_of(data) for data in found]
        page = render(rows, {data.id: data for data in found}).encode()
        write_page(html, page)
        if not as_json:
            calls = sum(data.totals["calls"] for data in found)
            counts = f"{pluralize(len(found), 'session')}, {pluralize(calls, 'call')}"
            say(f"{html}: {counts}, {human_size(len(page))}; open it in a browser")
    if as_json:
        report(True, {"sessions": found}, ())


def _sessions(target: str, settings: Settings) -> Iterator[SessionData]:
    path = Path(target)
    if not path.is_dir():
        yield page_data(open_target(target), settings)
        return
    files = sorted(find_sessions([path]), key=read_modified, reverse=True)
    if not files:
        raise TranscriptError(path, "contains no session; name a file or another directory")
    most = settings.page.sessions
    if len(files) > most:
        say(f"{len(files):,} sessions; the page has the newest {most} (page.sessions)", err=True)
    room = settings.page.text_bytes // min(len(files), most)
    shared = replace(settings.page, text_bytes=room)
    for number, file in enumerate(files[:most], 1):
        try:
            yield page_data(open_target(str(file.path)), settings, page=shared, id=str(number))
        except LongholdError as error:
            say(f"left out: {error}", err=True)


def write_page(path: Path, page: bytes) -> None:
    """Write a private file. Replaces only another page."""
    if path.exists():
        with open_to_read(path, "page") as file:
            if file.read(len(DOCTYPE)) not in (DOCTYPE.encode(), b""):
                raise TranscriptError(path, "exists and is not a page; choose another name")
    write_private(path, page)


def read_modified(file: SessionFile) -> float:
    try:
        return file.path.stat().st_mtime
    except OSError:
        return 0.0


def page_data(
    opened: CommandTarget, settings: Settings, *, page: PageSettings | None = None, id: str = ""
) -> SessionData:
    return session_data(
        opened.history,
        id=id or opened.name,
        name=opened.name,
        format=opened.format,
        window=session_window(opened.format, opened.view, settings),
        settings=page or settings.page,
        problems=opened.problem_lines(),
    )
