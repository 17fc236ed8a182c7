"""What edits did to a file: the definitions they touched, the names and values they put in."""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import PurePosixPath

from holdfast.stages.facts.facts import ChangeFact
from holdfast.stages.facts.names import defined_in, named_in, quoted_in, settings_in

TOUCHED = 10
"""Definitions told of one file: the ones edited most."""
PROSE = frozenset({".md", ".mdx", ".txt", ".rst", ".adoc", ".org"})
"""Files that are parted by headings, not by definitions."""

_HEADING = re.compile(r"^#{1,4} +(.+)$", re.MULTILINE)


def touched(changes: Iterable[ChangeFact]) -> list[str]:
    """Name the definitions, or in prose the headings, that edits touched."""
    found: Counter[str] = Counter()
    for change in changes:
        text = f"{change.removed}\n{change.added}"
        is_prose = PurePosixPath(change.path).suffix.lower() in PROSE
        found.update(_HEADING.findall(text) if is_prose else list(defined_in(text)))
    return [name for name, _ in found.most_common(TOUCHED)]


def set_to(changes: Iterable[ChangeFact]) -> list[str]:
    """List constants that edits set, with their last values, newest first."""
    found: dict[str, str] = {}
    for change in changes:
        before = settings_in(change.removed)
        for name, value in settings_in(change.added).items():
            if before.get(name) != value:
                found.pop(name, None)
                found[name] = value
    return [f"{name} = {value}" for name, value in reversed(found.items())]


def put_in(changes: Iterable[ChangeFact], known: Iterable[str] = ()) -> list[str]:
    """List what edits added: quoted strings, flags and names that were not there before."""
    found: dict[str, None] = {}
    for change in changes:
        strings = [s for s in quoted_in(change.added) if s not in change.removed]
        written = " ".join(strings)
        names = (n for n in named_in(change.added) if n not in change.removed and n not in written)
        found.update(dict.fromkeys((*strings, *names)))
    told = set(known)
    return [name for name in found if name not in told]


def taken_out(changes: Iterable[ChangeFact]) -> list[str]:
    found: dict[str, None] = {}
    for change in changes:
        found.update(
            dict.fromkeys(name for name in named_in(change.removed) if name not in change.added)
        )
    return list(found)
