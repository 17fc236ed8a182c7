"""`longhold inspect`: a page about one session, as one HTML file."""

from pathlib import Path

import click

from longhold.cli import options
from longhold.cli.output import report, say
from longhold.cli.target import NEWEST, CommandTarget, open_target
from longhold.core.log.reading import open_to_read
from longhold.core.messages.text import human_size, pluralize
from longhold.core.settings import Settings, load_settings
from longhold.core.settings.private_files import write_private
from longhold.errors import TranscriptError
from longhold.insight.context import session_window
from longhold.insight.pages.html import DOCTYPE, render, row_of
from longhold.insight.pages.session_data import SessionData, session_data


@click.command(epilog="Example: longhold inspect newest --html session.html")
@click.argument("target", default=NEWEST)
@click.option("--html", type=click.Path(path_type=Path), help="Write the page to this file.")
@options.as_json
def command(target: str, html: Path | None, as_json: bool) -> None:
    """Write a page about a session: context, cache, money, changes.

    TARGET is a session's id or a file. The default is this project's newest session. The page is
    one file that opens offline, with secrets masked and long texts cut. --json prints the data
    instead.
    """
    if html is None and not as_json:
        raise click.UsageError("write the page with --html FILE, or print its data with --json")
    data = page_data(open_target(target), load_settings())
    if html is not None:
        page = render([row_of(data)], {data.id: data}).encode()
        write_page(html, page)
        if not as_json:
            calls = pluralize(data.totals["calls"], "call")
            say(f"{html}: {calls}, {human_size(len(page))}; open it in a browser")
    if as_json:
        report(True, {"sessions": [data]}, ())


def write_page(path: Path, page: bytes) -> None:
    """Write a private file. An existing file is replaced only if it is a page."""
    if path.exists():
        with open_to_read(path, "page") as file:
            if file.read(len(DOCTYPE)) not in (DOCTYPE.encode(), b""):
                raise TranscriptError(path, "exists and is not a page; choose another name")
    write_private(path, page)


def page_data(opened: CommandTarget, settings: Settings, *, id: str = "") -> SessionData:
    return session_data(
        opened.history,
        id=id or opened.name,
        name=opened.name,
        format=opened.format,
        window=session_window(opened.format, opened.view, settings),
        settings=settings.page,
        problems=opened.problem_lines(),
    )
