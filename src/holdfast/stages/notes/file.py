"""The file a session's notes lie in: private, replaced in one step, and never written through a link.

Whoever is killed at whatever point leaves the old page or the new one. A page that somebody saved
in the moment between reading and writing is not overwritten: `Overtaken` is raised, and who wants
to write reads again. A draft is a file of the same kind that nobody else knows.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from holdfast.errors import StoreError
from holdfast.settings.files import (
    PRIVATE_FILE,
    Overtaken,
    private_directory,
    replace_content,
)
from holdfast.stages.notes.page import NotesPage, read_page
from holdfast.tools.files import SeenFile, stamp_of

NAME = "notes.md"
DRAFT = "notes.draft.md"
TRIES = 3
"""How often a page is read again because somebody saved it in the moment between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotesOnDisk:
    """A page as it lies on disk."""

    page: NotesPage
    text: str = ""
    status: os.stat_result | None = None
    """None while there is no such file."""

    @property
    def sha256(self) -> str:
        """By which a page is known again."""
        return hashed(self.text)


class NotesFile:
    """The notes of one session."""

    def __init__(self, directory: Path, template: NotesPage) -> None:
        self.directory = directory
        self.path = directory / NAME
        self.draft = directory / DRAFT
        self.template = template
        self._last: NotesOnDisk | None = None

    def read(self) -> NotesOnDisk:
        """Read the page as it is; one that is missing is the empty template."""
        _check_no_link(self.path)
        try:
            status = self.path.stat()
            if self._last is not None and _same(status, self._last.status):
                return self._last
            text = self.path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return NotesOnDisk(page=self.template)
        except OSError as error:
            raise StoreError(f"{self.path} cannot be read: {error.strerror}") from error
        self._last = NotesOnDisk(page=read_page(text, self.template), text=text, status=status)
        return self._last

    def write(self, page: NotesPage, found: NotesOnDisk) -> str:
        """Put a page in the place of the one that was found; give what it is known by."""
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
            raise StoreError(f"{self.path} cannot be written: {error.strerror}") from error
        return hashed(text)

    def change(self, change: Callable[[NotesOnDisk], NotesPage]) -> tuple[NotesPage, str]:
        """Change the page; if somebody saves it meanwhile, change theirs."""
        for _ in range(TRIES):
            found = self.read()
            page = change(found)
            try:
                return page, self.write(page, found)
            except Overtaken:
                continue
        raise StoreError(
            f"{self.path} was saved by somebody else again and again; nothing was written"
        )

    def begin_draft(self, page: NotesPage) -> SeenFile:
        """Lay out a page for a fork to work on; give what it is to know of the file."""
        text = page.as_written().render()
        try:
            self.draft.unlink(missing_ok=True)
            status = replace_content(self.draft, text.encode(), self._begin(self.draft))
        except OSError as error:
            raise StoreError(f"{self.draft} cannot be written: {error.strerror}") from error
        return SeenFile(path=self.draft, stamp=stamp_of(status, text.encode()))

    def end_draft(self) -> NotesPage:
        """Take what a fork made of the draft, and the draft away."""
        try:
            text = self.draft.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise StoreError(f"{self.draft} cannot be read: {error.strerror}") from error
        finally:
            self.drop_draft()
        return read_page(text, self.template)

    def drop_draft(self) -> None:
        """Take the draft away."""
        self.draft.unlink(missing_ok=True)

    def _begin(self, path: Path) -> os.stat_result:
        """Make an empty file that only its owner may read."""
        private_directory(self.directory)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE))
        return path.stat()


def hashed(text: str) -> str:
    """Give what a text is known by."""
    return sha256(text.encode("utf-8", "replace")).hexdigest()


def _same(one: os.stat_result, other: os.stat_result | None) -> bool:
    """Say whether a file is the one that was read; whoever saves one changes at least its time."""
    return other is not None and (one.st_ino, one.st_size, one.st_mtime_ns) == (
        other.st_ino,
        other.st_size,
        other.st_mtime_ns,
    )


def _check_no_link(path: Path) -> None:
    if path.is_symlink():
        raise StoreError(f"{path} is a link; notes are written to a plain file. Remove it")
