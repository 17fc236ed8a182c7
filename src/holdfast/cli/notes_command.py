"""`holdfast notes`: a session's notes; shown, edited, told again from the log."""

from pathlib import Path

import click

from holdfast.cli.show import harmless, json_out
from holdfast.errors import HoldfastError, LogLocked
from holdfast.log import Log, load
from holdfast.log.store import FileStore, FoundSession
from holdfast.settings import home, load_settings
from holdfast.stages.notes.asking import template
from holdfast.stages.notes.file import NotesFile
from holdfast.stages.notes.page import NotesPage, read_page
from holdfast.stages.notes.pages import edited, last_noted, rebuilt, shown, together


@click.command(epilog="Example: holdfast notes newest")
@click.argument("session")
@click.option("--edit", is_flag=True, help="Open them in $EDITOR; what you write is kept.")
@click.option("--rebuild", is_flag=True, help="Tell the program's own lines again from the log.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
def command(session: str, edit: bool, rebuild: bool, as_json: bool) -> None:
    """Show the notes of SESSION (an id, or `newest`): where it stands and what was learnt.

    The lines between comments come from the log; everything else a model or a person wrote, and
    nobody but them changes it. A session that kept no notes is told from its log.
    """
    found = FileStore().find(session)
    file = NotesFile(found.directory, template(home()))
    settings = load_settings(Path(found.header.directory or ".")).notes
    history = load(found.path).entries
    if rebuild:
        before = file.read()
        file.write(rebuilt(before, history, settings), before)
    if edit:
        _edit(found, file, shown(file, history, settings))
    page = shown(file, history, settings)
    if as_json:
        json_out(_as_json(found, file, page))
    else:
        click.echo(harmless(page.render()), nl=False)


def _edit(session: FoundSession, file: NotesFile, page: NotesPage) -> None:
    """Let a person change the page, and have the log know of it."""
    before = file.read()
    page = before.page if before.text else page
    written = click.edit(page.render(), extension=".md", require_save=True)
    if written is None:
        click.echo("Nothing was changed.", err=True)
        return
    theirs = read_page(written, file.template)
    file.change(lambda found: together(found, before, page, theirs))
    try:
        with Log.open(session.path) as log:
            log.append(edited(file.read(), file.read().page, last_noted(log.entries)))
    except LogLocked:
        return  # whoever works on the session sees the page itself
    except HoldfastError as error:
        click.echo(f"the log does not know of it: {error}", err=True)


def _as_json(session: FoundSession, file: NotesFile, page: NotesPage) -> dict[str, object]:
    return {
        "session": session.id,
        "path": str(file.path),
        "is_kept": file.path.exists(),
        "tokens": page.tokens,
        "sections": [
            {
                "heading": each.heading,
                "description": each.description,
                "written": each.written(),
                "from_the_log": "" if each.is_edited else each.log,
            }
            for each in page.sections
        ],
    }
