"""The numbered headings of a summary, told from numbered lines of a list.

A text comes in, with whoever knows the names sections go by; the lines that part it go out. A
line is a heading by its words, or by its mark (`#` or `**`) and its place: its number is above
the one before, and no line has the words for it. A list within a section has neither, so what a
summary lists is never taken for what it says.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

_NUMBERED = re.compile(
    r"^[ \t]*(?P<mark>#+[ \t]*\**|\*\*)?[ \t]*(?P<number>[1-9])[.)][ \t]*\**[ \t]*"
    r"(?P<title>[^\n]*?)[ \t]*[*:]*[ \t]*$",
    re.MULTILINE,
)

Naming: TypeAlias = Callable[[int, str], str]
"""Given a number and a title, says which section's that is; nothing if it is nobody's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadedPart:
    number: int
    title: str
    text: str
    """What stands under the heading."""
    whole: str
    """The same with the heading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    number: int
    title: str
    name: str
    is_marked: bool
    start: int
    end: int


def parts(text: str, naming: Naming) -> tuple[str, list[HeadedPart]]:
    """Split a summary at its headings; return the text before the first one separately."""
    heads = _headings(text, naming)
    ends = [*(head.start for head in heads[1:]), len(text)]
    lead = text[: heads[0].start] if heads else text
    found = [
        HeadedPart(
            number=head.number,
            title=head.title,
            text=text[head.end : end].strip(),
            whole=text[head.start : end].strip(),
        )
        for head, end in zip(heads, ends, strict=False)
    ]
    return lead.strip(), found


def _headings(text: str, naming: Naming) -> list[_Line]:
    lines = list(_numbered(text, naming))
    worded = {line.number for line in lines if line.name}
    heads: list[_Line] = []
    for line in lines:
        if _is_heading(line, heads, worded):
            heads.append(line)
    return heads


def _numbered(text: str, naming: Naming) -> Iterator[_Line]:
    for found in _NUMBERED.finditer(text):
        number, title = int(found["number"]), found["title"]
        yield _Line(
            number=number,
            title=title,
            name=naming(number, title),
            is_marked=bool(found["mark"]),
            start=found.start(),
            end=found.end(),
        )


def _is_heading(line: _Line, before: list[_Line], worded: set[int]) -> bool:
    comes_next = not before or line.number > before[-1].number
    if not line.name:
        return line.is_marked and comes_next and line.number not in worded
    if any(line.name == head.name for head in before):
        return False
    return line.is_marked or comes_next
