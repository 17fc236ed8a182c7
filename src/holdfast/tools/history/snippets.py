"""The line that shows why a record was found: short, on one line, secrets masked."""

import re

from holdfast.log.secrets import find_secrets

AROUND_CHARS = 400
"""Looked at on both sides for a secret that a cut would make unrecognisable."""


def find_words(text: str, query: str) -> int | None:
    """Find where a query's first word or phrase stands in a text, whatever its case."""
    words = [phrase or word for phrase, word in re.findall(r'"([^"]+)"|([^\s"]+)', query)]
    for word in (query.strip().strip('"'), *words):
        parts = [re.escape(part) for part in re.findall(r"\w+", word)] or [re.escape(word)]
        found = re.search(r"\W+".join(parts), text, re.IGNORECASE) if word else None
        if found:
            return found.start()
    return None


def snippet(text: str, place: int, limit_chars: int) -> str:
    """Give the surroundings of a place on one line."""
    start = max(text.rfind("\n", 0, place) + 1, place - limit_chars // 3)
    line_end = text.find("\n", place)
    stop = min(start + limit_chars, len(text) if line_end < 0 else line_end)
    lo = max(0, start - AROUND_CHARS)
    hidden = _without_secrets(text[lo : stop + AROUND_CHARS])[start - lo : stop - lo]
    told = " ".join("".join(char if char.isprintable() else " " for char in hidden).split())
    return f"{told}…" if stop < len(text) and told else told


def _without_secrets(text: str) -> str:
    """Blank secrets out, each by as many stars as it had characters."""
    for found in find_secrets(text):
        text = text[: found.start] + "*" * (found.end - found.start) + text[found.end :]
    return text
