"""`longhold pin`: keep messages word for word through every compaction."""

import click

from longhold.cli import options
from longhold.cli.output import report
from longhold.cli.target import open_target
from longhold.cli.undo_command import writing
from longhold.core.messages.text import clean_line
from longhold.core.turn.pin import list_pinned, pin, unpin
from longhold.core.view import View


@click.command(epilog="Example: longhold pin newest 12 40")
@options.session
@click.argument("ids", type=options.message_number, nargs=-1)
@click.option("--off", is_flag=True, help="Unpin them.")
@options.as_json
def command(session: str, ids: tuple[int, ...], off: bool, as_json: bool) -> None:
    """Keep messages word for word through every compaction.

    IDS are message numbers of SESSION, as `longhold history` and `longhold explain` show them: 12
    or '#12'. If a message was compacted, it returns at the end of the view. Without IDS, the
    command lists the pinned messages.
    """
    if not ids:
        if off:
            raise click.UsageError("--off needs the numbers of messages")
        _show(open_target(session).view, as_json)
        return
    with writing(session) as engine:
        (unpin if off else pin)(engine, ids)
        _show(engine.view, as_json)


def _show(view: View, as_json: bool) -> None:
    found = list_pinned(view)
    report(
        as_json,
        [{"id": id, "text": text} for id, text in found],
        [f"#{id}  {clean_line(text)}" for id, text in found] or ["Nothing is pinned."],
    )
