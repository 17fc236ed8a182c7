"""What people see of notes: where they were, when they come back to a session. Pure."""

from collections.abc import Iterator

from holdfast.messages.cut import cut, one_line
from holdfast.stages.notes.page import NotesPage, NotesSection

LINES = 6
"""Of a section: the first screen is read at a glance."""
LINE_CHARS = 160


def where_you_were(page: NotesPage) -> list[str]:
    """Tell title and current state in a few lines; nothing of a page that says nothing."""
    title, state = page.section("Title"), page.section("Current state")
    return [*_first(title, 1), *(f"  {line}" for line in _first(state, LINES))]


def _first(section: NotesSection | None, most: int) -> list[str]:
    if section is None:
        return []
    return list(_lines(section))[:most]


def _lines(section: NotesSection) -> Iterator[str]:
    for line in (*section.text.splitlines(), *section.log.splitlines()):
        if line.strip():
            yield cut(one_line(line), LINE_CHARS)
