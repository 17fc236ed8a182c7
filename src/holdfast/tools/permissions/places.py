"""Resolves where a path leads: inside the working directories, outside, or unclear.

Links, `..` and `~` are resolved against the disk. What was seen can change before the tool
opens the file; a tool that must be certain looks again.
"""

import os
import unicodedata
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Literal, TypeAlias

Where: TypeAlias = Literal["inside", "readable", "own", "outside", "unclear", "impossible"]

PROTECTED_NAMES = frozenset(
    {".git", ".holdfast", ".claude", ".vscode", ".idea", ".husky", ".ssh", ".gnupg"}
)
"""Directories whose files make programs run things; writing there always asks."""

PROTECTED_FILES = frozenset(
    {
        ".bashrc", ".bash_profile", ".bash_login", ".profile", ".zshrc", ".zshenv", ".zprofile",
        ".gitconfig", ".gitmodules", ".npmrc", ".pypirc", ".netrc", ".envrc", ".mcp.json",
        ".ripgreprc", ".pre-commit-config.yaml",
    }
)  # fmt: skip
"""Files of the same sort that lie among others."""

MAX_MATCHES = 1_000
"""A glob with more matches than this is not looked through; it counts as unclear."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    roots: tuple[Path, ...]
    """The working directories."""
    cwd: Path
    """Where relative paths start."""
    readable: tuple[Path, ...] = ()
    """Directories of our own, such as spilled results, that may be read but not written."""
    writable: tuple[Path, ...] = ()
    """Files of our own, such as the plan, that may be written in every mode."""
    home: Path = field(default_factory=Path.home)


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    text: str
    where: Where
    path: Path | None = None
    """With every link followed."""
    spelled: Path | None = None
    """Absolute and without `..`, links not followed."""
    is_protected: bool = False


def locate(text: str, places: Places, *, base: Path | None = None) -> Located:
    if "\0" in text or not text:
        return Located(text=text, where="impossible")
    if _is_odd(text):
        return Located(text=text, where="unclear")
    expanded = _expand_home(text, places.home)
    if expanded is None:
        return Located(text=text, where="unclear")
    joined = (base or places.cwd) / expanded
    spelled = Path(os.path.normpath(joined))
    try:
        path, plainly = joined.resolve(), spelled.resolve()
    except (OSError, RuntimeError, ValueError):
        return Located(text=text, where="unclear", spelled=spelled)
    return Located(
        text=text,
        # a `..` behind a link leads to two places, depending on who follows it
        where=_where(path, spelled, places) if path == plainly else "unclear",
        path=path,
        spelled=spelled,
        is_protected=_is_protected(path, places) or _is_protected(spelled, places),
    )


def locate_glob(text: str, places: Places, *, base: Path | None = None) -> tuple[Located, ...]:
    """Locate every match of a shell pattern, and the directory it starts in."""
    if "\0" in text or _is_odd(text) or text.startswith("~"):
        return (Located(text=text, where="unclear"),)
    start = base or places.cwd
    parts = Path(text).parts
    fixed = list(takewhile(lambda part: not set(part) & set("*?["), parts))
    found = [locate(str(Path(*fixed)), places, base=start)]
    if ".." in parts[len(fixed) :]:
        return (Located(text=text, where="unclear"),)
    try:
        for match in start.joinpath(*fixed).glob(str(Path(*parts[len(fixed) :]))):
            found.append(locate(str(match), places, base=start))
            if len(found) > MAX_MATCHES:
                return (Located(text=text, where="unclear"),)
    except (OSError, ValueError, RuntimeError, NotImplementedError):
        return (Located(text=text, where="unclear"),)
    return tuple(found)


def looks_like_bare_repository(directory: Path, places: Places) -> bool:
    """Return whether git, run here, would take its settings from a plain directory.

    A repository can carry such a directory among its files, with a configuration that runs
    programs; git uses the first one it meets on its way up.
    """
    for candidate in (directory, *directory.parents):
        if all((candidate / name).exists() for name in ("HEAD", "objects", "refs")):
            return True
        if (candidate / ".git").exists() or candidate in places.roots:
            return False
    return False


def _is_odd(text: str) -> bool:
    """Notice characters that hide, reverse or imitate parts of a path."""
    if not text.isprintable() or "\\" in text:
        return True
    folded = unicodedata.normalize("NFKC", text)
    return any(folded.count(mark) != text.count(mark) for mark in ("/", "..", "~", "\\"))


def _expand_home(text: str, home: Path) -> Path | None:
    if text == "~" or text.startswith("~/"):
        return home / text[2:]
    return None if text.startswith("~") else Path(text)


def _where(path: Path, spelled: Path, places: Places) -> Where:
    if spelled.parts[:2] in (("/", "proc"), ("/", "dev")) and str(spelled) != "/dev/null":
        return "outside"
    if path in (own.resolve() for own in places.writable):
        return "own"
    if str(spelled) == "/dev/null" or _is_below(path, places.roots):
        return "inside"
    return "readable" if _is_below(path, places.readable) else "outside"


def _is_below(path: Path, roots: tuple[Path, ...]) -> bool:
    return any(path.is_relative_to(root.resolve()) for root in roots)


def _is_protected(path: Path, places: Places) -> bool:
    """Check the names below the working directory; case may not matter to the disk."""
    roots = (root.resolve() for root in places.roots)
    root = next((root for root in roots if path.is_relative_to(root)), None)
    below = path if root is None else path.relative_to(root)
    parts = [part.casefold() for part in below.parts]
    return not PROTECTED_NAMES.isdisjoint(parts) or not PROTECTED_FILES.isdisjoint(parts[-1:])
