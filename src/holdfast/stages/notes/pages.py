"""Notes of sessions at rest: shown, rebuilt from the log, edited.

What a model or a person wrote is only in the file; the engine's part can be rebuilt for any session,
even one that never kept notes.
"""

from collections.abc import Iterable
from dataclasses import replace

from holdfast.log.entries import AnyEntry, Noted
from holdfast.messages.cut import cut, one_line
from holdfast.settings import NotesSettings
from holdfast.stages.notes.account import SessionAccount
from holdfast.stages.notes.engine_lines import engine_sections
from holdfast.stages.notes.file import NotesFile, NotesOnDisk
from holdfast.stages.notes.page import NotesPage, NotesSection, merged

LINES = 6
LINE_CHARS = 160


def rebuilt(found: NotesOnDisk, history: Iterable[AnyEntry], settings: NotesSettings) -> NotesPage:
    return found.page.with_logs(engine_sections(SessionAccount.of(history), settings.log_tokens))


def shown(file: NotesFile, history: Iterable[AnyEntry], settings: NotesSettings) -> NotesPage:
    """Return the page on disk, or one built from the log if there is none."""
    found = file.read()
    return found.page if found.text else rebuilt(found, history, settings)


def together(
    found: NotesOnDisk, before: NotesOnDisk, base: NotesPage, theirs: NotesPage
) -> NotesPage:
    """Merge a person's edits with what was written to the file meanwhile."""
    if found.text == before.text:
        return theirs
    settled = theirs.with_logs(_logs(found.page), _logs(base))
    written = merged(base.written(), found.page.written(), settled.written())
    lead = found.page.lead if theirs.lead == base.lead else theirs.lead
    return replace(found.page.with_written(written), lead=lead)


def _logs(page: NotesPage) -> dict[str, str]:
    return {each.heading: each.log for each in page.sections if not each.is_edited}


def edited(found: NotesOnDisk, page: NotesPage, last: Noted | None) -> Noted:
    """Make the entry for a person's edit; the cursor stays."""
    return Noted(
        cursor=last.cursor if last else 0,
        by="person",
        tokens=page.tokens,
        context_tokens=last.context_tokens if last else 0,
        sha256=found.sha256,
    )


def last_noted(history: Iterable[AnyEntry]) -> Noted | None:
    return next((e for e in reversed(list(history)) if isinstance(e, Noted)), None)


def where_you_were(page: NotesPage) -> list[str]:
    title = _lines(page.section("Title"))[:1]
    return [*title, *(f"  {line}" for line in _lines(page.section("Current state"))[:LINES])]


def _lines(section: NotesSection | None) -> list[str]:
    lines = (*section.text.splitlines(), *section.log.splitlines()) if section else ()
    return [cut(one_line(line), LINE_CHARS) for line in lines if line.strip()]
