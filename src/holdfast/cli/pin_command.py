"""`holdfast pin`: keep messages word for word through every compaction."""

import click

from holdfast.cli import options
from holdfast.cli.output import one_line, report
from holdfast.cli.target import open_target
from holdfast.cli.undo_command import writing
from holdfast.errors import NotInHistory
from holdfast.log.entries import Pinned
from holdfast.messages import text_of
from holdfast.view import View


@click.command(epilog="Example: holdfast pin newest 12 40")
@options.session
@click.argument("ids", type=int, nargs=-1)
@click.option("--off", is_flag=True, help="Unpin them.")
@options.as_json
def command(session: str, ids: tuple[int, ...], off: bool, as_json: bool) -> None:
    """Keep messages word for word through every compaction.

    IDS are numbers of messages of SESSION, as `holdfast history` and `holdfast explain` show
    them. Without IDS, list what is pinned.
    """
    if not ids:
        if off:
            raise click.UsageError("--off needs the numbers of messages")
        _show(open_target(session).view, as_json)
        return
    with writing(session) as engine:
        for n in ids:
            if engine.view.item_of(n) is None:
                raise NotInHistory(
                    f"message {n} is not in the view; `holdfast undo` may bring it back"
                )
        engine.record(Pinned(targets=ids, on=not off, why="the user asked for it"))
        _show(engine.view, as_json)


def _show(view: View, as_json: bool) -> None:
    pinned = [(item.id, text_of(item.content)) for item in view.items if view.is_pinned(item)]
    report(
        as_json,
        [{"id": id, "text": text} for id, text in pinned],
        [f"#{id}  {one_line(text)}" for id, text in pinned] or ["Nothing is pinned."],
    )
