"""`holdfast history`: search and open a session's history, also what the model no longer sees."""

import dataclasses

import click

from holdfast.cli import options
from holdfast.cli.output import harmless, json_out, plain, report, say, text_out
from holdfast.cli.target import CommandTarget, open_target
from holdfast.log.entries import ViewChange
from holdfast.messages import block_to_wire
from holdfast.settings import load_settings
from holdfast.tools.history.history import History, is_shown
from holdfast.tools.history.records import FoundRecords, OpenedRecord
from holdfast.tools.history.tool import describe, quoted_passage


@click.command(epilog='Example: holdfast history newest "login bug"')
@options.target
@click.argument("query", required=False, default="")
@click.option(
    "--id", help="Open a step or message (123 or '#123'), a range (41-57) or a tool use by its id."
)
@click.option("--file", default="", help="Only records that read or changed this file.")
@click.option("--lines", default="", help="With --id: only these lines, such as 40-80.")
@click.option("--chars", default="", help="With --id: only these characters.")
@click.option("--skip", default=0, help="Skip this many results.")
@options.as_json
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
    """Search a session's whole history, or open a part of it.

    TARGET is a session's id, `newest`, or a file. QUERY is a question in plain words; "a phrase"
    must stand in what is found, file:PATH and kind:KIND (user, answer, error, edit, command, read,
    …) narrow it. Found are messages, answers, tool results and summaries, also those since
    cleared, collapsed or compacted. --id prints what it opens exactly as it was; of an answer also
    the results of its calls.
    """
    if id is None and not query.strip() and not file:
        raise click.UsageError("give words to search for, --file or --id; try --help")
    if id is not None and (query.strip() or file):
        raise click.UsageError("--id opens a record, words and --file search; choose one")
    if id is None and (lines or chars):
        raise click.UsageError("--lines and --chars need --id")
    opened = open_target(target)
    history = _history(opened)
    try:
        if id is not None:
            _show(history.open(id, lines=lines, chars=chars), as_json)
        else:
            has_left = any(isinstance(entry, ViewChange) for entry in opened.history)
            _list(history.search(query, file=file, skip=skip), as_json, has_left=has_left)
    finally:
        history.close()


def _history(target: CommandTarget) -> History:
    """Open the history of a target; where there is no directory, none is made for its index."""
    directory = target.directory
    return History(
        lambda: target.history,
        directory=directory if directory is not None and directory.is_dir() else None,
        results=target.results,
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
        say(f"incomplete: {plain(opened.trouble)}", err=True)
    text = opened.page.text
    text_out(text)


def _list(found: FoundRecords, as_json: bool, *, has_left: bool) -> None:
    lines = (
        part
        for hit in found.hits
        for part in (describe(hit, marks_view=has_left), quoted_passage(hit))
    )
    report(as_json, found, map(harmless, lines))
    if as_json:
        return
    if not found.total:
        say("Nothing matches.", err=True)
    elif found.reached < found.total:
        say(f"{found.total - found.reached} more with --skip {found.reached}", err=True)
