"""Lines of a command's output that report a problem.

Each is masked as a whole before it is cut. A line with counts is a complaint unless all counts are
zero: "2 failed, 0 errors" is one, "0 failed" is not.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import accumulate

from holdfast.log.secrets import Mask
from holdfast.messages.cut import byte_count

LINE_CHARS = 200
READ_CHARS = 2_000
"""How much of a longer line is searched and masked."""
GUARD_CHARS = 400
"""Dropped from the end of a cut line: a secret may begin there."""
SCANNED_CHARS = 2 << 20
"""Twice what a command's output is kept whole."""

_HINT = re.compile(
    "\ne  |error|exception|fatal|panic|traceback|fail|segmentation fault|core dumped|undefined "
    "|unhandled|aborted|denied|no such file|not found|cannot|could not|killed"
)
"""Every line that looks like an error contains one of these."""
_FAILURES = r"(?:errors?|fail(?:ed|ing|ures?|s)?|exceptions?)"
_ERROR = re.compile(
    rf"^E  +\S"
    rf"|(?<![\w/.-])(?:\w*error|\w*exception|{_FAILURES}|fatal|panic(?:ked)?|traceback"
    r"|segmentation fault|core dumped|undefined (?:reference|symbol|variable)|unhandled|aborted"
    r"|permission denied|no such file|not found|cannot|could not|killed)(?![\w/]|\.\w)",
    re.IGNORECASE,
)
_FINE = re.compile(
    rf"\b(?:0|no|without)\s+(?:\w+\s+)?{_FAILURES}\b"
    rf"|\b(?:tests?\s+)?{_FAILURES}\s*[:=]?\s*0\b(?![.,]\d)",
    re.IGNORECASE,
)
"""The absence of problems."""


def error_lines(
    text: str, limit_bytes: int, first_line: int = 1, mask: Mask = str
) -> tuple[list[str], int]:
    """Find lines that look like errors; return those that fit, numbered, and the total count.

    If not all fit, the first ones (the cause) and the last ones (the totals) are returned.
    """
    found = list(_matching_lines(text, first_line))
    sizes = [byte_count(f"{number}: {line.strip()[:LINE_CHARS]}") + 1 for line, number in found]
    first = _fitting(sizes, limit_bytes if sum(sizes) <= limit_bytes else limit_bytes // 2)
    last = _fitting(sizes[first:][::-1], limit_bytes - sum(sizes[:first]))
    shown = found[:first] + found[len(found) - last :]
    return [f"{number}: {_cut(line, mask)}" for line, number in shown], len(found)


def is_complaint(line: str) -> bool:
    """True if a line reports a problem, not the absence of one."""
    return bool(_ERROR.search(_FINE.sub(" ", line)))


def _matching_lines(text: str, first_line: int) -> Iterator[tuple[str, int]]:
    """Yield distinct lines that look like errors, each with its first line number."""
    text = f"\n{text[:SCANNED_CHARS]}"
    lowered = text.replace("İ", "I").lower()  # the one letter that grows when lowered
    place, number = 0, first_line - 1
    known: set[str] = set()
    for match in _HINT.finditer(lowered):
        if match.start() < place:
            continue  # a second word in the same line
        start = text.rfind("\n", 0, match.start() + 1) + 1
        number += text.count("\n", place, start)
        end = text.find("\n", match.end())
        place = len(text) if end < 0 else end
        line = text[start : min(place, start + READ_CHARS)].strip("\r\n")
        if line not in known and is_complaint(line):
            known.add(line)
            yield line, number


def _cut(line: str, mask: Mask) -> str:
    seen = mask(line)
    if seen != line and len(line) >= READ_CHARS:
        seen = seen[:-GUARD_CHARS]
    return seen.strip()[:LINE_CHARS]


def _fitting(sizes: Iterable[int], limit_bytes: int) -> int:
    return sum(total <= limit_bytes for total in accumulate(sizes))
