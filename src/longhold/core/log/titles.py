"""Find a session's title in its notes, its log, or the user's first words.

Only the start of the notes and the ends of the log are read, so that listing 1,000 sessions is
fast.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from longhold.core.log.entries import AnyEntry, Said, Titled
from longhold.core.messages import Text
from longhold.core.messages.text import clean_line
from longhold.core.messages.wrapped import strip_wrapped

END_BYTES = 64 << 10
TITLE_CHARS = 72
NOTHING_SAID = "(nothing said yet)"
NOTES = "notes.md"
_LOOKED_FOR = tuple(f'{{"entry":"{kind}"'.encode() for kind in ("said", "titled", "imported"))
_FRAMED = b'{"entry":"framed"'
_NOTED = re.compile(r"\A## Title\n(?:_[^\n]*_\n)?\s*(?:<!--[^\n]*-->\s*)?([^\n#<][^\n]*)")


def title_of(path: Path) -> str:
    with path.open("rb") as file:
        head = list(_head(file))[1:]
        file.seek(max(0, path.stat().st_size - END_BYTES))
        tail = file.read().split(b"\n")[1:]
    return title_in(_notes(path.with_suffix("") / NOTES), head, tail)


def title_in(notes: str, head: Sequence[bytes], tail: Sequence[bytes]) -> str:
    if noted := _NOTED.match(notes):
        return clean_line(noted[1], TITLE_CHARS)
    for line in (*reversed(tail), *reversed(head)):
        if isinstance(entry := _entry(line), Titled):
            return clean_line(entry.title, TITLE_CHARS)
    for line in head:
        entry = _entry(line)
        said = entry.content if isinstance(entry, Said) and not entry.hidden else ()
        blocks = (strip_wrapped(block.text) for block in said if isinstance(block, Text))
        if text := "\n".join(filter(None, blocks)):
            return clean_line(text, TITLE_CHARS)
    return NOTHING_SAID


def _head(file: BinaryIO) -> Iterator[bytes]:
    left = END_BYTES
    for line in file:
        yield line
        left -= 0 if line.startswith(_FRAMED) else len(line)
        if left <= 0:
            return


def _notes(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(END_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def _entry(line: bytes) -> AnyEntry | None:
    if not line.startswith(_LOOKED_FOR):
        return None
    try:
        entry: AnyEntry = msgspec.json.decode(line, type=AnyEntry)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return entry
