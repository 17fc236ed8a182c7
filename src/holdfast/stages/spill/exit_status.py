"""How a command ended, read from its text where nobody said it beside the text.

Our own shell hands the status over; what other agents' shells print comes in here, and a number
goes out if the text plainly tells one. Nothing is guessed: a report that merely mentions an exit
code somewhere in its middle says nothing.
"""

import re

LOOKED_AT_CHARS = 200
"""Agents put it in the first line or the last."""

_FIRST = re.compile(r"\s*(?:exit code|exit status)[: ]\s*(-?\d{1,3})\b", re.IGNORECASE)
_HEADER = re.compile(r"^(?:exit code: |process exited with code )(\d{1,3})$", re.IGNORECASE | re.M)
_LAST = re.compile(
    r"(?:^|\n)\W*(?:command |process )?(?:exited with (?:code|status)|exit (?:code|status))"
    r":? (-?\d{1,3})\W*$",
    re.IGNORECASE,
)
_METADATA = re.compile(r'"exit_code"\s*:\s*(-?\d{1,3})\s*[,}]')


def exit_status_in(text: str) -> int | None:
    """Find the exit status that a command's result tells, if it does."""
    head, tail = text[:LOOKED_AT_CHARS], text[-LOOKED_AT_CHARS:]
    found = _FIRST.match(head) or _LAST.search(tail)
    if found is None and text.startswith('{"output"'):
        found = _METADATA.search(tail)
    if found is None and "\nOutput:\n" in head:
        found = _HEADER.search(head)
    return int(found[1]) if found else None
