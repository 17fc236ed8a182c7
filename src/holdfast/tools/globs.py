"""Path patterns, as `.gitignore` files and people write them, as regular expressions.

`*` and `?` stay within a name, `**` crosses directories, `[a-z]` is a set that never matches a
slash. A pattern with a slash starts at the top, one without fits a name at any depth. Braces
are for people only. Loaded alone by the search process, so it imports only the standard library.
"""

import re
from collections.abc import Iterator

_NAMED_SETS = {
    "[:alnum:]": "a-zA-Z0-9",
    "[:alpha:]": "a-zA-Z",
    "[:blank:]": " \\t",
    "[:digit:]": "0-9",
    "[:lower:]": "a-z",
    "[:punct:]": "!-/:-@\\[-`{-~",
    "[:space:]": "\\s",
    "[:upper:]": "A-Z",
    "[:word:]": "\\w",
    "[:xdigit:]": "0-9a-fA-F",
}

_STAR, _DEEP = "[^/]*", "(?:[^/]+/)*"

MAX_ALTERNATIVES = 256
"""Braces within braces multiply."""
MAX_CHARS = 1_024
"""Of a pattern; a longer one is no person's, and fits nothing."""
_NOTHING = "(?!)"


def path_expression(pattern: str) -> str:
    """Translate a pattern that starts at the top into an expression for a whole path.

    Of several stars only the last has a choice: where the others end first is as good as anywhere,
    so the expression does not come back to them, and its time grows with the path alone.
    """
    if len(pattern) > MAX_CHARS:
        return _NOTHING
    pieces: list[str] = []
    place = 0
    while place < len(pattern):
        piece, place = _piece(pattern, place)
        pieces.append(piece)
    first, *rest = _split(pieces, _DEEP)
    return _names(first) + "".join(_starred(_DEEP, list(map(_names, rest))))


def _names(pieces: list[str]) -> str:
    return "/".join(map(_name, _split(pieces, "/")))


def _name(pieces: list[str]) -> str:
    first, *rest = map("".join, _split(pieces, _STAR))
    return first + "".join(_starred(_STAR, rest))


def _starred(star: str, parts: list[str]) -> Iterator[str]:
    """Put a star before each part; all but the last end where they first can."""
    for number, part in enumerate(parts, 1):
        yield f"{star}{part}" if number == len(parts) else f"(?>{star}?{part})"


def _split(pieces: list[str], mark: str) -> list[list[str]]:
    parts: list[list[str]] = [[]]
    for piece in pieces:
        if piece == mark:
            parts.append([])
        else:
            parts[-1].append(piece)
    return parts


def anchored_expression(pattern: str) -> str:
    """Anchor a pattern with a slash at the top; one without fits a name at any depth."""
    anywhere = "" if "/" in pattern else "(?:.*/)?"
    return anywhere + path_expression(pattern.removeprefix("/"))


def _piece(pattern: str, place: int) -> tuple[str, int]:
    """Translate the piece at a place; return it and the place after it."""
    at_start = place == 0 or pattern[place - 1] == "/"
    if at_start and pattern.startswith("**/", place):
        return _DEEP, place + 3
    if at_start and pattern[place:] == "**":
        return ".+", place + 2
    char = pattern[place]
    if char == "*":
        end = place + 1
        while pattern[end : end + 1] == "*":
            end += 1
        return _STAR, end
    if char == "?":
        return "[^/]", place + 1
    if char == "[":
        return _set(pattern, place)
    if char == "\\" and place + 1 < len(pattern):
        return re.escape(pattern[place + 1]), place + 2
    return re.escape(char), place + 1


def _set(pattern: str, place: int) -> tuple[str, int]:
    """Translate a set; one that is never closed is a plain bracket."""
    end = place + 1
    is_not = pattern[end : end + 1] in ("!", "^")
    end += is_not
    inner = ""
    first = end
    if pattern.find("]", first + 1) < 0:
        return "\\[", place + 1
    while end < len(pattern) and (pattern[end] != "]" or end == first):
        name = next((name for name in _NAMED_SETS if pattern.startswith(name, end)), "")
        if name:
            inner += _NAMED_SETS[name]
            end += len(name)
            continue
        if pattern[end] == "\\" and end + 1 < len(pattern):
            end += 1
            inner += re.escape(pattern[end])
        else:
            # A dash that is an end of a range: bare beside the dash between, Python would warn.
            is_end = pattern[end] == "-" and re.search(r"(?<!\\)-\Z|\A\Z", inner)
            inner += "\\" + pattern[end] if is_end or pattern[end] in "[]\\^&~|" else pattern[end]
        end += 1
    if end >= len(pattern):
        return "\\[", place + 1
    return f"(?!/)[{'^' if is_not else ''}{inner}]", end + 1


def expand_braces(pattern: str) -> list[str]:
    """Write `a.{b,c}` out as `a.b` and `a.c`."""
    done: list[str] = []
    waiting = [pattern]
    while waiting and len(done) + len(waiting) <= MAX_ALTERNATIVES:
        current = waiting.pop(0)
        inner = re.search(r"\{([^{}]*)\}", current)
        if inner is None:
            done.append(current)
            continue
        head, tail = current[: inner.start()], current[inner.end() :]
        waiting += [head + choice + tail for choice in inner[1].split(",")]
    return done + waiting


def glob_expression(pattern: str) -> str:
    """Translate a person's pattern into an expression for a whole relative path."""
    if len(pattern) > MAX_CHARS:
        return _NOTHING
    choices = (choice.removeprefix("./") for choice in expand_braces(pattern))
    return "|".join(f"(?:{anchored_expression(choice)})" for choice in choices)
