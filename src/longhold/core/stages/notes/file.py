"""The file of a session's notes: private, replaced atomically, never written through a symlink.

If the page was saved between reading and writing, the writer reads again.
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from operator import attrgetter
from pathlib import Path

from longhold.core.log import OpenLog
from longhold.core.log.entries import AnyEntry, Noted
from longhold.core.messages.text import cut, one_line
from longhold.core.settings.private_files import (
    PRIVATE_FILE,
    Overtaken,
    private_directory,
    replace_content,
)
from longhold.core.stages.notes.account import SessionAccount, engine_sections
from longhold.core.stages.notes.page import NotesPage, NotesSection, merge_texts, read_page
from longhold.core.tools.seen_files import SeenFile, stamp_of
from longhold.errors import StoreError

NAME = "notes.md"
DRAFT = "notes.draft.md"
TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class NotesOnDisk:
    page: NotesPage
    text: str = ""
    status: os.stat_result | None = None

    @property
    def sha256(self) -> str:
        return _hash_text(self.text)


class NotesFile:
    def __init__(self, directory: Path, template: NotesPage) -> None:
        self.directory = directory
        self.path = directory / NAME
        self.draft = directory / DRAFT
        self.template = template
        self._last: NotesOnDisk | None = None

    def read(self) -> NotesOnDisk:
        """Read the page. A missing file is the empty template."""
        _check_no_link(self.path)
        try:
            status = self.path.stat()
            if self._last is not None and _is_same(status, self._last.status):
                return self._last
            text = self.path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return NotesOnDisk(page=self.template)
        except OSError as error:
            raise StoreError(f"{self.path} cannot be read: {error.strerror}") from error
        self._last = NotesOnDisk(page=read_page(text, self.template), text=text, status=status)
        return self._last

    def write(self, page: NotesPage, found: NotesOnDisk) -> str:
        """Replace the page that was read. Return the hash of the new page."""
        text = page.render()
        if text == found.text:
            return found.sha256
        _check_no_link(self.path)
        try:
            status = found.status or self._begin(self.path)
            replace_content(self.path, text.encode(), status)
        except FileExistsError:
            raise Overtaken(str(self.path)) from None
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written: {error.strerror or error}") from error
        return _hash_text(text)

    def change(self, change: Callable[[NotesOnDisk], NotesPage]) -> tuple[NotesPage, str]:
        """Change the page. If it was saved in the meantime, apply the change to the newer page."""
        for _ in range(TRIES):
            found = self.read()
            page = change(found)
            try:
                return page, self.write(page, found)
            except Overtaken:
                continue
        raise StoreError(f"{self.path} kept being saved by another program; nothing was written")

    def begin_draft(self, page: NotesPage) -> SeenFile:
        """Write a draft for a fork to edit. Return the fork's record of having read it."""
        text = page.as_written().render()
        try:
            self.draft.unlink(missing_ok=True)
            status = replace_content(self.draft, text.encode(), self._begin(self.draft))
        except OSError as error:
            raise StoreError(
                f"{self.draft} cannot be written: {error.strerror or error}"
            ) from error
        return SeenFile(path=self.draft, stamp=stamp_of(status, text.encode()))

    def end_draft(self) -> NotesPage:
        try:
            text = self.draft.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise StoreError(f"{self.draft} cannot be read: {error.strerror}") from error
        finally:
            self.drop_draft()
        return read_page(text, self.template)

    def drop_draft(self) -> None:
        self.draft.unlink(missing_ok=True)

    def _begin(self, path: Path) -> os.stat_result:
        private_directory(self.directory)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE))
        return path.stat()


class KeptNotes(NotesFile):
    """Notes stored with a log that is not a file. The log's only writer writes them."""

    def __init__(self, log: OpenLog, template: NotesPage) -> None:
        super().__init__(log.path.with_suffix(""), template)
        self._log = log

    def read(self) -> NotesOnDisk:
        text = self._log.text(NAME)
        if not text:
            return NotesOnDisk(page=self.template)
        if self._last is None or self._last.text != text:
            self._last = NotesOnDisk(page=read_page(text, self.template), text=text)
        return self._last

    def write(self, page: NotesPage, found: NotesOnDisk) -> str:
        text = page.render()
        if text != found.text:
            self._log.keep_text(NAME, text)
        return _hash_text(text)


class NotesToRead(NotesFile):
    """Notes of a session in a store that another process may be writing."""

    def __init__(self, text: str, template: NotesPage) -> None:
        super().__init__(Path(), template)
        self._text = text

    def read(self) -> NotesOnDisk:
        page = read_page(self._text, self.template) if self._text else self.template
        return NotesOnDisk(page=page, text=self._text)


def notes_of(log: OpenLog, template: NotesPage) -> NotesFile:
    if log.has_file:
        return NotesFile(log.path.with_suffix(""), template)
    return KeptNotes(log, template)


def _hash_text(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()


def _is_same(one: os.stat_result, other: os.stat_result | None) -> bool:
    """True if the file was not saved since. Saving changes at least its timestamp."""
    saved = attrgetter("st_ino", "st_size", "st_mtime_ns")
    return other is not None and saved(one) == saved(other)


def _check_no_link(path: Path) -> None:
    if path.is_symlink():
        raise StoreError(f"{path} is a link; notes are written to a plain file. Remove it")


LINES = 6
LINE_CHARS = 160


LOG_TOKENS = 800
"""The limit for the engine's lines in a section; the log has the rest."""


def rebuild_page(found: NotesOnDisk, history: Iterable[AnyEntry]) -> NotesPage:
    return found.page.with_logs(engine_sections(SessionAccount.of(history), LOG_TOKENS))


def load_page(file: NotesFile, history: Iterable[AnyEntry]) -> NotesPage:
    found = file.read()
    return found.page if found.text else rebuild_page(found, history)


def merge_edits(
    found: NotesOnDisk, before: NotesOnDisk, base: NotesPage, theirs: NotesPage
) -> NotesPage:
    if found.text == before.text:
        return theirs
    settled = theirs.with_logs(_logs(found.page), _logs(base))
    written = merge_texts(base.written(), found.page.written(), settled.written())
    lead = found.page.lead if theirs.lead == base.lead else theirs.lead
    return replace(found.page.with_written(written), lead=lead)


def _logs(page: NotesPage) -> dict[str, str]:
    return {each.heading: each.log for each in page.sections if not each.is_edited}


def make_edit_entry(found: NotesOnDisk, page: NotesPage, last: Noted | None) -> Noted:
    return Noted(
        cursor=last.cursor if last else 0,
        by="person",
        tokens=page.tokens,
        context_tokens=last.context_tokens if last else 0,
        sha256=found.sha256,
    )


def last_noted(history: Iterable[AnyEntry]) -> Noted | None:
    return next((e for e in reversed(list(history)) if isinstance(e, Noted)), None)


def summarise_state(page: NotesPage) -> list[str]:
    title = _lines(page.section("Title"))[:1]
    return [*title, *(f"  {line}" for line in _lines(page.section("Current state"))[:LINES])]


def _lines(section: NotesSection | None) -> list[str]:
    lines = (*section.text.splitlines(), *section.log.splitlines()) if section else ()
    return [cut(one_line(line), LINE_CHARS) for line in lines if line.strip()]
