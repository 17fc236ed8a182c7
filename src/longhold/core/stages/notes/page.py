"""A page of notes: its sections, parsed from Markdown and written back. Pure.

The engine's lines are between two comments. The first has a checksum: if it does not match, someone
edited those lines, and their text is kept.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import zip_longest

from longhold.core.view.tokens import estimate_tokens

MARK_CHARS = 8
EDITED = "0"
"""Matches no text."""

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
    text: str = ""
    """Written by a model or a person."""
    log: str = ""
    """Written by the engine."""
    is_edited: bool = False

    def with_log(self, log: str, before: str = "") -> "NotesSection":
        """Replace the engine's lines (`before`: the previous ones), keeping others' text."""
        fresh = _escape(log)
        text = self.text
        if self.is_edited:
            known = {*fresh.splitlines(), *_escape(before).splitlines()}
            kept = [line for line in self.log.splitlines() if line not in known]
            text = "\n".join(filter(None, (text, "\n".join(kept).strip())))
        return replace(self, text=text, log=fresh, is_edited=False)

    def written(self) -> str:
        """Return the text by a model or a person, including edits between the engine's lines."""
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
        return next(
            (each for each in self.sections if _is_same_heading(each.heading, heading)), None
        )

    def written(self) -> dict[str, str]:
        return {each.heading: each.written() for each in self.sections}

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
        """Replace text by a model or a person, including their edits between the engine's lines."""
        sections = [
            replace(
                each,
                text=written.get(each.heading, each.written()).strip("\n"),
                log="" if each.is_edited else each.log,
                is_edited=False,
            )
            for each in self.sections
        ]
        known = {each.heading for each in self.sections}
        new = (
            NotesSection(heading=h, text=t.strip("\n"))
            for h, t in written.items()
            if h not in known
        )
        return replace(self, sections=(*sections, *new))

    def as_written(self) -> "NotesPage":
        """Drop the engine's lines, but not edits made between them."""
        kept = (replace(e, text=e.written(), log="", is_edited=False) for e in self.sections)
        return replace(self, sections=tuple(kept))

    def render(self) -> str:
        parts = (*filter(None, (self.lead,)), *(each.render() for each in self.sections))
        return "\n\n".join(parts) + "\n"

    @property
    def tokens(self) -> int:
        return estimate_tokens(self.render())


def read_template(text: str) -> NotesPage:
    return read_page(text, NotesPage())


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
    """Merge two versions of `base` by section. Lines of `mine` are appended, so none is lost."""
    headings = dict.fromkeys((*theirs, *mine))
    return {
        h: _merged_section(base.get(h, ""), mine.get(h, ""), theirs.get(h, "")) for h in headings
    }


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
            text = "\n\n".join(filter(None, (each.written(), new.written())))
            log = "" if each.is_edited else each.log
            sections[i] = replace(each, text=text, log=log, is_edited=False)
            return
    sections.append(new)


def _restore_missing(sections: list[NotesSection], template: NotesPage) -> list[NotesSection]:
    """Insert each missing section before the next template section that the page has."""
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
    """Escape quoted text that looks like the page's own headings and comments."""
    return _HEADING.sub(r" ## \1", log.replace("<!--", "<! --")).strip("\n")
