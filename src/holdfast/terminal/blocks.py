"""Where Markdown that is still coming can be cut: before it lie whole blocks, which never change.

A block that is whole is printed once and stays; the rest is drawn again until it is whole.
"""

import re
from collections.abc import Iterator

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def whole_blocks(text: str) -> int:
    """Return how many leading characters are whole blocks, followed by a blank line.

    Inside fenced code nothing is whole; a list goes on behind a blank line if what follows it is
    indented or another item.
    """
    cut, position, was_blank = 0, 0, False
    for line, was_code, _ in _lines(text):
        if was_blank and not was_code and line.strip() and not _goes_on(line):
            cut = position
        position += len(line)
        was_blank = not line.strip() and line.endswith("\n")
    return cut


def split_long(text: str) -> tuple[str, str]:
    """Split text without a whole block where a line or a word ends; code is code in both parts."""
    at = text.rfind("\n") + 1 or text.rfind(" ") + 1 or len(text)
    head, rest = text[:at], text[at:]
    *_, (_, _, opening) = _lines(head)
    if not (fence := _FENCE.match(opening)):
        return head, rest
    end = "" if head.endswith("\n") else "\n"
    return f"{head}{end}{fence[1]}\n", f"{opening.rstrip()}\n{rest}"


def with_breaks(text: str) -> str:
    """Mark the ends of lines as breaks: who writes to a terminal means them; code is as it is."""
    return "".join(
        line if was_code or is_code or not line[:-1].strip() else f"{line.rstrip()}  \n"
        for line, was_code, is_code in _lines(text + "\n")
    )


def _lines(text: str) -> Iterator[tuple[str, bool, str]]:
    """Yield each line, whether it stands inside a fence, and the opening line of one behind it."""
    opened, fence = "", ""
    for line in text.splitlines(keepends=True):
        found, was_open = _FENCE.match(line), bool(fence)
        if found and not fence:
            opened, fence = line, found[1]
        elif found and _closes(fence, found[1], line):
            opened, fence = "", ""
        yield line, was_open, opened


def _goes_on(line: str) -> bool:
    return line.startswith(("  ", "\t")) or bool(re.match(r"(?:[-*+]|\d{1,9}[.)]) ", line))


def _closes(opened: str, mark: str, line: str) -> bool:
    return mark[0] == opened[0] and len(mark) >= len(opened) and not line.strip().strip(mark[0])
