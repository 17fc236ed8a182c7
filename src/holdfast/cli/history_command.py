"""`holdfast history`: search and open what happened in a session, whatever the model still sees."""

import dataclasses
import sys

import click

from holdfast.cli.show import harmless, json_out, plain
from holdfast.cli.target import CommandTarget, open_target
from holdfast.messages import block_to_wire
from holdfast.settings import load_settings
from holdfast.tools.history.history import History, is_shown
from holdfast.tools.history.records import FoundRecords, OpenedRecord
from holdfast.tools.history.tool import describe


@click.command(epilog='Example: holdfast history newest "login bug"')
@click.argument("target")
@click.argument("query", required=False, default="")
@click.option("--id", help="Open this: a number such as #123, a tool use's id, or #41-#57.")
@click.option("--file", default="", help="Only what read or changed this file.")
@click.option("--lines", default="", help="With --id: these lines, such as 40-80.")
@click.option("--chars", default="", help="With --id: these characters.")
@click.option("--skip", default=0, help="Leave out so many of the records found.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def command(
    target: str,
    query: str,
    id: str | None,
    file: str,
    lines: str,
    chars: str,
    skip: int,
    as_json: bool,
) -> None:
    """Search TARGET (a session's id, `newest`, or a file) for QUERY, or open a part of it.

    Words are found in what was said, answered, shown by tools and summarised, also where it was
    cleared, collapsed or compacted since. What --id opens is printed as it was.
    """
    if id is None and not query.strip() and not file:
        raise click.UsageError("give words to find, --file or --id; try --help")
    if id is not None and (query.strip() or file):
        raise click.UsageError("--id opens one record; words and --file search")
    if id is None and (lines or chars):
        raise click.UsageError("--lines and --chars need --id")
    history = _history(open_target(target))
    try:
        if id is not None:
            _show(history.open(id, lines=lines, chars=chars), as_json)
        else:
            _list(history.search(query, file=file, skip=skip), skip, as_json)
    finally:
        history.close()


def _history(target: CommandTarget) -> History:
    """Take a target's past; looking makes no directory where there is none."""
    directory = target.directory
    return History(
        lambda: target.history,
        directory=directory if directory is not None and directory.is_dir() else None,
        session=target.name,
        settings=load_settings().history,
        shows=lambda n: is_shown(target.view, n),
    )


def _show(opened: OpenedRecord, as_json: bool) -> None:
    if as_json:
        found = dataclasses.asdict(dataclasses.replace(opened, media=()))
        json_out(found | {"media": [block_to_wire(block) for block in opened.media]})
        return
    if opened.trouble:
        click.echo(f"incomplete: {plain(opened.trouble)}", err=True)
    text = opened.page.text
    click.echo(harmless(text) if sys.stdout.isatty() else text, nl=False)


def _list(found: FoundRecords, skip: int, as_json: bool) -> None:
    if as_json:
        json_out(found)
        return
    for hit in found.hits:
        click.echo(plain(describe(hit)))
    reached = skip + len(found.hits)
    if not found.total:
        click.echo("Nothing matches.", err=True)
    elif reached < found.total:
        click.echo(f"{found.total - reached} more with --skip {reached}", err=True)
