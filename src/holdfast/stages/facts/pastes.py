"""Logs, code and data that a user pasted, told apart from the prose around them.

Where room is short they are shortened before anything the user wrote: the log has them, and a few
lines say what they are.
"""

import re
import zlib
from collections.abc import Iterator
from itertools import groupby

from holdfast.messages.cut import CUT

FEWEST_LINES = 12
"""A shorter run may be an example that belongs to a request."""
HEAD_LINES, TAIL_LINES = 4, 3
LONG_LINE_CHARS = 1_500
LINE_HEAD_CHARS = 300
"""Of a line that is data."""
SPACE_SHARE = 0.08
"""A long line with fewer spaces is no prose."""
PACKED_SHARE = 0.1
"""One that can be packed this small says the same over and over; prose packs to a third."""

_MACHINE = re.compile(
    r"\s*\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\s*\[?\d\d:\d\d:\d\d"
    r"|.{0,40}\b(?:DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|TRACE)\b"
    r"|\s*(?:at \S+\(|File \".*\", line \d+|Traceback |\w+Error:|@@ |diff --git|\+\+\+ |--- \S)"
    r"|\S+\.\w+:\d+(?::\d+)?[: ]|[+-](?![ -])\S"
    r"|.*[;{}]\s*$|\s*[\[{\"<].*[,\]}>]\s*$"
    r"|\s*(?:def|class|import|from|return|func|const|let|var|public|private|#include|if|for|while|else|try|except)\b.*[:;(){]\s*$"
    r"|(?:\t| {4,})(?![-*+] |\d+[.)] )\S"
)
_FENCE = re.compile(r"\s*(?:```|~~~)")


def without_pastes(text: str, pointer: str) -> str:
    """Shorten what was pasted to its first and last lines, and say where all of it is."""
    shown: list[str] = []
    for is_pasted, lines in _parts(text.split("\n")):
        shown += _shortened(lines, pointer) if is_pasted else lines
    return "\n".join(shown)


def _parts(lines: list[str]) -> Iterator[tuple[bool, list[str]]]:
    """Split lines where a paste begins or ends; runs of a few lines belong to the prose."""
    marked = list(zip(_marks(lines), lines, strict=True))
    for is_pasted, run in groupby(marked, key=lambda each: each[0]):
        yield is_pasted, [line for _, line in run]


def _marks(lines: list[str]) -> Iterator[bool]:
    in_fence, before = False, ""
    for line in lines:
        is_fence = bool(_FENCE.match(line))
        is_again = bool(line.strip()) and line == before
        yield in_fence or is_fence or is_again or _is_machine(line)
        in_fence, before = in_fence ^ is_fence, line


def _is_machine(line: str) -> bool:
    if len(line) > LONG_LINE_CHARS:
        packed = len(zlib.compress(line.encode("utf-8", "replace"), 1))
        return line.count(" ") < SPACE_SHARE * len(line) or packed < PACKED_SHARE * len(line)
    return bool(_MACHINE.match(line))


def _shortened(lines: list[str], pointer: str) -> list[str]:
    if len(lines) >= FEWEST_LINES:
        left = len(lines) - HEAD_LINES - TAIL_LINES
        notice = f"[{CUT} {left:,} pasted lines left out, all in {pointer} {CUT}]"
        lines = [*lines[:HEAD_LINES], notice, *lines[-TAIL_LINES:]]
    return [_head(line, pointer) for line in lines]


def _head(line: str, pointer: str) -> str:
    if len(line) <= LONG_LINE_CHARS:
        return line
    left = len(line) - LINE_HEAD_CHARS
    return f"{line[:LINE_HEAD_CHARS]} [{CUT} {left:,} characters left out, all in {pointer} {CUT}]"
