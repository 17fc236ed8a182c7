"""The preview of a result that is stored on disk. Pure.

Text is masked before it is cut. A line with counts is an error unless all are zero: "2 failed, 0
errors" is one, "0 failed" is not.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import accumulate

from longhold.core.log.results import Body
from longhold.core.messages.secrets import Mask
from longhold.core.messages.text import byte_count, first_bytes, human_size
from longhold.core.stages.spill.budget import Arrived, PreviewRoom
from longhold.core.tools.describe import HISTORY, description_of

LINE_CHARS = 200
READ_CHARS = 2_000
LINE_GUARD_CHARS = 400
"""Dropped from the end of a cut line, because a secret may begin there."""
SCANNED_CHARS = 2 << 20
"""Twice the size up to which a command's output is kept whole."""

_HINT = re.compile(
    "\ne  |error|exception|fatal|panic|traceback|fail|segmentation fault|core dumped|undefined "
    "|unhandled|aborted|denied|no such file|not found|cannot|could not|killed"
)
"""Every line that looks like an error contains one of these. Faster than `_ERROR`."""
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


def error_lines(
    text: str, limit_bytes: int, first_line: int = 1, mask: Mask = str
) -> tuple[list[str], int]:
    """Find lines that look like errors. Return those that fit, numbered, and the total count.

    If not all fit, the first (the cause) and the last (the totals) are returned.
    """
    found = list(_matching_lines(text, first_line))
    sizes = [byte_count(f"{number}: {line.strip()[:LINE_CHARS]}") + 1 for line, number in found]
    first = _count_fitting(sizes, limit_bytes if sum(sizes) <= limit_bytes else limit_bytes // 2)
    last = _count_fitting(sizes[first:][::-1], limit_bytes - sum(sizes[:first]))
    shown = found[:first] + found[len(found) - last :]
    return [f"{number}: {_cut(line, mask)}" for line, number in shown], len(found)


def _is_complaint(line: str) -> bool:
    return bool(_ERROR.search(_FINE.sub(" ", line)))


def _matching_lines(text: str, first_line: int) -> Iterator[tuple[str, int]]:
    text = f"\n{text[:SCANNED_CHARS]}"
    lowered = text.replace("İ", "I").lower()  # the only letter whose lower case is longer
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
        if line not in known and _is_complaint(line):
            known.add(line)
            yield line, number


def _cut(line: str, mask: Mask) -> str:
    seen = mask(line)
    if seen != line and len(line) >= READ_CHARS:
        seen = seen[:-LINE_GUARD_CHARS]
    return seen.strip()[:LINE_CHARS]


def _count_fitting(sizes: Iterable[int], limit_bytes: int) -> int:
    return sum(total <= limit_bytes for total in accumulate(sizes))


TAG = "spilled"
SLACK_CHARS = 8_000
"""Text read past a cut so that no secret is split. The longest private keys fit."""
GUARD_CHARS = 1_000
"""Dropped at the cut of the text read, because a secret may begin there."""


def preview(
    arrived: Arrived, body: Body, readers: tuple[str, ...], room: PreviewRoom, mask: Mask = str
) -> str:
    parts = [f"<{TAG} {_facts(arrived, body)}>", *_say_where(arrived, body, readers), ""]
    if arrived.is_command:
        parts += _excerpt_of_command(arrived.text, room, mask)
    else:
        head = _shown_head(arrived.text, room.preview_bytes, mask)
        parts += [f"[its first {human_size(byte_count(head))}]", _escape(head), "[…]"]
    return "\n".join([*parts, f"</{TAG}>"])


def repetition(tool_use_id: str, first: str, size_bytes: int, readers: tuple[str, ...]) -> str:
    said = f"[The same, byte for byte, as the result of {_name(first)}: {human_size(size_bytes)}"
    if HISTORY in readers:
        said += f'; should that be gone, History has it by id "{_name(tool_use_id)}"'
    return f"{said}.]"


def head_of(text: str, limit_bytes: int) -> str:
    """Return the beginning, cut at a line end if that keeps more than half of the limit."""
    cut = first_bytes(text, limit_bytes)
    if len(cut) == len(text):
        return text
    line_end = cut.rfind("\n")
    return cut[:line_end] if byte_count(cut[: max(0, line_end)]) > limit_bytes // 2 else cut


def tail_of(text: str, limit_bytes: int) -> str:
    """Return the end, cut at a line start if that keeps more than half of the limit."""
    if limit_bytes <= 0:
        return ""
    cut = text[-limit_bytes:].encode("utf-8", "replace")[-limit_bytes:].decode("utf-8", "ignore")
    if len(cut) == len(text):
        return text
    line_end = cut.find("\n")
    rest = cut[line_end + 1 :]
    return rest if line_end >= 0 and byte_count(rest) > limit_bytes // 2 else cut


def _excerpt_of_command(text: str, room: PreviewRoom, mask: Mask) -> list[str]:
    half = room.preview_bytes // 2
    head, tail = head_of(text, half), tail_of(text, half)
    middle = text[len(head) : len(text) - len(tail)]
    lines, count = error_lines(middle, room.error_bytes, 1 + head.count("\n"), mask)
    head, tail = _shown_head(text, half, mask), _shown_tail(text, half, mask)
    parts = [f"[its first {human_size(byte_count(head))}]", _escape(head)]
    if lines:
        which = "the" if len(lines) == count else f"{len(lines)} of the {count:,}"
        parts.append(f"[{which} lines between that look like errors, by number]")
        parts.append(_escape(first_bytes("\n".join(lines), room.error_bytes)))
    else:
        parts.append("[…]")
    return [*parts, f"[its last {human_size(byte_count(tail))}]", _escape(tail)]


def _shown_head(text: str, limit_bytes: int, mask: Mask) -> str:
    """Mask more than is shown, then cut, so that a secret at the cut is masked whole."""
    head = head_of(text, limit_bytes)
    longer = text[: len(head) + SLACK_CHARS]
    seen = mask(longer)
    if seen == longer:
        return head
    return head_of(seen if longer == text else seen[:-GUARD_CHARS], limit_bytes)


def _shown_tail(text: str, limit_bytes: int, mask: Mask) -> str:
    tail = tail_of(text, limit_bytes)
    longer = text[-(len(tail) + SLACK_CHARS) :]
    seen = mask(longer)
    if seen == longer:
        return tail
    return tail_of(seen if longer == text else seen[GUARD_CHARS:], limit_bytes)


def _facts(arrived: Arrived, body: Body) -> str:
    lines = arrived.text.count("\n") + (not arrived.text.endswith("\n"))
    facts = {
        "tool": _name(arrived.tool),
        "id": _name(arrived.id),
        "size": human_size(body.bytes),
        "lines": f"{lines:,}",
    }
    if arrived.exit_status is not None:
        facts["exit-status"] = str(arrived.exit_status)
    return " ".join(f'{key}="{value}"' for key, value in facts.items())


def _say_where(arrived: Arrived, body: Body, readers: tuple[str, ...]) -> Iterator[str]:
    what = "All of it" if body.is_whole else "As much of it as a file may hold"
    hints = []
    if reader := next((name for name in readers if name != HISTORY), ""):
        yield f"Too long to be shown here. {what} is in {body.file}"
        how = "" if description_of(reader).kind == "shell" else " by offset and limit"
        hints.append(f"{reader} shows any part of that file{how}")
    else:
        yield "Too long to be shown here."
    if HISTORY in readers:
        hints.append(f'History opens it by id "{_name(arrived.id)}"')
    if hints:
        yield "; ".join(hints) + "."


def _name(text: str) -> str:
    """Sanitise a foreign name so that it cannot close the tag."""
    return re.sub(r"[^\w.:/@-]", "_", text)[:120]


def _escape(text: str) -> str:
    return text.replace(f"</{TAG}", f"<\\/{TAG}")
