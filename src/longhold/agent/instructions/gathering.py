"""Finds and reads instruction files and their imports, each once, lowest precedence first.

The search is breadth first, so it reaches each file by the shortest import chain and ends despite
cycles. Imports come before their importer. A project's links and imports to files outside it need
the user's trust.
"""

import hashlib
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice, takewhile
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from longhold.agent.tools.globs import (
    VERSION_CONTROL,
    glob_expression,
    is_ignored,
    rules_above,
    walk,
)
from longhold.core.messages import Json
from longhold.core.messages.text import list_some
from longhold.core.settings import InstructionsSettings, front_matter, home
from longhold.core.settings.project import UnusableFile, checkout_top, read_text

SourceKind: TypeAlias = Literal["user", "project", "local"]

SHARED = ("AGENTS.md", "CLAUDE.md", ".claude/CLAUDE.md", ".longhold/AGENTS.md")
"""The files read in each directory, in this order, so that the second can build on the first."""
RULES = (".claude/rules", ".longhold/rules")
"""Directories of rules. A rule with `paths` applies once a tool touches a matching file."""
LISTED_RULES = 2_000
"""Ten times the file limit, so that a message can name the omitted files."""
LOCAL = ("AGENTS.local.md", "CLAUDE.local.md")
"""Personal files, placed last so that they take precedence over shared ones."""
AFTER_A_PATH = ".,;:!?)]}>\"'*_"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionCandidate:
    path: Path
    kind: SourceKind = "project"
    base: Path | None = None
    is_above: bool = False
    """Whether the file is above the project, where only files of the user or root count."""
    only_for_paths: bool = False


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
            if candidate.base or not is_old:
                yield replace(candidate, only_for_paths=is_old)


def list_everywhere(ground: Ground) -> Iterator[InstructionCandidate]:
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
        real = real_path(place / name)
        if real and (ground.is_inside(real) or real.is_relative_to(place)):  # no link leads out
            listed += _rules(place / name, place, "project")
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


_CODE = (
    r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})"
    r".*?(?:^[ \t>]*(?P=fence)[`~]*[ \t]*$|\Z)"
)
_COMMENTS = r" {0,3}(?:<!(?=--).*?-->)+(?:[ \t]*$\n?)?"
_FENCED = re.compile(f"^{_CODE}", re.M | re.S)
_FENCED_OR_COMMENTS = re.compile(f"^(?:(?P<code>{_CODE})|{_COMMENTS})", re.M | re.S)
_IMPORT = re.compile(r"(?:^|(?<=[\s(]))@((?:\\ |[^\s\\])+)", re.M)
_PATH_START = re.compile(r"[\w.~/]")
IMPORT_HOPS = 4
MAX_FILE_BYTES = 4 << 20
LARGE_CHARS = 40_000
"""A longer file is used but reported, because it costs 10,000 tokens in every call."""
MAX_FILES = 200


def without_comments(text: str) -> str:
    """Remove block comments, except in code or in the middle of a line."""
    last = text.rfind("-->")
    if last < 0:
        return text.strip("\n")
    end = text.find("\n", last) + 1 or len(text)  # the search would be very slow beyond it
    kept = _FENCED_OR_COMMENTS.sub(lambda found: found["code"] or "", text[:end])
    return (kept + text[end:]).strip("\n")


def find_imports(text: str) -> tuple[str, ...]:
    if "@" not in text:
        return ()
    found = (
        match[1].replace("\\ ", " ")
        for paragraph in _FENCED.sub("", without_comments(text)).split("\n\n")
        for match in _IMPORT.finditer(_without_spans(paragraph))
    )
    return tuple(dict.fromkeys(path for path in found if _PATH_START.match(path)))


def _without_spans(paragraph: str) -> str:
    """Remove code between backticks. A last backtick without a partner is plain text."""
    pieces = paragraph.split("`")
    last = [] if len(pieces) % 2 else pieces[-1:]
    return "`".join((*pieces[::2], *last))


NAMED = 5
TEXT_SUFFIXES = (".md", ".mdc", ".txt")
"""A missing import is reported only with these suffixes, because `@someone` may not be a file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionPart:
    path: Path
    kind: SourceKind
    text: str
    imported_by: Path | None = None
    is_for_paths: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A file that needs the user's trust: an outside import, or a personal file in the project."""

    importer: Path
    path: Path
    sha256: str = ""
    """The hash of a personal file, because trust covers exactly its current text."""

    @property
    def fingerprint(self) -> str:
        what = ["local", self.sha256] if self.sha256 else ["import", str(self.importer)]
        said = msgspec.json.encode([*what, str(self.path)])
        return hashlib.sha256(said).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    parts: tuple[InstructionPart, ...] = ()
    notices: tuple[str, ...] = ()
    waiting: tuple[Waiting, ...] = ()


def load(ground: Ground, *, trusted: frozenset[str] = frozenset()) -> Gathered:
    if not ground.settings.on:
        return Gathered()
    return gather(list_at_start(ground), ground, trusted=trusted)


def list_waiting_imports(
    ground: Ground, *, trusted: frozenset[str] = frozenset()
) -> tuple[Waiting, ...]:
    found = gather(list_everywhere(ground), ground, trusted=trusted, ignore_paths=True)
    return found.waiting


def gather(
    candidates: Iterable[InstructionCandidate],
    ground: Ground,
    *,
    trusted: frozenset[str] = frozenset(),
    known: frozenset[Path] = frozenset(),
    touched: Path | None = None,
    ignore_paths: bool = False,
) -> Gathered:
    """Read candidates and their imports, except files already `known`.

    A rule with `paths` applies if one of them matches `touched` or if `ignore_paths` is set.
    """
    gatherer = _Gatherer(ground, trusted, known, touched, ignore_paths)
    gatherer.start_all(list(candidates))
    gatherer.follow()
    parts = tuple(node.part for node in gatherer.walk_files())
    notices = gatherer.notices
    if dropped := [str(path) for path in gatherer.dropped]:
        named = list_some(dropped, NAMED)
        notices.append(f"more than {MAX_FILES} instruction files; left out: {named}")
    notices += (
        f"{part.path} has {len(part.text):,} characters; every call sends them"
        for part in parts
        if len(part.text) > LARGE_CHARS
    )
    return Gathered(parts=parts, notices=tuple(notices), waiting=tuple(gatherer.waiting))


@dataclass(slots=True, kw_only=True)
class _Node:
    part: InstructionPart
    hops: int
    is_users: bool
    """The user's own file, which may import anything the user can read."""
    imports: list[Path] = field(default_factory=list)


@dataclass(slots=True)
class _Gatherer:
    ground: Ground
    trusted: frozenset[str]
    known: frozenset[Path]
    touched: Path | None
    ignore_paths: bool
    notices: list[str] = field(default_factory=list)
    waiting: list[Waiting] = field(default_factory=list)
    _starts: list[_Node] = field(default_factory=list)
    _found: dict[Path, _Node | None] = field(default_factory=dict)
    """Files by resolved path. The value None means that a file was read but is not used."""
    dropped: list[Path] = field(default_factory=list)

    def start_all(self, candidates: list[InstructionCandidate]) -> None:
        """Add candidates. Rules come last, because they are the first to be dropped."""
        rules_last = sorted(enumerate(candidates), key=lambda item: item[1].base is not None)
        started = {i: node for i, candidate in rules_last if (node := self._start(candidate))}
        self._starts = [started[i] for i in sorted(started)]

    def _start(self, candidate: InstructionCandidate) -> _Node | None:
        path = real_path(candidate.path)
        if path is None or path in self._found or path in self.known:
            return None
        part = self._read(path, candidate) if self._may_start(candidate, path) else None
        others = [node.part for node in self._found.values() if node]
        if part is None or (part.path.parent, part.text) in [
            (other.path.parent, other.text) for other in others
        ]:
            return None  # because it repeats a file next to it
        return self._add(part, hops=0, is_users=candidate.kind == "user")

    def _may_start(self, candidate: InstructionCandidate, path: Path) -> bool:
        if candidate.kind == "user" or candidate.is_above:
            return is_users_or_roots(candidate.path)
        if self.ground.is_inside(path):
            return True
        return self._may_leave(Waiting(importer=candidate.path, path=path), "is a link to")

    def follow(self) -> None:
        queue = deque(self._starts)
        while queue:
            node = queue.popleft()
            for written in find_imports(node.part.text):
                path = self._target(node, written)
                if path is None:
                    continue
                node.imports.append(path)
                if path not in self._found:
                    found = self._import(node, path)
                    queue.extend([found] if found else [])

    def _target(self, node: _Node, written: str) -> Path | None:
        path = next(filter(None, map(real_path, spellings(node.part.path.parent, written))), None)
        if path is None:
            if written.rstrip(AFTER_A_PATH).endswith(TEXT_SUFFIXES):
                self.notices.append(f"{node.part.path} imports {written}, which does not exist")
            return None
        if path in self.known or path.is_dir():
            return None
        if node.is_users or self.ground.is_inside(path):
            return path
        waiting = Waiting(importer=node.part.path, path=path)
        return path if self._may_leave(waiting, "imports") else None

    def _import(self, node: _Node, path: Path) -> _Node | None:
        if node.hops >= IMPORT_HOPS:
            self._found[path] = None
            self.notices.append(
                f"{node.part.path} imports {path}, more than {IMPORT_HOPS} levels deep; it is not read"
            )
            return None
        is_users = node.is_users and self.ground.is_users(path)
        is_projects = not is_users and node.part.kind == "user" and self.ground.is_inside(path)
        candidate = InstructionCandidate(
            path=path, kind="project" if is_projects else node.part.kind
        )
        part = self._read(path, candidate, imported_by=node.part.path)
        if part is None:
            return None
        return self._add(part, hops=node.hops + 1, is_users=is_users)

    def _may_leave(self, waiting: Waiting, how: str) -> bool:
        """Return whether the user trusts an import from outside the project. If not, report it."""
        if waiting.fingerprint in self.trusted:
            return True
        if waiting not in self.waiting:
            self.waiting.append(waiting)
            self.notices.append(
                f"{waiting.importer} {how} {waiting.path}, outside the project; it is not read "
                "until you trust it with `longhold trust`"
            )
        return False

    def _read(
        self, path: Path, candidate: InstructionCandidate, imported_by: Path | None = None
    ) -> InstructionPart | None:
        self._found[path] = None
        if sum(node is not None for node in self._found.values()) >= MAX_FILES:
            self.dropped.append(path)
            return None
        try:
            text = read_text(path, MAX_FILE_BYTES, within=path)
        except UnusableFile as reason:
            self.notices.append(f"{path} is not used as instructions: {reason}")
            return None
        fields, body = front_matter.parse(text) if candidate.base else ({}, text)
        patterns = _patterns(fields.get("paths"))
        if not self._is_wanted(candidate, patterns):
            del self._found[path]  # because a file touched later may match it
            return None
        text = without_comments(body).strip()
        if not text:
            return None
        return InstructionPart(
            path=path,
            kind=self._kind(candidate, path, text),
            text=text,
            imported_by=imported_by,
            is_for_paths=bool(patterns),
        )

    def _kind(self, candidate: InstructionCandidate, path: Path, text: str) -> SourceKind:
        """Return whose file this is. An untrusted personal file counts as the project's."""
        if candidate.kind != "local":
            return candidate.kind
        mark = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
        waiting = Waiting(importer=path, path=path, sha256=mark)
        if waiting.fingerprint in self.trusted:
            return "local"
        self.waiting.append(waiting)
        self.notices.append(
            f"{path} is treated as the project's; if you wrote it, confirm that with `longhold trust`"
        )
        return "project"

    def _is_wanted(self, candidate: InstructionCandidate, patterns: tuple[str, ...]) -> bool:
        """Return whether a rule applies to the touched file. Without `paths` it always does."""
        if not patterns or self.ignore_paths:
            return not candidate.only_for_paths
        base, touched = candidate.base, self.touched
        if base is None or touched is None or not touched.is_relative_to(base):
            return False
        below = str(touched.relative_to(base))
        return any(re.fullmatch(glob_expression(p), below, re.DOTALL) for p in patterns)

    def _add(self, part: InstructionPart, *, hops: int, is_users: bool) -> _Node:
        self._found[part.path] = node = _Node(part=part, hops=hops, is_users=is_users)
        return node

    def walk_files(self) -> Iterator[_Node]:
        done = {node.part.path for node in self._starts}
        for node in self._starts:
            yield from self._with_imports(node, done)

    def _with_imports(self, node: _Node, done: set[Path]) -> Iterator[_Node]:
        for path in node.imports:
            found = self._found.get(path)
            if found is not None and path not in done:
                done.add(path)
                yield from self._with_imports(found, done)
        yield node


PATTERN_CHARS = 10_000  # splitting takes time quadratic in the length


def _patterns(written: Json) -> tuple[str, ...]:
    if isinstance(written, list):
        written = ",".join(map(str, written))
    else:
        written = str(written or "").strip("[]")
    parts = re.split(r"(?:^|\s)-\s+|,(?![^{]*\})", written[:PATTERN_CHARS])
    return tuple(part.strip().strip("\"'") for part in parts if part.strip())
