"""Walks a tree, leaving out what `.gitignore` files name.

Yields regular files in the order of their names; links are not followed, version control's own
directories are left out. A rule further down outweighs one further up, a later one in a file
the earlier; nothing in an ignored directory can be brought back. Loaded alone by the search
process.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast.tools.globs import anchored_expression

VERSION_CONTROL = frozenset({".bzr", ".git", ".hg", ".jj", ".sl", ".svn"})


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    expression: re.Pattern[str]
    """For a path from the file's directory."""
    is_exception: bool
    only_directories: bool


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    base: str
    """Absolute, with a slash at the end."""
    rules: tuple[IgnoreRule, ...]

    def verdict(self, path: str, is_directory: bool) -> bool | None:
        """Return True for ignored, False for an exception, None if no rule matches."""
        below = path.removeprefix(self.base)
        for rule in reversed(self.rules):
            if rule.only_directories and not is_directory:
                continue
            if rule.expression.fullmatch(below):
                return not rule.is_exception
        return None


def parse_rule(line: str) -> IgnoreRule | None:
    """Parse one line; blank lines, comments and malformed patterns are None."""
    line = re.sub(r"(?<!\\)[ \t]+$", "", line.rstrip("\r\n"))
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


def rules_in(file: Path, base: Path) -> IgnoreRules | None:
    try:
        text = file.read_text(encoding="utf-8-sig", errors="surrogateescape")
    except OSError:
        return None
    rules = tuple(rule for rule in map(parse_rule, text.split("\n")) if rule)
    return IgnoreRules(f"{base}/".replace("//", "/"), rules) if rules else None


def rules_above(directory: Path) -> tuple[IgnoreRules, ...]:
    """Gather the rules that apply in a directory from above it, the strongest last."""
    found: list[IgnoreRules | None] = []
    for place in (directory, *directory.parents):
        if place != directory:
            found.append(rules_in(place / ".gitignore", place))
        if (place / ".git").exists():
            found.append(rules_in(place / ".git" / "info" / "exclude", place))
            break
    return tuple(rules for rules in reversed(found) if rules)


def walk(directory: Path) -> Iterator[str]:
    """Yield the files of a tree that are not ignored, relative to its top."""
    directory = directory.absolute()
    yield from _walk(str(directory), "", rules_above(directory))


def _walk(top: str, below: str, above: tuple[IgnoreRules, ...]) -> Iterator[str]:
    here = Path(top, below)
    own = rules_in(here / ".gitignore", here)
    rules = (*above, own) if own else above
    try:
        with os.scandir(here) as entries:
            listed = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return  # unreadable or just removed: there is nothing to list
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
    """Return whether a path is ignored by these rules, the strongest last."""
    verdicts = (file.verdict(path, is_directory) for file in reversed(rules))
    return next((verdict for verdict in verdicts if verdict is not None), False)
