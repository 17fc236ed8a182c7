"""Find exact names in a text by their form: paths, identifiers, flags, numbers, ids and URLs."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from posixpath import splitext
from typing import Literal, TypeAlias

from longhold.core.stages.facts.facts import ChangeFact

NameKind: TypeAlias = Literal["path", "name", "flag", "id", "number", "address"]

_EXTENSIONS = (
    "bash|c|cc|cfg|cjs|cpp|cs|css|csv|env|ex|exs|go|gradle|h|hcl|heex|hpp|html|ini|ipynb|java|js|"
    "json|jsonl|jsx|kt|lock|log|lua|md|mjs|mod|php|proto|ps1|py|pyi|rb|rs|rst|scala|scss|sh|sql|"
    "sum|svelte|swift|tf|toml|ts|tsx|txt|vue|xml|yaml|yml|zig"
)
_SHAPES: dict[NameKind, str] = {
    "address": r"https?://[^\s\"'<>)\]}`\\]+",
    "path": (
        r"(?<![\w.@+~-])(?:~|\.{1,2})?/?(?:[\w.@+-]{1,120}/)+[\w.@+-]{1,120}"
        rf"|(?<![\w.-])[\w-][\w.-]{{0,120}}\.(?:{_EXTENSIONS})\b"
    ),
    "flag": r"(?<![\w-])--[a-z][\w-]+",
    "id": r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b|\b[A-Z]{2,}-\d+\b|(?<!\w)#\d+\b",
    "name": (
        r"\b[a-zA-Z]\w*(?:\.[a-zA-Z_]\w*)+\b"
        r"|\b[a-zA-Z]+_\w+\b|\b_\w+\b"
        r"|\b[a-z]+[0-9]*(?:[A-Z][a-z0-9]*)+\b"
        r"|\b[A-Z]+[a-z0-9]+(?:[A-Z][a-z0-9]*)+\b"
        r"|\b[a-zA-Z]\w+(?=\(\))"
    ),
    "number": r"\b\d{2,}(?:[.,:]\d+)*\b",
}
_NAME = re.compile("|".join(f"(?P<{kind}>{shape})" for kind, shape in _SHAPES.items()))

TOUCHED = 10
PROSE = frozenset({".md", ".mdx", ".txt", ".rst", ".adoc", ".org"})
"""Suffixes of files that are structured by headings instead of definitions."""

_PROSE_HEADING = re.compile(r"^#{1,4} +(.+)$", re.MULTILINE)
_IMPORT = re.compile(
    r"(?:import|from|require|alias|use|using|include|//|/\*|\*|--|#|\"\"\")(?:\W|$)|[\w.]* ?\"[\w./@-]+\"$"
)
_COMMENT = ("#", "//", "/*", "--", ";", '"""')
PUT_IN_CHARS = 160
PUT_IN = ": put in "
REPLACED_CHARS = 100
"""Limit for each side of a replacement that is shown instead of the new code."""
LONGEST_CHARS = 200
"""Longer matches are data."""
SCANNED_CHARS = 200_000
"""Limit for each text. Names that matter appear early."""
REMEMBERED = 2_048
"""Number of cached texts, because every compaction reads edits and messages again."""
REMEMBERED_CHARS = 2_000


def last_name(path: str) -> str:
    """Return the last part of a path. Unlike `PurePosixPath`, this does not intern strings."""
    return path.rstrip("/").rpartition("/")[2]


def suffix_of(path: str) -> str:
    return splitext(last_name(path))[1]


def find_names(text: str) -> Mapping[str, NameKind]:
    """Return the names in a text with their kinds, in order of first appearance."""
    return _remembered_names(text) if len(text) <= REMEMBERED_CHARS else _names_of(text)


def _names_of(text: str) -> Mapping[str, NameKind]:
    found: dict[str, NameKind] = {}
    for match in _NAME.finditer(text[:SCANNED_CHARS]):
        name = match.group().rstrip(".,:;")
        if 2 <= len(name) <= LONGEST_CHARS and name not in found:
            found[name] = match.lastgroup  # type: ignore[assignment]
    return found


_remembered_names = lru_cache(maxsize=REMEMBERED)(_names_of)


def has_name(text: str) -> bool:
    """Return the same as `bool(find_names(text))`, but faster."""
    return bool(_NAME.search(text))


_QUOTED = re.compile(r"\"[^\"\n\\]{3,80}\"|(?<!\w)'[^'\n\\]{3,80}'(?!\w)|`[^`\n\\]{3,80}`")
_DEFINED = re.compile(
    r"^[ \t]*(?:(?:export|public|private|protected|static|async|default|pub(?:\([a-z]{1,9}\))?|abstract|final)[ \t]+){0,5}"
    r"(?:func(?:[ \t]*\([^)\n]{0,200}\))?|def|defp|defmodule|class|type|interface|struct|enum|trait|impl|fn|function|module)"
    r"[ \t]+([A-Za-z_][\w.]*)",
    re.MULTILINE,
)


def find_quoted(text: str) -> dict[str, None]:
    return dict.fromkeys(match.group() for match in _QUOTED.finditer(text[:SCANNED_CHARS]))


def find_defined(text: str) -> dict[str, None]:
    return dict.fromkeys(_DEFINED.findall(text[:SCANNED_CHARS]))


def list_touched(changes: Iterable[ChangeFact]) -> list[str]:
    """List the definitions, or in prose the headings, that edits touched."""
    found: Counter[str] = Counter()
    for change in changes:
        text = f"{change.removed}\n{change.added}"
        is_prose = suffix_of(change.path).lower() in PROSE
        found.update(_PROSE_HEADING.findall(text) if is_prose else list(find_defined(text)))
    return [name for name, _ in found.most_common(TOUCHED)]


def list_added(changes: Iterable[ChangeFact], known: Iterable[str] = ()) -> list[str]:
    found: dict[str, None] = {}
    for change in changes:
        quoted = (s for s in find_quoted(change.added) if s[1] not in "$ ")  # not shell variables
        strings = [s for s in quoted if s not in change.removed]
        written = " ".join(strings)
        names = (
            n for n in find_names(change.added) if n not in change.removed and n not in written
        )
        found.update(dict.fromkeys((*strings, *names)))
    listed = set(known)
    return [name for name in found if name not in listed]


def new_lines(change: ChangeFact) -> list[str]:
    """Return the lines that an edit adds, without the unchanged lines that it repeats."""
    before = {line.strip() for line in change.removed.splitlines()}
    lines = (line.rstrip() for line in change.added.splitlines())
    return [line for line in lines if line.strip() and line.strip() not in before]


def is_routine(change: ChangeFact) -> bool:
    """Return whether an edit only removes a line, or only adds imports and comments."""
    return all(_IMPORT.match(line.strip()) for line in new_lines(change))


def describe_change(change: ChangeFact) -> str:
    """Describe an edit: the replacement, the definitions it touches, or its first new line."""
    turned = replace(change, added=change.removed, removed=change.added)
    new, old = ([line.strip() for line in new_lines(each)] for each in (change, turned))
    is_small = len(new) <= 1 and len(old) == 1 and max(map(len, old + new)) <= REPLACED_CHARS
    if is_small:
        return f": `{old[0]}` → {f'`{new[0]}`' if new else 'nothing'}"
    if names := [name for name in list_touched([change]) if any(name in line for line in new)]:
        return f": {', '.join(names)}"
    if code := " ".join(line for line in new if not line.startswith(_COMMENT)) or " ".join(new):
        return f"{PUT_IN}`{code[:PUT_IN_CHARS]}{'…' if len(code) > PUT_IN_CHARS else ''}`"
    return f": took out {len(old)} lines" if old else ""
