"""Two people at one page: what a model wrote joined with what somebody else wrote meanwhile. Pure.

Both began from the same text. A section that only one of them changed is theirs; where both did,
the person's words stay as they are and the lines that the model added come behind them.
"""

from collections.abc import Mapping


def merged(
    base: Mapping[str, str], mine: Mapping[str, str], theirs: Mapping[str, str]
) -> dict[str, str]:
    """Join two versions, section by section; `theirs` is the one that must not be lost."""
    headings = dict.fromkeys((*theirs, *mine))
    return {h: _joined(base.get(h, ""), mine.get(h, ""), theirs.get(h, "")) for h in headings}


def _joined(base: str, mine: str, theirs: str) -> str:
    if theirs == base:
        return mine
    if mine in (base, theirs):
        return theirs
    known = {line.strip() for text in (base, theirs) for line in text.splitlines()}
    added = [line for line in mine.splitlines() if line.strip() and line.strip() not in known]
    return "\n".join(filter(None, (theirs, *added)))
