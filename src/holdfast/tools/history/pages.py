"""Pages of a text by lines or characters, and one-line snippets of it.

Pages that follow one another join to the exact text: a page ends with a whole line where one
fits, else inside it, and then says with which character to continue. Lines and characters count
from 1, and both ends of a range belong to it.
"""

import re
from bisect import bisect_right
from dataclasses import dataclass

from holdfast.log.secrets import find_secrets
from holdfast.messages.cut import printable_line

_RANGE = re.compile(r"\s*(\d{1,12})\s*(?:(-|:|\.\.)\s*(\d{1,12})?)?\s*")


class NoSuchRange(ValueError):
    """The range is malformed or past the end; the message says what there is."""


class LineRange:
    def __init__(self, text: str) -> None:
        self.text = text
        ends = [match.end() for match in re.finditer("\n", text)]
        if not ends or ends[-1] != len(text):
            ends.append(len(text))
        self.ends = ends if text else []
        """Where each line ends, its line break included."""

    def line_at(self, position: int) -> int:
        return min(bisect_right(self.ends, position) + 1, max(1, len(self.ends)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPage:
    text: str
    lines: tuple[int, int]
    """First and last line that are shown, whole or in part."""
    chars: tuple[int, int]
    of_lines: int
    of_chars: int
    more: str
    """The range with which to go on, as `lines "201-"`; nothing at the end."""


def page(whole: LineRange, *, lines: str = "", chars: str = "", limit_chars: int = 0) -> RecordPage:
    """Cut a page out of a text; a limit of 0 means no limit."""
    if lines and chars:
        raise NoSuchRange("give lines or chars, not both")
    if chars:
        start, stop = _chars(whole, chars)
    else:
        start, stop = _lines(whole, lines)
    cut = min(stop, start + limit_chars) if limit_chars else stop
    if cut < stop and not chars:
        last_break = whole.text.rfind("\n", start, cut) + 1
        cut = last_break if last_break > start else cut
    return _page(whole, start, cut, by_chars=bool(chars))


def _page(whole: LineRange, start: int, cut: int, *, by_chars: bool) -> RecordPage:
    more = ""
    if cut < len(whole.text):
        is_whole_line = whole.text[cut - 1 : cut] == "\n"
        last = whole.line_at(cut - 1)
        more = f'lines "{last + 1}-"' if is_whole_line and not by_chars else f'chars "{cut + 1}-"'
    return RecordPage(
        text=whole.text[start:cut],
        lines=(whole.line_at(start), whole.line_at(max(start, cut - 1))) if whole.ends else (0, 0),
        chars=(min(start + 1, cut), cut),
        of_lines=len(whole.ends),
        of_chars=len(whole.text),
        more=more,
    )


def _lines(whole: LineRange, wanted: str) -> tuple[int, int]:
    count = len(whole.ends)
    if not wanted or not count:
        return 0, len(whole.text)
    first, last = _range(wanted, count, "line")
    return (whole.ends[first - 2] if first > 1 else 0), whole.ends[last - 1]


def _chars(whole: LineRange, wanted: str) -> tuple[int, int]:
    if not whole.text:
        return 0, 0
    first, last = _range(wanted, len(whole.text), "character")
    return first - 1, last


def _range(wanted: str, count: int, what: str) -> tuple[int, int]:
    """Parse `5`, `5-9` or `5-`; the end may lie past what there is, the beginning may not."""
    found = _RANGE.fullmatch(wanted)
    if found is None:
        raise NoSuchRange(f"{wanted!r} is not a range; give one such as '5', '5-9' or '5-'")
    first = int(found[1])
    last = first if not found[2] else int(found[3]) if found[3] else count
    if first < 1 or first > count:
        raise NoSuchRange(f"there are {count:,} {what}s; there is no {what} {first:,}")
    if last < first:
        raise NoSuchRange(f"{wanted!r} ends before it begins")
    return first, min(last, count)


AROUND_CHARS = 400
"""Looked at on both sides for a secret that a cut would make unrecognisable."""


def find_words(text: str, query: str) -> int | None:
    """Return where a query's first word or phrase stands in a text, ignoring case."""
    words = [phrase or word for phrase, word in re.findall(r'"([^"]+)"|([^\s"]+)', query)]
    for word in (query.strip().strip('"'), *words):
        parts = [re.escape(part) for part in re.findall(r"\w+", word)] or [re.escape(word)]
        found = re.search(r"\W+".join(parts), text, re.IGNORECASE) if word else None
        if found:
            return found.start()
    return None


def snippet(text: str, place: int, limit_chars: int) -> str:
    """Return the surroundings of a place on one line, secrets masked."""
    start = max(text.rfind("\n", 0, place) + 1, place - limit_chars // 3)
    line_end = text.find("\n", place)
    stop = min(start + limit_chars, len(text) if line_end < 0 else line_end)
    lo = max(0, start - AROUND_CHARS)
    hidden = _without_secrets(text[lo : stop + AROUND_CHARS])[start - lo : stop - lo]
    shown = printable_line(hidden, limit_chars)
    return f"{shown}…" if stop < len(text) and shown else shown


def _without_secrets(text: str) -> str:
    """Replace secrets by stars, character for character, so that positions stay."""
    for found in find_secrets(text):
        text = text[: found.start] + "*" * (found.end - found.start) + text[found.end :]
    return text
