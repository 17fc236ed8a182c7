"""What is carried of a summary that stands first in a segment.

A summary comes in, ours or another agent's; its judgement goes out, in its own words: what was
wanted, learnt, decided and solved. Left out are what stands before it, the wrapping around it,
and the sections that are told afresh or are past: files, user messages, the work then current
and the step then next. A text without known sections is carried whole.
"""

import re
from collections.abc import Iterator

from holdfast.digest.words import cut, tight

_SECTION = re.compile(r"^(?:#+ *|\*\*)?(\d)\. +(.+)$", re.MULTILINE)
_PAST = re.compile(
    r"user messages|(?:current|latest) work|next step|pending|files and code|from the log",
    re.IGNORECASE,
)
_BODY = re.compile(r"<summary>(.*?)(?:</summary>|\Z)|^Summary:\s*$(.*)", re.DOTALL | re.MULTILINE)
_WRAPPING = re.compile(
    r"^(?:This session is being continued from|The summary below covers|If you need specific details"
    r"|Please continue the conversation|Continue the conversation from where|Another language model"
    r"|Told from the log|Paths are relative to|Names in use lately).*$",
    re.MULTILINE,
)


def judgement(text: str) -> str:
    """Give the part of a summary that nothing else can tell."""
    found = _BODY.search(text)
    body = (found[1] or found[2] or "") if found else text
    body = _WRAPPING.sub("", body)
    sections = [(heading, text) for heading, text in _sections(body) if heading]
    kept = "\n".join(text for heading, text in sections if not _PAST.search(heading))
    return tight(kept if kept.strip() else body)


def carried(text: str, chars: int) -> str:
    """Give each section of a summary its share of the room."""
    body = judgement(text)
    if len(body) <= chars:
        return body
    sections = [section for _, section in _sections(body)]
    share = chars // max(len(sections), 1)
    return "\n".join(cut(section, share) for section in sections)


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """Part a summary by its numbered headings."""
    marks = [*_SECTION.finditer(text)]
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    lead = text[: marks[0].start()] if marks else text
    if lead.strip():
        yield "", lead.strip()
    for mark, end in zip(marks, ends, strict=False):
        yield mark[2], text[mark.start() : end].strip()
