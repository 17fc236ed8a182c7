"""A session's notes: a Markdown page with sections, and its file.

The engine's lines are between two comments. If the checksum in the first comment does not match,
someone edited the lines. Such edits are kept. The file is never written through a symlink.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import zip_longest
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
from longhold.core.tools.context import SeenFile, stamp_of
from longhold.core.view.tokens import estimate_tokens
from longhold.errors import StoreError

MARK_CHARS = 8
EDITED = "0"  # a checksum that matches no text

_HEADING = re.compile(r"^## +(.+?)\s*$", re.MULTILINE)
_LOG = re.compile(
    r"^<!-- from the log ([0-9a-f]+) -->\n?(.*?)(?:^<!-- to here -->[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_ITALIC = re.compile(r"([_*])[^\n]+\1")
_BLANK_LINES = re.compile(r"\n{3,}")


@dataclass(frozen=True, slots=True, kw_only=True)
class NotesSection:
    heading: str
    description: str = ""
    text: str = ""  # text by a model or the user
    log: str = ""  # lines by the engine
    is_edited: bool = False

    def with_log(self, log: str, before: str = "") -> "NotesSection":
        """Replace the engine's lines, which were `before`, and keep other text."""
        fresh = _escape(log)
        text = self.text
        if self.is_edited:
            known = {*fresh.splitlines(), *_escape(before).splitlines()}
            kept = [line for line in self.log.splitlines() if line not in known]
            text = "\n".join(filter(None, (text, "\n".join(kept).strip())))
        return replace(self, text=text, log=fresh, is_edited=False)

    def get_text(self) -> str:
        """Return the text by a model or the user, including edits between the engine's lines."""
        return "\n".join(filter(None, (self.text, self.log))) if self.is_edited else self.text

    def render(self) -> str:
        body = [self.text] if self.text else []
        if self.log:
            mark = EDITED if self.is_edited else _mark(self.log)
            body.append(f"<!-- from the log {mark} -->\n{self.log}\n<!-- to here -->")
        head = f"## {self.heading}" + (f"\n{self.description}" if self.description else "")
        return "\n\n".join((head, *body))


@dataclass(frozen=True, slots=True, kw_only=True)
class NotesPage:
    sections: tuple[NotesSection, ...] = ()
    lead: str = ""

    def section(self, heading: str) -> NotesSection | None:
        return next((e for e in self.sections if _is_same_heading(e.heading, heading)), None)

    def get_texts(self) -> dict[str, str]:
        return {each.heading: each.get_text() for each in self.sections}

    def with_logs(
        self, logs: Mapping[str, str], before: Mapping[str, str] | None = None
    ) -> "NotesPage":
        was = before or {}
        sections = (
            each.with_log(logs.get(each.heading, ""), was.get(each.heading, ""))
            for each in self.sections
        )
        return replace(self, sections=tuple(sections))

    def with_written(self, written: Mapping[str, str]) -> "NotesPage":
        """Replace the text by a model or the user, including edits between the engine's lines."""
        left, sections = dict(written), list[NotesSection]()
        for each in self.sections:
            text = left.pop(each.heading, each.get_text()).strip("\n")
            log = "" if each.is_edited else each.log
            sections.append(replace(each, text=text, log=log, is_edited=False))
        new = (NotesSection(heading=h, text=t.strip("\n")) for h, t in left.items())
        return replace(self, sections=(*sections, *new))

    def as_written(self) -> "NotesPage":
        """Drop the engine's lines, but not edits made between them."""
        kept = (replace(e, text=e.get_text(), log="", is_edited=False) for e in self.sections)
        return replace(self, sections=tuple(kept))

    def render(self) -> str:
        parts = (*filter(None, (self.lead,)), *(each.render() for each in self.sections))
        return "\n\n".join(parts) + "\n"

    @property
    def tokens(self) -> int:
        return estimate_tokens(self.render())


def read_page(text: str, template: NotesPage) -> NotesPage:
    """Parse notes and restore missing sections of the template."""
    text = text.replace("\r\n", "\n")
    heads = list(_HEADING.finditer(text))
    lead = text[: heads[0].start()] if heads else text
    sections: list[NotesSection] = []
    for head, after in zip_longest(heads, heads[1:]):
        known = template.section(head[1])
        body = text[head.end() : after.start() if after else len(text)]
        _add(sections, _section(head[1], body, known))
    return NotesPage(sections=tuple(_restore_missing(sections, template)), lead=lead.strip())


def merge_texts(
    base: Mapping[str, str], mine: Mapping[str, str], theirs: Mapping[str, str]
) -> dict[str, str]:
    """Merge two versions of `base` by section. Lines of `mine` are appended and never lost."""
    names = dict.fromkeys((*theirs, *mine))
    return {h: _merged_section(*(page.get(h, "") for page in (base, mine, theirs))) for h in names}


def _merged_section(base: str, mine: str, theirs: str) -> str:
    if theirs == base:
        return mine
    if mine in (base, theirs):
        return theirs
    known = {line.strip() for text in (base, theirs) for line in text.splitlines()}
    added = [line for line in mine.splitlines() if line.strip() and line.strip() not in known]
    return "\n".join(filter(None, (theirs, *added)))


def _section(heading: str, body: str, known: NotesSection | None) -> NotesSection:
    found = _LOG.search(body)
    mark, log = (found[1], found[2].strip("\n")) if found else ("", "")
    own = (body[: found.start()] + _LOG.sub("", body[found.end() :]) if found else body).strip("\n")
    first, _, rest = own.partition("\n")
    description = known.description if known else ""
    if first.strip() == description or (not known and _ITALIC.fullmatch(first.strip())):
        description, own = first.strip(), rest
    return NotesSection(
        heading=known.heading if known else heading,
        description=description,
        text=_BLANK_LINES.sub("\n\n", own).strip("\n"),
        log=log,
        is_edited=bool(log) and mark != _mark(log),
    )


def _add(sections: list[NotesSection], new: NotesSection) -> None:
    for i, each in enumerate(sections):
        if _is_same_heading(each.heading, new.heading):
            text = "\n\n".join(filter(None, (each.get_text(), new.get_text())))
            log = "" if each.is_edited else each.log
            sections[i] = replace(each, text=text, log=log, is_edited=False)
            return
    sections.append(new)


def _restore_missing(sections: list[NotesSection], template: NotesPage) -> list[NotesSection]:
    placed = list(sections)
    for i, missing in enumerate(template.sections):
        if all(each.heading != missing.heading for each in sections):
            following = {each.heading for each in template.sections[i + 1 :]}
            at = (k for k, each in enumerate(placed) if each.heading in following)
            placed.insert(next(at, len(placed)), missing)
    return placed


def _is_same_heading(one: str, other: str) -> bool:
    return one.strip().lower() == other.strip().lower()


def _mark(log: str) -> str:
    return sha256(log.encode("utf-8", "replace")).hexdigest()[:MARK_CHARS]


def _escape(log: str) -> str:
    """Escape quoted text that looks like headings or comments of the page."""
    return _HEADING.sub(r" ## \1", log.replace("<!--", "<! --")).strip("\n")


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
        """Read the page. If the file is missing, return the empty template."""
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
        """Replace the page that was read, and return the hash of the new page."""
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
        """Change the page. If another program saved it meanwhile, change the newer page."""
        for _ in range(TRIES):
            found = self.read()
            page = change(found)
            try:
                return page, self.write(page, found)
            except Overtaken:
                continue
        raise StoreError(f"{self.path} kept being saved by another program; nothing was written")

    def begin_draft(self, page: NotesPage) -> SeenFile:
        text = page.as_written().render()
        try:
            self.draft.unlink(missing_ok=True)
            status = replace_content(self.draft, text.encode(), self._begin(self.draft))
        except OSError as error:
            raise StoreError(f"{self.draft} cannot be written: {error}") from error
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
    """Notes of a log that is not a file. Only the log's writer may write them."""

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
    """Return whether the file was not saved in between, by its timestamps."""
    saved = attrgetter("st_ino", "st_size", "st_mtime_ns")
    return other is not None and saved(one) == saved(other)


def _check_no_link(path: Path) -> None:
    if path.is_symlink():
        raise StoreError(f"{path} is a link, but notes need a plain file; remove the link")


LINES, LINE_CHARS = 6, 160
LOG_TOKENS = 800  # limit for the engine's lines in a section


def load_page(file: NotesFile, history: Iterable[AnyEntry]) -> NotesPage:
    found = file.read()
    if found.text:
        return found.page
    return found.page.with_logs(engine_sections(SessionAccount.of(history), LOG_TOKENS))


def merge_edits(
    found: NotesOnDisk, before: NotesOnDisk, base: NotesPage, theirs: NotesPage
) -> NotesPage:
    if found.text == before.text:
        return theirs
    settled = theirs.with_logs(_logs(found.page), _logs(base))
    written = merge_texts(base.get_texts(), found.page.get_texts(), settled.get_texts())
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
