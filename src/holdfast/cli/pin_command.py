"""`holdfast pin`: keep messages word for word through every compaction."""

import click

from holdfast.cli.edits import writing
from holdfast.cli.show import json_out, plain
from holdfast.cli.target import open_target
from holdfast.errors import NotInHistory
from holdfast.log.entries import Pinned
from holdfast.messages import text_of
from holdfast.view import View
from holdfast.view.items import Item

SAID_CHARS = 76
"""One line of a message is enough to know it by."""


@click.command(epilog="Example: holdfast pin newest 12 40")
@click.argument("session")
@click.argument("ids", type=int, nargs=-1)
@click.option("--off", is_flag=True, help="No longer keep them.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def command(session: str, ids: tuple[int, ...], off: bool, as_json: bool) -> None:
    """Keep messages IDS of SESSION word for word; without IDS, list those that are kept.

    `holdfast history` and `holdfast explain` show the numbers of messages.
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
        engine.record(Pinned(targets=ids, on=not off, why="the user's wish"))
        _show(engine.view, as_json)


def _show(view: View, as_json: bool) -> None:
    pinned = [item for item in view.items if view.is_pinned(item)]
    if as_json:
        json_out([{"id": item.id, "text": text_of(item.content)} for item in pinned])
    else:
        click.echo("\n".join(map(_line, pinned)) or "Nothing is pinned.")


def _line(item: Item) -> str:
    said = plain(" ".join(text_of(item.content).split()))
    return f"#{item.id}  {said if len(said) <= SAID_CHARS else said[: SAID_CHARS - 1] + '…'}"
