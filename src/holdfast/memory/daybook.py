"""What the user said in the sessions since a time, by day: what a dream looks through first.

Only the user's own words are listed, each with the session and the number of its entry, so that
a memory made from them can name its evidence. Output of tools and fetched pages is not in it.
"""

from collections.abc import Sequence
from itertools import accumulate

from holdfast.log.entries import Said
from holdfast.log.secrets import masked
from holdfast.log.shared import SharedRecords
from holdfast.memory.memory import stamp
from holdfast.messages import text_of
from holdfast.messages.cut import printable_line

LINE_CHARS = 200
"""Enough to see whether a message decides or corrects something; the log has the rest."""


def daybook(shared: SharedRecords, since: float, *, current: str, most_chars: int) -> str:
    """List what the user said in a project's sessions since a time, newest session first.

    `current` is the session that asks, which needs no telling. Of a session only the newest messages
    that fit are listed.
    """
    pages: list[str] = []
    room = most_chars
    for session in shared.sessions_since(since):
        if session == current:
            continue
        lines = [_line(one) for one in shared.said(session) if one.at > since and _is_users(one)]
        kept = _newest(lines, room // 2)  # so that one long session does not hide all others
        if kept:
            left = len(lines) - len(kept)
            head = f"{session}.jsonl{f' ({left} earlier messages not listed)' if left else ''}:"
            pages.append("\n".join([head, *kept]))
            room -= len(pages[-1])
    return "\n\n".join(pages)


def _newest(lines: Sequence[str], room: int) -> list[str]:
    """Return the last lines that fit."""
    sizes = accumulate(len(line) + 1 for line in reversed(lines))
    count = sum(size <= room for size in sizes)
    return list(lines[len(lines) - count :])


def _line(said: Said) -> str:
    text = printable_line(masked(text_of(said.content)), LINE_CHARS)
    return f"- #{said.n} ({stamp(said.at)[:10]}) {text}"


def _is_users(said: Said) -> bool:
    return not said.hidden and not said.mail and bool(text_of(said.content).strip())
