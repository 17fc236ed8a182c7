"""Separate text that a harness adds in tags to user messages from the user's own words."""

import re
from collections.abc import Iterator
from typing import NamedTuple

LONGEST_WRAPPED_CHARS = 200_000
"""A longer message is a paste, and searching it for tags is not worth the time."""

_TAG = r"(?:system-reminder|ide_opened_file|ide_selection|local-command-caveat|local-command-stdout|local-command-stderr|bash-stdout|bash-stderr|command-message|command-contents|user-prompt-submit-hook|environment_context|user_instructions)"
_WRAPPED = re.compile(rf"<({_TAG})>")
_SPACE = re.compile(r"\s*")


class Element(NamedTuple):
    tag: str
    text: str
    start: int
    end: int


def elements(opening: re.Pattern[str], text: str) -> Iterator[Element]:
    """Yield the elements between opening and closing tags, in linear time.

    A regular expression from tag to tag would rescan the rest of the text for each unclosed tag.
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
    if "<" not in text or len(text) > LONGEST_WRAPPED_CHARS:
        return text.strip()
    kept: list[str] = []
    place = 0
    for element in elements(_WRAPPED, text):
        kept.append(text[place : element.start])
        space = _SPACE.match(text, element.end)
        place = space.end() if space else element.end
    return "".join([*kept, text[place:]]).strip()
