"""`longhold redo`: re-apply an undone change."""

import click

from longhold.cli import options
from longhold.cli.undo_command import edit
from longhold.core.turn.undo import redo


@click.command(epilog="Example: longhold redo newest")
@options.session
@click.argument("entry", type=options.message_number, required=False, default=0)
@options.as_json
def command(session: str, entry: int, as_json: bool) -> None:
    """Re-apply an undone change.

    ENTRY is a number that `longhold undo SESSION --list` shows; by default the newest that was
    undone in SESSION.
    """
    edit(session, entry, redo, as_json)
