"""Cutting text so that what is left still says something.

Text comes in with a length in characters; what fits goes out, cut where a sentence or a line
ends, with a sign where something is missing. Prose is told in sentences, lists and code in
lines; a pair such as `id: thing` stands on one line, so a cut between lines never parts it.
"""

import re

CUT = "…"
"""Stands where something was left out."""

LEAST_SHARE = 0.5
"""A cut at a sentence's end may cost at most this share of the room; past it words are cut."""

_ENDS = re.compile(r"(?<=[.!?])[\"'`)\]*_]*(?=\s)|\n")
_SPACE = re.compile(r"\s+")
_LIST_NUMBER = re.compile(r"(?:[#>*-]+ *)?(?:\*\*)?\d{1,2}[.)]")
_CODE = re.compile(r"^```.*?^```[ \t]*$", re.DOTALL | re.MULTILINE)
_BLANK_LINES = re.compile(r"\n\s*\n+")


def one_line(text: str) -> str:
    """Write a text on one line."""
    return _SPACE.sub(" ", text).strip()


def tight(text: str) -> str:
    """Leave out blank lines."""
    return _BLANK_LINES.sub("\n", text.strip())


def without_code(text: str) -> str:
    """Leave out blocks of code, saying that there were some."""
    return tight(_CODE.sub(f"[code {CUT}]", text))


def cut(text: str, chars: int) -> str:
    """Keep the beginning, up to the end of a sentence or a line."""
    text = text.strip()
    if len(text) <= chars:
        return text
    kept = _upto(text, max(chars - len(CUT) - 1, 1))
    return f"{kept} {CUT}"


def head_and_tail(text: str, chars: int, pointer: str) -> str:
    """Keep the beginning and the end, and say between them how much is missing and where it is."""
    text = text.strip("\n")
    if len(text) <= chars:
        return text
    head = _upto(text, chars * 2 // 3)
    tail = _from(text, chars - chars * 2 // 3)
    missing = len(text) - len(head) - len(tail)
    return f"{head}\n[{CUT} {missing:,} characters left out, all in {pointer} {CUT}]\n{tail}"


def sentences(text: str) -> list[str]:
    """Part a text into sentences and lines."""
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
            told = _outlined(stripped, after_break)
            if told and length + len(told) > chars:
                return "\n".join([*kept, CUT])
            if told:
                kept.append(told)
                length += len(told) + 1
        after_break = not stripped
    return "\n".join(kept)


def _outlined(line: str, after_break: bool) -> str:
    if line[0] in "#-*+|>" or line[:2].rstrip(".)").isdigit():
        return line
    return sentences(line)[0] if after_break else ""


def _upto(text: str, chars: int) -> str:
    """Take the beginning up to the last good place to stop."""
    window = text[: chars + 1]
    ends = [end.end() for end in _ENDS.finditer(window)]
    if ends and ends[-1] >= chars * LEAST_SHARE:
        return window[: ends[-1]].rstrip()
    space = window.rfind(" ", int(chars * LEAST_SHARE))
    return window[: space if space > 0 else chars].rstrip()


def _from(text: str, chars: int) -> str:
    """Take the end from the first good place to start."""
    window = text[-chars:]
    first = _ENDS.search(window)
    if first and first.end() <= chars * LEAST_SHARE:
        return window[first.end() :].lstrip()
    space = window.find(" ")
    return window[space + 1 if 0 <= space <= chars * LEAST_SHARE else 0 :].lstrip()
