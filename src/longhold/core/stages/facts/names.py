"""Find exact names in a text, by shape: paths, identifiers, flags, numbers, ids and URLs."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
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
NEIGHBOURS = 2
PROSE = frozenset({".md", ".mdx", ".txt", ".rst", ".adoc", ".org"})
"""Files structured by headings, not definitions."""

_PROSE_HEADING = re.compile(r"^#{1,4} +(.+)$", re.MULTILINE)
LONGEST_CHARS = 200
"""Anything longer is data."""
SCANNED_CHARS = 200_000
"""Per text. Names that matter appear earlier."""
REMEMBERED = 2_048
"""Cached texts: edits and messages that every compaction reads again."""
REMEMBERED_CHARS = 2_000


def last_name(path: str) -> str:
    """Return the last part of a path. `PurePosixPath` would grow Python's interned strings."""
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
    """Faster than `find_names` for a yes or no."""
    return bool(_NAME.search(text))


_QUOTED = re.compile(r"\"[^\"\n\\]{3,80}\"|(?<!\w)'[^'\n\\]{3,80}'(?!\w)|`[^`\n\\]{3,80}`")
_DEFINED = re.compile(
    r"^[ \t]*(?:(?:export|public|private|protected|static|async|default|pub(?:\([a-z]+\))?|abstract|final)\s+)*"
    r"(?:func(?:\s*\([^)]*\))?|def|defp|defmodule|class|type|interface|struct|enum|trait|impl|fn|function|module)"
    r"\s+([A-Za-z_][\w.]*)",
    re.MULTILINE,
)


def find_quoted(text: str) -> dict[str, None]:
    return dict.fromkeys(match.group() for match in _QUOTED.finditer(text[:SCANNED_CHARS]))


def find_defined(text: str) -> dict[str, None]:
    return dict.fromkeys(_DEFINED.findall(text[:SCANNED_CHARS]))


_SET = re.compile(
    r"^[ \t]*(?:(?:(?:export|pub|public|private|static)\s+)*(?:const|final|val|let|var)\s+(?:[\w.<>\[\]]+\s+)?(?P<declared>\w+)"
    r"(?:\s*:?\s*[\w.<>\[\]]+)?\s*:?=|(?P<capital>[A-Z][A-Z0-9_]{2,})(?:\s*:\s*\w+)?\s*=|@(?P<attribute>[a-z]\w+)(?=\s))"
    r"\s*(?P<value>-?\d[^\n;#]{0,30}?|\"[^\"\n]{0,40}\"|'[^'\n]{0,40}'|`[^`\n]{0,40}`|[Tt]rue|[Ff]alse)\s*(?:;|//.*|#.*)?$",
    re.MULTILINE,
)


def settings_in(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for match in _SET.finditer(text[:SCANNED_CHARS]):
        name = match["declared"] or match["capital"] or match["attribute"]
        found[name] = match["value"].strip()
    return found


def list_touched(changes: Iterable[ChangeFact]) -> list[str]:
    """List the definitions, or in prose the headings, that edits touched."""
    found: Counter[str] = Counter()
    for change in changes:
        text = f"{change.removed}\n{change.added}"
        is_prose = suffix_of(change.path).lower() in PROSE
        found.update(_PROSE_HEADING.findall(text) if is_prose else list(find_defined(text)))
    return [name for name, _ in found.most_common(TOUCHED)]


def list_neighbours(changes: Iterable[ChangeFact], shown: Iterable[str]) -> list[str]:
    names = list_touched(changes)
    found: dict[str, None] = {}
    for text in shown:
        defined = list(find_defined(text))
        for name in names:
            if name in defined:
                place = defined.index(name)
                near = defined[max(0, place - NEIGHBOURS) : place + NEIGHBOURS + 1]
                found.update(dict.fromkeys(each for each in near if each not in names))
    return list(found)


def list_values(changes: Iterable[ChangeFact]) -> list[str]:
    found: dict[str, str] = {}
    for change in changes:
        before = settings_in(change.removed)
        for name, value in settings_in(change.added).items():
            if before.get(name) != value:
                found.pop(name, None)
                found[name] = value
    return [f"{name} = {value}" for name, value in reversed(found.items())]


def list_added(changes: Iterable[ChangeFact], known: Iterable[str] = ()) -> list[str]:
    found: dict[str, None] = {}
    for change in changes:
        strings = [s for s in find_quoted(change.added) if s not in change.removed]
        written = " ".join(strings)
        names = (
            n for n in find_names(change.added) if n not in change.removed and n not in written
        )
        found.update(dict.fromkeys((*strings, *names)))
    listed = set(known)
    return [name for name in found if name not in listed]


def list_removed(changes: Iterable[ChangeFact]) -> list[str]:
    found = ((name, change) for change in changes for name in find_names(change.removed))
    return list(dict.fromkeys(name for name, change in found if name not in change.added))
