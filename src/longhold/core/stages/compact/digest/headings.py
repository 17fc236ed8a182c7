"""Parse numbered headings of summaries, and carry over parts of an older summary.

A line with a known title is a heading. A line with `#` or `**` is also a heading if its number
rises and no line has the known title. This distinguishes headings from lists. Only sections that
the log cannot rebuild are carried over.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from longhold.core.messages.text import cut, remove_blank_lines

_NUMBERED = re.compile(
    r"^[ \t]*+(?P<mark>#++[ \t]*+\**+|\*\*)?[ \t]*+(?P<number>[1-9])[.)][ \t]*+\**+[ \t]*+"
    r"(?P<title>[^\n]*)$",
    re.MULTILINE,
)

_NAMES = {
    1: re.compile(r"(?:primary )?request|plans and documents, from the log", re.IGNORECASE),
    2: re.compile(r"(?:key )?technical concepts", re.IGNORECASE),
    3: re.compile(r"files and code", re.IGNORECASE),
    4: re.compile(r"errors and fixes|errors, from the log", re.IGNORECASE),
    5: re.compile(r"problem[ -]solving|findings, from the log", re.IGNORECASE),
    6: re.compile(r"all user messages|what was done, from the log", re.IGNORECASE),
    7: re.compile(r"pending tasks|pending, from the log", re.IGNORECASE),
    8: re.compile(r"current work|latest work, from the log", re.IGNORECASE),
    9: re.compile(r"(?:optional )?next step", re.IGNORECASE),
}
_PAST = re.compile(
    r"user messages|(?:current|latest) work|next step|pending|files and code|from the log",
    re.IGNORECASE,
)
_BODY = re.compile(r"<summary>(.*?)(?:</summary>|\Z)|^Summary:\s*$(.*)", re.DOTALL | re.MULTILINE)
_WRAPPING = re.compile(
    r"^(?:This session is being continued from|The summary below covers|If you need specific details"
    r"|Please continue the conversation|Continue the conversation from where|Another language model"
    r"|Told from the (?:log|messages)|Paths are relative to|Names in use lately).*$",
    re.MULTILINE,
)

Naming: TypeAlias = Callable[[int, str], str]
"""Maps a number and a title to the name of a section, or ""."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadedPart:
    number: int
    title: str
    text: str
    whole: str


def parts(text: str, naming: Naming) -> tuple[str, list[HeadedPart]]:
    """Split a summary at its headings. Return the text before the first heading separately."""
    lines = [(line, naming(int(line["number"]), _title(line))) for line in _NUMBERED.finditer(text)]
    worded = {line["number"] for line, name in lines if name}
    heads: list[re.Match[str]] = []
    names: set[str] = set()
    for line, name in lines:
        comes_next = not heads or line["number"] > heads[-1]["number"]
        if name:
            is_heading = name not in names and bool(line["mark"] or comes_next)
        else:
            is_heading = bool(line["mark"]) and comes_next and line["number"] not in worded
        if is_heading:
            heads.append(line)
            names.add(name)
    ends = [*(head.start() for head in heads[1:]), len(text)]
    found = [
        HeadedPart(
            number=int(head["number"]),
            title=_title(head),
            text=text[head.end() : end].strip(),
            whole=text[head.start() : end].strip(),
        )
        for head, end in zip(heads, ends, strict=False)
    ]
    return text[: heads[0].start() if heads else len(text)].strip(), found


def judgement(text: str) -> str:
    """Return the part of a summary that cannot be rebuilt from the log."""
    found = _BODY.search(text)
    body = (found[1] or found[2] or "") if found else text
    body = _WRAPPING.sub("", body)
    _, sections = parts(body, _match_title)
    kept = "\n".join(part.whole for part in sections if not _PAST.search(part.title))
    return remove_blank_lines(kept if sections else body)


def shorten_sections(text: str, chars: int) -> str:
    body = judgement(text)
    if len(body) <= chars:
        return body
    lead, sections = parts(body, _match_title)
    texts = [*filter(None, (lead,)), *(part.whole for part in sections)]
    share = chars // max(len(texts), 1)
    return "\n".join(cut(section, share) for section in texts)


def _match_title(number: int, title: str) -> str:
    found = _NAMES[number].match(title)
    return found[0].lower() if found else ""


def _title(line: re.Match[str]) -> str:
    """Return a heading's text. Stripping it in the pattern would cause backtracking."""
    return line["title"].rstrip(" \t*:")
