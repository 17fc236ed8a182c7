"""Translates path patterns and `.gitignore` rules to regular expressions.

`*` and `?` match within a name, and `**` matches across directories. A pattern with a slash is
anchored at the top. Any other pattern matches at any depth. The search process loads this module
alone, so it imports only the standard library.
"""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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
"""The limit for alternatives, because nested braces multiply them."""
MAX_CHARS = 1_024
"""A longer pattern matches nothing."""
_NOTHING = "(?!)"


def _path_expression(pattern: str) -> str:
    """Translate an anchored pattern into an expression for a whole path.

    Only the last of several stars may backtrack, because for the others the first match is as good
    as any. So the time grows only with the length of the path.
    """
    if len(pattern) > MAX_CHARS:
        return _NOTHING
    pieces: list[str] = []
    place = 0
    while place < len(pattern):
        piece, place = _piece(pattern, place)
        pieces.append(piece)
    first, *rest = _split(pieces, _DEEP)
    return _names(first) + "".join(_add_stars(_DEEP, list(map(_names, rest))))


def _names(pieces: list[str]) -> str:
    return "/".join(map(_name, _split(pieces, "/")))


def _name(pieces: list[str]) -> str:
    first, *rest = map("".join, _split(pieces, _STAR))
    return first + "".join(_add_stars(_STAR, rest))


def _add_stars(star: str, parts: list[str]) -> Iterator[str]:
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
    """Anchor a pattern with a slash at the top. Any other pattern matches at any depth."""
    anywhere = "" if "/" in pattern else "(?:.*/)?"
    return anywhere + _path_expression(pattern.removeprefix("/"))


def _piece(pattern: str, place: int) -> tuple[str, int]:
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
            # Escape a dash that is the end of a range, because Python warns about `--`.
            is_end = pattern[end] == "-" and re.search(r"(?<!\\)-\Z|\A\Z", inner)
            inner += "\\" + pattern[end] if is_end or pattern[end] in "[]\\^&~|" else pattern[end]
        end += 1
    if end >= len(pattern):
        return "\\[", place + 1
    return f"(?!/)[{'^' if is_not else ''}{inner}]", end + 1


def expand_braces(pattern: str) -> list[str]:
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
    if len(pattern) > MAX_CHARS:
        return _NOTHING
    choices = (choice.removeprefix("./") for choice in expand_braces(pattern))
    return "|".join(f"(?:{anchored_expression(choice)})" for choice in choices)


IGNORE_BYTES = 1 << 20  # a larger file of ignore rules is not read
VERSION_CONTROL = frozenset({".bzr", ".git", ".hg", ".jj", ".sl", ".svn"})


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    expression: re.Pattern[str]
    is_exception: bool
    only_directories: bool


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    base: str
    """The absolute path of the directory, ending in a slash."""
    rules: tuple[IgnoreRule, ...]

    def verdict(self, path: str, is_directory: bool) -> bool | None:
        """Return True for an ignored path, False for an exception, or None if no rule matches."""
        below = path.removeprefix(self.base)
        for rule in reversed(self.rules):
            if rule.only_directories and not is_directory:
                continue
            if rule.expression.fullmatch(below):
                return not rule.is_exception
        return None


def parse_rule(line: str) -> IgnoreRule | None:
    """Parse one line. Return None for blank lines, comments and malformed patterns."""
    whole = line.rstrip("\r\n")
    line = whole.rstrip(" \t")
    if line.endswith("\\"):  # an escaped space at the end counts
        line = whole[: len(line) + 1]
    if not line or line.startswith("#"):
        return None
    is_exception = line.startswith("!")
    pattern = line[1:] if is_exception else line
    only_directories = pattern.endswith("/")
    pattern = pattern.rstrip("/") if only_directories else pattern
    if not pattern:
        return None
    try:
        expression = re.compile(anchored_expression(pattern), re.DOTALL)
    except re.error:
        return None
    return IgnoreRule(expression, is_exception, only_directories)


def _open_unlinked(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _rules_in(file: Path, base: Path) -> IgnoreRules | None:
    try:
        if not stat.S_ISREG(file.lstat().st_mode):  # git follows no link here either
            return None
        with open(file, "rb", opener=_open_unlinked) as opened:
            content = opened.read(IGNORE_BYTES + 1)
    except OSError:
        return None
    if len(content) > IGNORE_BYTES:
        return None
    text = content.decode("utf-8-sig", "surrogateescape")
    rules = tuple(rule for rule in map(parse_rule, text.split("\n")) if rule)
    return IgnoreRules(f"{base}/".replace("//", "/"), rules) if rules else None


def rules_above(directory: Path) -> tuple[IgnoreRules, ...]:
    """Return the rules from above a directory that apply in it, strongest last."""
    found: list[IgnoreRules | None] = []
    for place in (directory, *directory.parents):
        if place != directory:
            found.append(_rules_in(place / ".gitignore", place))
        if (place / ".git").exists():
            found.append(_rules_in(place / ".git" / "info" / "exclude", place))
            break
    return tuple(rules for rules in reversed(found) if rules)


def walk(directory: Path) -> Iterator[str]:
    directory = directory.absolute()
    yield from _walk(str(directory), "", rules_above(directory))


def _walk(top: str, below: str, above: tuple[IgnoreRules, ...]) -> Iterator[str]:
    here = Path(top, below)
    own = _rules_in(here / ".gitignore", here)
    rules = (*above, own) if own else above
    try:
        with os.scandir(here) as entries:
            listed = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return  # because it is unreadable or just removed
    for entry in listed:
        is_directory = entry.is_dir(follow_symlinks=False)
        if entry.name in VERSION_CONTROL or is_ignored(entry.path, is_directory, rules):
            continue
        path = f"{below}/{entry.name}" if below else entry.name
        if is_directory:
            yield from _walk(top, path, rules)
        elif entry.is_file(follow_symlinks=False):
            yield path


def is_ignored(path: str, is_directory: bool, rules: tuple[IgnoreRules, ...]) -> bool:
    verdicts = (file.verdict(path, is_directory) for file in reversed(rules))
    return next((verdict for verdict in verdicts if verdict is not None), False)
