"""Removes comments from Markdown and finds its imports. Pure.

HTML block comments are notes to people and are dropped; imports are `@path` words in prose, not
in code. Both functions read a text once, line by line, so that no input makes them slow. `places`
resolves the paths.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator

_FENCE = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(`{3,}(?=[^`]*$)|~{3,})")
_COMMENT = re.compile(r" {0,3}<!--")
_LIST_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_INDENTED = re.compile(r"(?: {4}| {0,3}\t)[ \t]*\S")
_IMPORT = re.compile(r"(?:^|(?<=[\s(]))@((?:\\ |[^\s\\])+)", re.M)
_PATH_START = re.compile(r"[\w.~/]")


def without_comments(text: str) -> str:
    """Remove block comments; those in code or in the middle of a line stay."""
    return "\n".join(line for line, _ in _lines(text)).strip("\n")


def imports_in(text: str) -> tuple[str, ...]:
    """List the paths a text imports, as written, each once."""
    if "@" not in text:
        return ()
    prose = "\n".join("" if is_code else line.rstrip() for line, is_code in _lines(text))
    found = (
        match[1].replace("\\ ", " ")
        for paragraph in prose.split("\n\n")
        if "@" in paragraph
        for match in _IMPORT.finditer(_without_spans(paragraph))
    )
    return tuple(dict.fromkeys(path for path in found if _PATH_START.match(path)))


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the lines outside comments, each with whether it is code."""
    lines = text.split("\n")
    fence, place, can_close = "", 0, True
    indent = _Indentation()
    while place < len(lines):
        line = lines[place]
        if not fence and can_close and _COMMENT.match(line):
            end = _comment_end(lines, place)
            can_close = end is not None  # if one is never closed, no later one is
            if end is not None:
                place = end
                continue
        if fence:
            yield line, True
            fence = "" if _closes(line, fence) else fence
        elif opened := _FENCE.match(line):
            fence = opened[1]
            yield line, True
        else:
            yield line, indent.is_code(line)
        place += 1


def _comment_end(lines: list[str], place: int) -> int | None:
    """Return the line after a comment; text after its end on the same line stays, as a line."""
    start = lines[place].index("<!--") + 2
    for number in range(place, len(lines)):
        end = lines[number].find("-->", start if number == place else 0)
        if end >= 0:
            rest = lines[number][end + 3 :]
            if not rest.strip():
                return number + 1
            lines[number] = rest
            return number
    return None


def _closes(line: str, fence: str) -> bool:
    inner = line.lstrip(" \t>").rstrip()
    return len(inner) >= len(fence) and inner == fence[0] * len(inner)


class _Indentation:
    """Recognises indented code outside lists, where indentation means something else."""

    def __init__(self) -> None:
        self._may_begin = True
        self._in_list = False

    def is_code(self, line: str) -> bool:
        if not line.strip():
            self._may_begin = True
            return False
        if _INDENTED.match(line) and self._may_begin and not self._in_list:
            return True
        self._may_begin = False
        self._in_list = bool(_LIST_ITEM.match(line)) or (self._in_list and line[0] in " \t")
        return False


def _without_spans(paragraph: str) -> str:
    """Remove code between equal runs of backticks; an unmatched run is plain text."""
    runs = list(re.finditer(r"`+", paragraph))
    places: dict[int, list[int]] = {}
    for number, run in enumerate(runs):
        places.setdefault(len(run[0]), []).append(number)
    kept, done, number = [], 0, 0
    while number < len(runs):
        run = runs[number]
        equal = places[len(run[0])]
        later = bisect_right(equal, number)
        number += 1
        if later < len(equal):
            kept.append(paragraph[done : run.start()])
            done, number = runs[equal[later]].end(), equal[later] + 1
    return "`".join((*kept, paragraph[done:]))
