"""Pages of a text by lines or characters, passages for the index, and one-line snippets.

Consecutive pages join to the exact text. A page ends at a line break if possible. Otherwise it
names the character where the next page begins. Ranges count from 1 and include both ends.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from longhold.core.messages.secrets import find_secrets
from longhold.core.messages.text import clean_line
from longhold.core.messages.words import unspaced_words
from longhold.core.tools.history.question import HistoryQuestion

_RANGE = re.compile(r"\s*(\d{1,12})\s*(?:(-|:|\.\.)\s*(\d{1,12})?)?\s*")


class NoSuchRange(ValueError):
    """The range is malformed or past the end. The message has the valid range."""


class LineRange:
    def __init__(self, text: str) -> None:
        self.text = text
        ends = [match.end() for match in re.finditer("\n", text)]
        if not ends or ends[-1] != len(text):
            ends.append(len(text))
        self.ends = ends if text else []
        """The end of each line, including its line break."""

    def line_at(self, position: int) -> int:
        return min(bisect_right(self.ends, position) + 1, max(1, len(self.ends)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordPage:
    text: str
    lines: tuple[int, int]
    chars: tuple[int, int]
    of_lines: int
    of_chars: int
    more: str
    """The range to continue with, such as `lines "201-"`, or "" at the end."""


def page(whole: LineRange, *, lines: str = "", chars: str = "", limit_chars: int = 0) -> RecordPage:
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
    """Parse `5`, `5-9` or `5-`. Only the end may be past the last position."""
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


PASSAGE_CHARS = 1_000
"""The length of a paragraph or two, or of a function."""
OVERLAP_CHARS = 150
"""Overlap of passages, so that every phrase is complete in one of them."""


def passages(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(text):
        stop = min(start + PASSAGE_CHARS, len(text))
        if stop < len(text):
            stop = _line_start(text, start + PASSAGE_CHARS // 2, stop)
        yield start, stop
        if stop == len(text):
            return
        start = _line_start(text, stop - OVERLAP_CHARS, stop - OVERLAP_CHARS // 2)


def _line_start(text: str, low: int, high: int) -> int:
    for mark in ("\n", " "):
        if (found := text.rfind(mark, low, high)) >= 0:
            return found + 1
    return high


def passage_at(text: str, place: int) -> int:
    return next((i for i, (_, stop) in enumerate(passages(text)) if stop > place), 0)


AROUND_CHARS = 400
"""Context that is searched on both sides, because a cut secret is not recognised."""


def find_words(
    text: str, question: HistoryQuestion, start: int = 0, stop: int | None = None
) -> int | None:
    """Return the start of the line with the most words of a question."""
    forms = [_match_beginning(word) for word in (*question.words, *question.phrases)]
    if not forms:
        return None
    best, place, at = 0, None, start
    for line in text[start:stop].splitlines(keepends=True):
        count = sum(1 for form in forms if form.search(line))
        if count > best:
            best, place = count, at
        at += len(line)
    return place


def find_matches(text: str, question: HistoryQuestion) -> list[tuple[int, int]]:
    """Return the positions of a question's words in a text, in order and without overlaps."""
    forms = [_match_beginning(word) for word in (*question.phrases, *question.words)]
    found: list[tuple[int, int]] = []
    for start, stop in sorted(match.span() for form in forms for match in form.finditer(text)):
        if found and start < found[-1][1]:
            found[-1] = found[-1][0], max(stop, found[-1][1])
        else:
            found.append((start, stop))
    return found


def _match_beginning(word: str) -> re.Pattern[str]:
    """Match a word by its stem, or the words of a phrase in order."""
    if unspaced_words(word):
        return re.compile(re.escape(word))
    parts = re.findall(r"[^\W_]+", word) or [word]
    stems = [re.escape(part[: max(4, len(part) - 2)]) + r"[^\W_]*" for part in parts]
    return re.compile(r"(?<![^\W_])" + r"[\W_]+".join(stems), re.IGNORECASE)


def snippet(text: str, place: int, limit_chars: int) -> str:
    start = max(text.rfind("\n", 0, place) + 1, place - limit_chars // 3)
    line_end = text.find("\n", place)
    stop = min(start + limit_chars, len(text) if line_end < 0 else line_end)
    shown = clean_line(mask_range(text, start, stop), limit_chars)
    return f"{shown}…" if stop < len(text) and shown else shown


def mask_range(text: str, start: int, stop: int) -> str:
    """Return part of a text with secrets masked, including secrets at the edges of the part."""
    lo = max(0, start - AROUND_CHARS)
    around = text[lo : stop + AROUND_CHARS]
    for found in find_secrets(around):
        around = around[: found.start] + "*" * (found.end - found.start) + around[found.end :]
    return around[start - lo : stop - lo]
