"""Lists where instruction files may be, lowest precedence first.

A project's links and imports to files outside it need the user's trust.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from pathlib import Path
from typing import Literal, TypeAlias

from longhold.agent.tools.globs import (
    VERSION_CONTROL,
    glob_expression,
    is_ignored,
    rules_above,
    walk,
)
from longhold.core.settings import InstructionsSettings, home
from longhold.core.settings.project import checkout_top

SourceKind: TypeAlias = Literal["user", "project", "local"]

SHARED = ("AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md", ".longhold/AGENTS.md")
"""Files in each directory, in this order, so that the second can build on the first."""
RULES = (".claude/rules", ".longhold/rules")
"""Directories of rules; a rule with `paths` applies once a matching file is touched."""
LISTED_RULES = 2_000
"""Ten times the file limit, so that omitted files can be named."""
LOCAL = ("AGENTS.local.md", "CLAUDE.local.md")
"""Personal files, placed last so that they take precedence over shared ones."""
AFTER_A_PATH = ".,;:!?)]}>\"'*_"
_REFUSED = "is a link out of the project, to {}; no rules are read there"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionCandidate:
    path: Path
    kind: SourceKind = "project"
    base: Path | None = None
    """The directory to which a rule's `paths` are relative."""
    is_above: bool = False
    """True above the project, where only files of the user or root count."""
    only_for_paths: bool = False
    refused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    directory: Path
    top: Path
    """The top of the repository or worktree, or the working directory."""
    users: tuple[Path, ...]
    """The user's instruction directories, highest precedence last."""
    more: tuple[Path, ...] = ()
    settings: InstructionsSettings = field(default_factory=InstructionsSettings)

    @property
    def roots(self) -> tuple[Path, ...]:
        return (self.top, *self.more)

    def is_users(self, path: Path) -> bool:
        return any(path.is_relative_to(place) for place in self.users)

    def is_inside(self, path: Path) -> bool:
        return any(path.is_relative_to(root) for root in self.roots)

    def is_excluded(self, path: Path) -> bool:
        """Return whether the settings exclude a file. The user's own files are never excluded."""
        patterns = [part.strip() for part in self.settings.exclude.split(",") if part.strip()]
        below = str(path.relative_to(self.top)) if path.is_relative_to(self.top) else ""
        return any(_fits(pattern, path, below) for pattern in patterns)


def ground(
    directory: Path,
    *,
    more: tuple[Path, ...] = (),
    settings: InstructionsSettings | None = None,
    at: Path | None = None,
) -> Ground:
    """Find the repository and the user's directories. `.claude` is next to Longhold's home."""
    settings = settings or InstructionsSettings()
    own = (at or home()).resolve()
    beside = (own.parent / ".claude",) if settings.user_claude else ()
    directory = directory.resolve()
    return Ground(
        directory=directory,
        top=checkout_top(directory),
        users=(*beside, own),
        more=tuple(path.resolve() for path in more),
        settings=settings,
    )


def list_at_start(ground: Ground) -> Iterator[InstructionCandidate]:
    for place in ground.users:
        yield InstructionCandidate(path=place / "CLAUDE.md", kind="user")
        yield InstructionCandidate(path=place / "AGENTS.md", kind="user")
    yield from _users_rules(ground)
    for place in (*reversed(ground.directory.parents), ground.directory):
        is_above = not place.is_relative_to(ground.top)
        if not is_above or ground.settings.above_project:
            for candidate in _list_directory(place, ground):
                yield replace(candidate, is_above=is_above)


def list_near(ground: Ground, touched: Path) -> Iterator[InstructionCandidate]:
    """List the new candidates for a touched file with a resolved path.

    Directories that git ignores are skipped, because they contain other people's work.
    """
    root = next((root for root in ground.roots if touched.is_relative_to(root)), None)
    if root is None:
        return
    for rule in _users_rules(ground):
        yield replace(rule, only_for_paths=True)
    for place in reversed([place for place in touched.parents if place.is_relative_to(root)]):
        if place != root and (
            place.name in VERSION_CONTROL or is_ignored(str(place), True, rules_above(place))
        ):
            return
        is_old = ground.directory.is_relative_to(place)
        for candidate in _list_directory(place, ground):
            if (candidate.base or not is_old) and not (candidate.refused and is_old):
                yield replace(candidate, only_for_paths=is_old)


def list_everywhere(ground: Ground) -> Iterator[InstructionCandidate]:
    """List every candidate in the project, for `longhold trust`."""
    yield from list_at_start(ground)
    for root in ground.roots:
        holds = {Path(path).parent.parts for path in walk(root) if path.endswith(".md")}
        places = {root.joinpath(*takewhile(_is_outside_ours, held)) for held in holds}
        for place in sorted(places):
            yield from _list_directory(place, ground)


def _is_outside_ours(part: str) -> bool:
    return part not in (".claude", ".longhold")


def _users_rules(ground: Ground) -> Iterator[InstructionCandidate]:
    for place in ground.users:
        yield from _rules(place / "rules", ground.top, "user")


def _list_directory(place: Path, ground: Ground) -> Iterator[InstructionCandidate]:
    listed = [InstructionCandidate(path=place / name) for name in SHARED]
    for name in RULES:
        directory = place / name
        real = real_path(directory)
        if real and not ground.is_inside(real) and not real.is_relative_to(place):
            listed.append(InstructionCandidate(path=directory, refused=_REFUSED.format(real)))
        else:
            listed += _rules(directory, place, "project")
    listed += [InstructionCandidate(path=place / name, kind="local") for name in LOCAL]
    for candidate in listed:
        if not ground.is_users(candidate.path) and not ground.is_excluded(candidate.path):
            yield candidate


def real_path(path: Path) -> Path | None:
    try:
        return path.resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        return None


def spellings(directory: Path, written: str) -> Iterator[Path]:
    """Yield the paths an import may mean: as written, and without trailing punctuation."""
    for text in dict.fromkeys((written, written.rstrip(AFTER_A_PATH))):
        if text.startswith("~/"):
            yield Path.home() / text[2:]
        elif text and not text.startswith("~"):
            yield directory / text


def is_users_or_roots(path: Path) -> bool:
    """Return whether a file, and a link to it, belong to the user or root."""
    try:
        owners = {path.stat().st_uid, path.lstat().st_uid}
    except OSError:
        return False
    return owners <= {0, os.getuid()}


def _rules(directory: Path, base: Path, kind: SourceKind) -> list[InstructionCandidate]:
    found = sorted(islice(directory.rglob("*.md"), LISTED_RULES))
    return [InstructionCandidate(path=path, kind=kind, base=base) for path in found]


def _fits(pattern: str, path: Path, below: str) -> bool:
    if pattern.startswith("~/"):
        pattern = str(Path.home()) + pattern[1:]
    below = str(path)[1:] if pattern.startswith("/") else below
    return bool(below) and re.fullmatch(glob_expression(pattern), below, re.DOTALL) is not None
