"""`holdfast undo`: take back what changed the view of a session."""

import click

from holdfast.cli.edits import change_line, changes, writing
from holdfast.cli.show import json_out, plain, tokens
from holdfast.cli.target import open_target
from holdfast.turn.undo import undo


@click.command(epilog="Example: holdfast undo newest")
@click.argument("session")
@click.argument("entry", type=int, required=False, default=0)
@click.option("--list", "is_list", is_flag=True, help="List what could be taken back; do nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def command(session: str, entry: int, is_list: bool, as_json: bool) -> None:
    """Take back ENTRY of SESSION, by default the newest that took history out of the view.

    The model sees what it saw before, and no layer does the same again by itself. Nothing is
    removed from the log: `holdfast redo` brings it back.
    """
    if is_list:
        found = changes(open_target(session).history)
        if as_json:
            json_out(found)
        else:
            click.echo("\n".join(map(change_line, found)) or "Nothing has changed the view.")
        return
    with writing(session) as engine:
        before = engine.fullness().used_tokens
        said = undo(engine, entry)
        after = engine.fullness().used_tokens
    if as_json:
        json_out({"said": said, "before_tokens": before, "after_tokens": after})
    else:
        click.echo(f"{plain(said)}\n{tokens(before)} → {tokens(after)} tokens")
