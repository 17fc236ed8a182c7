"""`longhold sessions notes`: show or edit a session's notes."""

from collections.abc import Sequence
from pathlib import Path

import click

from longhold.cli import options
from longhold.cli.output import report, say
from longhold.cli.target import CommandTarget, open_target
from longhold.core.log import Log, OpenLog
from longhold.core.log.entries import AnyEntry
from longhold.core.log.stores import default_store
from longhold.core.settings import home
from longhold.core.stages.notes.file import (
    NAME,
    NotesFile,
    NotesToRead,
    last_noted,
    load_page,
    make_edit_entry,
    merge_edits,
    notes_of,
    read_page,
)
from longhold.core.stages.notes.update import template
from longhold.errors import LogLocked, LongholdError


@click.command(epilog="Example: longhold sessions notes newest")
@options.session
@click.option(
    "--edit", is_flag=True, help="Edit the notes in $EDITOR. Later updates keep your text."
)
@options.as_json
def command(session: str, edit: bool, as_json: bool) -> None:
    """Show or edit a session's notes.

    SESSION is an id or `newest`. Longhold generates the lines between comments from the log. It
    never overwrites other lines, which a model or a person wrote. For a session without notes or
    another agent's file, the command prints generated notes.
    """
    is_file = Path(session).exists()
    target = open_target(session if is_file else default_store().find(session, by_prefix=True).id)
    file = _notes_of(target)
    if edit:
        if is_file:
            raise click.UsageError("the notes of a file cannot be changed; import it first")
        if target.path is None:
            with default_store().open(target.name) as log:
                kept = notes_of(log, file.template)
                if _edit(kept, log.entries):
                    _record(kept, log)
            file = _notes_of(target)
        else:
            _edit_unlocked(target.path, file, target.history)
    page = load_page(file, target.history)
    is_kept = bool(file.read().text)
    document = {
        "session": target.name,
        "path": str(file.path) if is_kept and target.path else "",
        "is_kept": is_kept,
        "tokens": page.tokens,
        "sections": [
            {
                "heading": each.heading,
                "description": each.description,
                "written": each.get_text(),
                "from_the_log": "" if each.is_edited else each.log,
            }
            for each in page.sections
        ],
    }
    report(as_json, document, [page.render().removesuffix("\n")])


def _notes_of(target: CommandTarget) -> NotesFile:
    if target.header is not None and target.path is None:  # because the session is in a database
        text = default_store().beside(target.name).get(NAME, b"").decode("utf-8", "replace")
        return NotesToRead(text, template(home()))
    return NotesFile(target.directory or Path(target.name), template(home()))


def _edit(file: NotesFile, history: Sequence[AnyEntry]) -> bool:
    before, page = file.read(), load_page(file, history)
    written = click.edit(page.render(), extension=".md", require_save=True)
    if written is None:
        say("Nothing was changed.", err=True)
        return False
    theirs = read_page(written, file.template)
    file.change(lambda found: merge_edits(found, before, page, theirs))
    return True


def _record(file: NotesFile, log: OpenLog) -> None:
    log.append(make_edit_entry(file.read(), file.read().page, last_noted(log.entries)))


def _edit_unlocked(path: Path, file: NotesFile, history: Sequence[AnyEntry]) -> None:
    """Edit notes in files, even while a process has the session open."""
    if not _edit(file, history):
        return
    try:
        with Log.open(path) as log:
            _record(file, log)
    except LogLocked:
        return  # because the process that has the session open reads the notes itself
    except LongholdError as error:
        say(f"the log could not record the edit: {error}", err=True)
