"""Shortening text: to one line, to whole sentences and lines, to characters, to bytes.

`cut` stops where a sentence or a line ends and marks what is missing; a pair such as `id: thing`
stands on one line, so it is never split. `printable_line` is for text from outside that is shown
on a terminal or in a list: one line, exact length, nothing unprintable.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence

CUT = "…"
"""Marks what was left out."""

LEAST_SHARE = 0.5
"""A cut at the end of a sentence must keep this share of the room, or it falls between words."""

_ENDS = re.compile(r"(?<=[.!?])[\"'`)\]*_]*(?=\s)|\n")
_SPACE = re.compile(r"\s+")
_LIST_NUMBER = re.compile(r"(?:[#>*-]+ *)?(?:\*\*)?\d{1,2}[.)]")
_CODE = re.compile(r"^```.*?(?:^```[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_BLANK_LINES = re.compile(r"\n\s*\n+")


def one_line(text: str) -> str:
    return _SPACE.sub(" ", text).strip()


def remove_blank_lines(text: str) -> str:
    return _BLANK_LINES.sub("\n", text.strip())


def without_code(text: str) -> str:
    return remove_blank_lines(_CODE.sub(f"[code {CUT}]", text))


def clean_text(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text)


def clean_line(text: str, chars: int) -> str:
    line = " ".join(clean_text(text).split())
    return line if len(line) <= chars else f"{line[: chars - 1]}{CUT}"


def cut(text: str, chars: int) -> str:
    """Keep the beginning, up to the end of a sentence or a line."""
    text = text.strip()
    if len(text) <= chars:
        return text
    kept = _cut_at_break(text, max(chars - len(CUT) - 1, 1))
    return f"{kept} {CUT}"


def head_and_tail(text: str, chars: int, pointer: str) -> str:
    """Keep the beginning and the end; between them say how much is missing and where it is."""
    text = text.strip("\n")
    if len(text) <= chars:
        return text
    head = _cut_at_break(text, chars * 2 // 3)
    tail = _from(text, chars - chars * 2 // 3)
    missing = len(text) - len(head) - len(tail)
    return f"{head}\n[{CUT} {missing:,} characters left out, all in {pointer} {CUT}]\n{tail}"


def sentences(text: str) -> list[str]:
    parts, start = [], 0
    for end in _ENDS.finditer(text):
        part = text[start : end.end()].strip()
        if _LIST_NUMBER.fullmatch(part):  # it numbers what follows
            continue
        parts.append(part)
        start = end.end()
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def outline(text: str, chars: int) -> str:
    """Keep headings and list items, and of each paragraph the first sentence."""
    kept: list[str] = []
    length, in_code, after_break = 0, False, True
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith("```"):
            in_code = not in_code
        elif not in_code and stripped and not set(stripped) <= set("-=*_|: "):
            shown = _outline_line(stripped, after_break)
            if shown and length + len(shown) > chars:
                return "\n".join([*kept, CUT])
            if shown:
                kept.append(shown)
                length += len(shown) + 1
        after_break = not stripped
    return "\n".join(kept)


def _outline_line(line: str, after_break: bool) -> str:
    if line[0] in "#-*+|>" or line[:2].rstrip(".)").isdigit():
        return line
    return sentences(line)[0] if after_break else ""


def first_bytes(text: str, limit_bytes: int) -> str:
    return text[:limit_bytes].encode("utf-8", "replace")[:limit_bytes].decode("utf-8", "ignore")


def count_fitting_lines(lines: Sequence[str], budget: int, count: Callable[[str], int]) -> int:
    sizes = range(1, len(lines) + 1)
    return bisect_right(sizes, budget, key=lambda n: count("\n".join(lines[:n])))


def pluralize(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def byte_count(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _cut_at_break(text: str, chars: int) -> str:
    window = text[: chars + 1]
    ends = [end.end() for end in _ENDS.finditer(window)]
    if ends and ends[-1] >= chars * LEAST_SHARE:
        return window[: ends[-1]].rstrip()
    space = window.rfind(" ", int(chars * LEAST_SHARE))
    return window[: space if space > 0 else chars].rstrip()


def _from(text: str, chars: int) -> str:
    window = text[-chars:]
    first = _ENDS.search(window)
    if first and first.end() <= chars * LEAST_SHARE:
        return window[first.end() :].lstrip()
    space = window.find(" ")
    return window[space + 1 if 0 <= space <= chars * LEAST_SHARE else 0 :].lstrip()
