"""Numbered lines of a file, at most so many lines and tokens, with how to continue.

A line that is too long is cut. A large file is read in pieces and no further than needed, so
that neither its size nor the length of a line costs memory.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from holdfast.tools.context import ToolContext

LINE_CHARS = 2_000
"""Longer lines are data or minified code, of which more does not help."""
CHUNK_BYTES = 1 << 20
"""Pieces in which a large file is skipped over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePage:
    text: str
    lines: range
    """Which lines these are, from 1."""


def page_of_text(
    text: str, first: int, limit: int, max_tokens: int, tool_context: ToolContext
) -> FilePage:
    if not text:
        return FilePage(text="[The file is empty.]", lines=range(1, 1))
    every = text.removesuffix("\n").split("\n")
    if first > len(every):
        said = f"[The file has {len(every):,} lines; there is no line {first:,}.]"
        return FilePage(text=said, lines=range(first, first))
    chosen = [_cut(line) for line in every[first - 1 : first - 1 + limit]]
    kept = _fitting(chosen, first, max_tokens, tool_context.count_tokens)
    last = first + len(kept) - 1
    remark = ""
    if last < len(every):
        remark = (
            f"\n[Lines {first:,} to {last:,} of {len(every):,}; continue with offset {last + 1}.]"
        )
    return FilePage(text="\n".join(kept) + remark, lines=range(first, last + 1))


def page_of_large(
    path: Path, first: int, limit: int, max_tokens: int, tool_context: ToolContext
) -> FilePage:
    """Show lines of a file that is not read whole."""
    with path.open("rb") as file:
        if not _skip_lines(file, first - 1):
            said = f"[The file has fewer than {first:,} lines.]"
            return FilePage(text=said, lines=range(first, first))
        chosen, has_more = _take_lines(file, limit)
    kept = _fitting(chosen, first, max_tokens, tool_context.count_tokens)
    last = first + len(kept) - 1
    remark = ""
    if has_more or len(kept) < len(chosen):
        remark = (
            f"\n[Lines {first:,} to {last:,}; there are more: continue with offset {last + 1}.]"
        )
    return FilePage(text="\n".join(kept) + remark, lines=range(first, last + 1))


def _cut(line: str, unread_bytes: int = 0) -> str:
    if len(line) <= LINE_CHARS and not unread_bytes:
        return line
    return f"{line[:LINE_CHARS]}… [{len(line) - LINE_CHARS + unread_bytes:,} more characters]"


def _fitting(
    lines: Sequence[str], first: int, max_tokens: int, count: Callable[[str], int]
) -> list[str]:
    """Number as many lines as the budget allows, but at least one."""
    written = [f"{number:>6}\t{line}" for number, line in enumerate(lines, start=first)]
    if count("\n".join(written)) <= max_tokens:
        return written
    low, high = 1, len(written)
    while low < high:
        middle = (low + high + 1) // 2
        if count("\n".join(written[:middle])) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    return written[:low]


def _skip_lines(file: BufferedReader, count: int) -> bool:
    """Skip so many lines; return whether anything follows."""
    while count > 0:
        piece = file.read(CHUNK_BYTES)
        if not piece:
            return False
        found = piece.count(b"\n")
        if found >= count:
            place = -1
            for _ in range(count):
                place = piece.index(b"\n", place + 1)
            file.seek(place + 1 - len(piece), 1)
            break
        count -= found
    return bool(file.peek(1))


def _take_lines(file: BufferedReader, limit: int) -> tuple[list[str], bool]:
    """Read so many lines, of each no more than can be shown; return whether more follow."""
    lines: list[str] = []
    while len(lines) < limit:
        line = file.readline(4 * LINE_CHARS)
        if not line:
            return lines, False
        unread_bytes = 0 if line.endswith(b"\n") else _rest_of_line(file)
        shown = line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", "replace")
        lines.append(_cut(shown, unread_bytes))
    return lines, bool(file.peek(1))


def _rest_of_line(file: BufferedReader) -> int:
    """Skip the rest of a long line; return how many bytes that was."""
    passed = 0
    while piece := file.readline(CHUNK_BYTES):
        passed += len(piece.rstrip(b"\r\n"))
        if piece.endswith(b"\n"):
            break
    return passed
