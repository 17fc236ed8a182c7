"""Where Markdown that is still coming can be cut: before it lie whole blocks, which never change.

A block that is whole is printed once and stays; the rest is drawn again until it is whole.
"""

import re

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def whole_blocks(text: str) -> int:
    """Return how many leading characters are whole blocks, followed by a blank line.

    Inside fenced code nothing is whole; a list goes on behind a blank line if what follows it is
    indented or another item.
    """
    cut, position, fence, was_blank = 0, 0, "", False
    for line in text.splitlines(keepends=True):
        if was_blank and not fence and line.strip() and not _goes_on(line):
            cut = position
        found = _FENCE.match(line)
        if found and not fence:
            fence = found[1]
        elif found and _closes(fence, found[1], line):
            fence = ""
        position += len(line)
        was_blank = not line.strip() and line.endswith("\n")
    return cut


def with_breaks(text: str) -> str:
    """Mark the ends of lines as breaks: who writes to a terminal means them; code is as it is."""
    lines, fence = [], ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        is_text = not fence and not found and line.strip()
        lines.append(f"{line}  " if is_text else line)
        if found and not fence:
            fence = found[1]
        elif found and _closes(fence, found[1], line):
            fence = ""
    return "\n".join(lines)


def _goes_on(line: str) -> bool:
    return line.startswith(("  ", "\t")) or bool(re.match(r"(?:[-*+]|\d{1,9}[.)]) ", line))


def _closes(opened: str, mark: str, line: str) -> bool:
    return mark[0] == opened[0] and len(mark) >= len(opened) and not line.strip().strip(mark[0])
