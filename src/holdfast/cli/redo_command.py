"""`holdfast redo`: bring back what was taken back."""

import click

from holdfast.cli.edits import writing
from holdfast.cli.show import json_out, plain, tokens
from holdfast.turn.undo import redo


@click.command(epilog="Example: holdfast redo newest")
@click.argument("session")
@click.argument("entry", type=int, required=False, default=0)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def command(session: str, entry: int, as_json: bool) -> None:
    """Bring back ENTRY of SESSION, by default the newest that `holdfast undo` took back.

    What there is to bring back is listed by `holdfast undo SESSION --list`.
    """
    with writing(session) as engine:
        before = engine.fullness().used_tokens
        said = redo(engine, entry)
        after = engine.fullness().used_tokens
    if as_json:
        json_out({"said": said, "before_tokens": before, "after_tokens": after})
    else:
        click.echo(f"{plain(said)}\n{tokens(before)} → {tokens(after)} tokens")
