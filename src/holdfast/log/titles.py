"""The title of a session in a list: from its notes, its log, or the user's first words.

Only the beginning of the notes and the ends of the log are read, so that listing a thousand
sessions is quick.
"""

import re
from pathlib import Path

import msgspec

from holdfast.log.entries import AnyEntry, Said, Titled
from holdfast.messages import text_of

END_BYTES = 64 << 10
"""How much of each end of the log is looked at."""
TITLE_CHARS = 72
"""Longer ones are cut; a list has one line for each session."""


NOTES = "notes.md"
_NOTED = re.compile(r"\A## Title\n(?:_[^\n]*_\n)?\s*(?:<!--[^\n]*-->\s*)?([^\n#<][^\n]*)")
"""The first line under the first heading of a session's notes, behind the one that is always there."""


def title_of(path: Path) -> str:
    """Find a session's title in its notes, or near the ends of its log."""
    if noted := _noted(path.with_suffix("") / NOTES):
        return _cut(noted)
    with path.open("rb") as file:
        head = file.readlines(END_BYTES)[1:]  # whole lines, however long the last one is
        file.seek(max(0, path.stat().st_size - END_BYTES))
        tail = file.read().split(b"\n")[1:]
    for line in (*reversed(tail), *reversed(head)):
        if isinstance(entry := _entry(line), Titled):
            return _cut(entry.title)
    for line in head:
        if (
            isinstance(entry := _entry(line), Said)
            and not entry.hidden
            and text_of(entry.content).strip()
        ):
            return _cut(text_of(entry.content))
    return "(nothing said yet)"


def _noted(path: Path) -> str:
    try:
        with path.open("rb") as file:
            found = _NOTED.match(file.read(END_BYTES).decode("utf-8", "replace"))
    except OSError:
        return ""
    return found[1] if found else ""


def _entry(line: bytes) -> AnyEntry | None:
    if not line.startswith((b'{"entry":"said"', b'{"entry":"titled"')):
        return None
    try:
        entry: AnyEntry = msgspec.json.decode(line, type=AnyEntry)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return entry


def _cut(text: str) -> str:
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1] + "…"
