"""`longhold sessions notes`: show or edit a session's notes."""

from pathlib import Path

import click

from longhold.cli import options
from longhold.cli.output import report, say
from longhold.cli.target import CommandTarget, open_target
from longhold.core.log import Log, load
from longhold.core.log.store import FileStore, FoundSession, Store, StoredSession
from longhold.core.log.stores import default_store
from longhold.core.settings import home
from longhold.core.stages.notes.file import (
    NAME,
    NotesFile,
    NotesPage,
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
@click.option("--edit", is_flag=True, help="Edit them in $EDITOR. Updates keep your text.")
@options.as_json
def command(session: str, edit: bool, as_json: bool) -> None:
    """Show or edit a session's notes.

    SESSION is an id or `newest`. Longhold generates the lines between comments from the log. It
    never overwrites other lines, which a model or a person wrote. If a session has no notes, or for
    another agent's file, the command prints generated notes.
    """
    if Path(session).exists():
        if edit:
            raise click.UsageError("the notes of a file cannot be changed; import it first")
        _show_file(open_target(session), as_json)
        return
    store = default_store()
    if not isinstance(store, FileStore):
        _run_over_store(store, store.find(session, by_prefix=True), edit, as_json)
        return
    found = store.find(session, by_prefix=True)
    file = NotesFile(found.directory, template(home()))
    history = load(found.path).entries
    if edit:
        _edit(found, file, load_page(file, history))
    page = load_page(file, history)
    report(as_json, _as_json(found, file, page), [page.render().removesuffix("\n")])


def _run_over_store(store: Store, found: StoredSession, edit: bool, as_json: bool) -> None:
    """Show or change notes in a database. A change needs the session's lock."""
    if edit:
        with store.open(found.id) as log:
            kept = notes_of(log, template(home()))
            page = load_page(kept, log.entries)
            theirs = click.edit(page.render(), extension=".md")
            if theirs is not None:
                kept.write(read_page(theirs, kept.template), kept.read())
                log.append(make_edit_entry(kept.read(), kept.read().page, last_noted(log.entries)))
    text = store.beside(found.id).get(NAME, b"").decode("utf-8", "replace")
    file = NotesToRead(text, template(home()))
    page = load_page(file, store.load(found.id).entries)
    document = {"session": found.id, "path": "", "is_kept": bool(text), **_sections(page)}
    report(as_json, document, [page.render().removesuffix("\n")])


def _show_file(target: CommandTarget, as_json: bool) -> None:
    file = NotesFile(target.directory or Path(target.name), template(home()))
    page = load_page(file, target.history)
    document = {"session": target.name, "path": "", "is_kept": False, **_sections(page)}
    report(as_json, document, [page.render().removesuffix("\n")])


def _edit(session: FoundSession, file: NotesFile, page: NotesPage) -> None:
    before = file.read()
    page = before.page if before.text else page
    written = click.edit(page.render(), extension=".md", require_save=True)
    if written is None:
        say("Nothing was changed.", err=True)
        return
    theirs = read_page(written, file.template)
    file.change(lambda found: merge_edits(found, before, page, theirs))
    try:
        with Log.open(session.path) as log:
            log.append(make_edit_entry(file.read(), file.read().page, last_noted(log.entries)))
    except LogLocked:
        return  # because the process that has the session open reads the page itself
    except LongholdError as error:
        say(f"the log could not record the edit: {error}", err=True)


def _as_json(session: FoundSession, file: NotesFile, page: NotesPage) -> dict[str, object]:
    return {
        "session": session.id,
        "path": str(file.path),
        "is_kept": file.path.exists(),
        **_sections(page),
    }


def _sections(page: NotesPage) -> dict[str, object]:
    return {
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
