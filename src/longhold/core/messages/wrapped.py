"""What a harness wraps in tags inside the user's messages, told apart from the user's own words."""

import re
from collections.abc import Iterator
from typing import NamedTuple

LONGEST_WRAPPED_CHARS = 200_000
"""A longer message is a paste; searching it for tags costs more than it finds."""

_TAG = r"(?:system-reminder|ide_opened_file|ide_selection|local-command-caveat|local-command-stdout|local-command-stderr|bash-stdout|bash-stderr|command-message|command-contents|user-prompt-submit-hook|environment_context|user_instructions)"
_WRAPPED = re.compile(rf"<({_TAG})>")
_SPACE = re.compile(r"\s*")


class Element(NamedTuple):
    tag: str
    text: str
    start: int
    end: int


def elements(opening: re.Pattern[str], text: str) -> Iterator[Element]:
    """Yield what stands between an opening tag and its closing one; every character is read once.

    A pattern from tag to tag would search the rest of the text from each tag that is never closed.
    """
    place, unclosed = 0, set[str]()
    while found := opening.search(text, place):
        tag, place = found[1], found.end()
        end = -1 if tag in unclosed else text.find(f"</{tag}>", place)
        if end < 0:
            unclosed.add(tag)
            continue
        inner, place = text[place:end], end + len(tag) + 3
        yield Element(tag, inner, found.start(), place)


def strip_wrapped(text: str) -> str:
    """Remove what a harness wrapped, together with the white space after it."""
    if "<" not in text or len(text) > LONGEST_WRAPPED_CHARS:
        return text.strip()
    kept: list[str] = []
    place = 0
    for element in elements(_WRAPPED, text):
        kept.append(text[place : element.start])
        space = _SPACE.match(text, element.end)
        place = space.end() if space else element.end
    return "".join([*kept, text[place:]]).strip()
