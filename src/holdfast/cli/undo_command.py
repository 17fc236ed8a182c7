"""`holdfast undo`: undo a change to what the model sees."""

import click

from holdfast.cli import options
from holdfast.cli.edits import edit, list_changes
from holdfast.cli.output import report
from holdfast.cli.target import open_target
from holdfast.turn.undo import undo


@click.command(epilog="Example: holdfast undo newest")
@options.session
@click.argument("entry", type=int, required=False, default=0)
@click.option("--list", "is_list", is_flag=True, help="Only list the changes.")
@options.as_json
def command(session: str, entry: int, is_list: bool, as_json: bool) -> None:
    """Undo a change to what the model sees.

    ENTRY is a number that `--list` shows; by default the newest change that took history out of
    the view of SESSION. The model sees what it saw before, and no layer repeats the change by
    itself. Nothing is removed from the log: `holdfast redo` applies the change again.
    """
    if is_list:
        found = list_changes(open_target(session).history)
        lines = [change.line() for change in found]
        report(as_json, found, lines or ["Nothing has changed the view."])
    else:
        edit(session, entry, undo, as_json)
