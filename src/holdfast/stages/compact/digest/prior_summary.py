"""What is carried of a summary that stands first in a segment.

A summary comes in, ours or another agent's; its judgement goes out, in its own words: what was
wanted, learnt, decided and solved. Left out are what stands before it, the wrapping around it,
and the sections that are told afresh or are past: files, user messages, the work then current
and the step then next. A text without known sections is carried whole.
"""

import re

from holdfast.messages.cut import cut, tight
from holdfast.stages.compact.digest.headings import parts

_NAMES = {
    1: re.compile(r"(?:primary )?request", re.IGNORECASE),
    2: re.compile(r"(?:key )?technical concepts", re.IGNORECASE),
    3: re.compile(r"files and code", re.IGNORECASE),
    4: re.compile(r"errors and fixes|errors, from the log", re.IGNORECASE),
    5: re.compile(r"problem[ -]solving", re.IGNORECASE),
    6: re.compile(r"all user messages", re.IGNORECASE),
    7: re.compile(r"pending tasks|pending, from the log", re.IGNORECASE),
    8: re.compile(r"current work|latest work, from the log", re.IGNORECASE),
    9: re.compile(r"(?:optional )?next step", re.IGNORECASE),
}
"""How the headings of summaries begin, ours and those of other agents."""
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


def judgement(text: str) -> str:
    """Return the part of a summary that cannot be rebuilt from the log."""
    found = _BODY.search(text)
    body = (found[1] or found[2] or "") if found else text
    body = _WRAPPING.sub("", body)
    _, sections = parts(body, _named)
    kept = "\n".join(part.whole for part in sections if not _PAST.search(part.title))
    return tight(kept if sections else body)


def carried(text: str, chars: int) -> str:
    """Shorten a summary, giving each section an equal share."""
    body = judgement(text)
    if len(body) <= chars:
        return body
    lead, sections = parts(body, _named)
    texts = [*filter(None, (lead,)), *(part.whole for part in sections)]
    share = chars // max(len(texts), 1)
    return "\n".join(cut(section, share) for section in texts)


def _named(number: int, title: str) -> str:
    found = _NAMES[number].match(title)
    return found[0].lower() if found else ""
