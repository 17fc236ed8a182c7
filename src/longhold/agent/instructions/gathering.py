"""Reads instruction files and their imports, each once, in order of precedence.

Files are read breadth first, so each is reached by the shortest import chain and cycles end.
Imports come before their importer, because later text takes precedence.
"""

import hashlib
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from longhold.agent.instructions.instruction_files import (
    AFTER_A_PATH,
    Ground,
    InstructionCandidate,
    SourceKind,
    is_users_or_roots,
    list_at_start,
    list_everywhere,
    real_path,
    spellings,
)
from longhold.agent.tools.globs import glob_expression
from longhold.core.messages import Json
from longhold.core.messages.text import list_some
from longhold.core.settings import front_matter
from longhold.core.settings.project import UnusableFile, read_text

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
"""Larger files are skipped and reported."""
LARGE_CHARS = 40_000
"""Longer files are used and reported, because they cost 10,000 tokens in every call."""
MAX_FILES = 200
"""Further files are dropped and reported."""


def without_comments(text: str) -> str:
    """Remove block comments, except in code or in the middle of a line."""
    last = text.rfind("-->")
    if last < 0:
        return text.strip("\n")
    end = text.find("\n", last) + 1 or len(text)  # after it, a search would never end
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
    """True for a rule with `paths` that match a touched file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A file that needs the user's trust: an outside import, or a personal file in the project."""

    importer: Path
    path: Path
    sha256: str = ""
    """Set for a personal file, because trust covers exactly this text."""

    @property
    def fingerprint(self) -> str:
        """Identifies a trusted object: an importer and a file, or a file with this text."""
        what = ["local", self.sha256] if self.sha256 else ["import", str(self.importer)]
        said = msgspec.json.encode([*what, str(self.path)])
        return hashlib.sha256(said).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    parts: tuple[InstructionPart, ...] = ()
    notices: tuple[str, ...] = ()
    waiting: tuple[Waiting, ...] = ()


def load(ground: Ground, *, trusted: frozenset[str] = frozenset()) -> Gathered:
    """Read the instructions that a session starts with."""
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

    A rule with `paths` applies if one of them matches `touched`, or always with `ignore_paths`.
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
    """By resolved path. None for files that were read but are not used."""
    dropped: list[Path] = field(default_factory=list)

    def start_all(self, candidates: list[InstructionCandidate]) -> None:
        """Add candidates. Rules come last, because they are dropped first."""
        rules_last = sorted(enumerate(candidates), key=lambda item: item[1].base is not None)
        started = {i: node for i, candidate in rules_last if (node := self._start(candidate))}
        self._starts = [started[i] for i in sorted(started)]

    def _start(self, candidate: InstructionCandidate) -> _Node | None:
        if candidate.refused:
            self.notices.append(f"{candidate.path} {candidate.refused}")
            return None
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
        """Return whether the user trusts an import from outside the project. Report it if not."""
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


def _patterns(written: Json) -> tuple[str, ...]:
    if isinstance(written, list):
        written = ",".join(map(str, written))
    else:
        written = str(written or "").strip("[]")
    parts = re.split(r"(?:^|\s)-\s+|,(?![^{]*\})", written)
    return tuple(part.strip().strip("\"'") for part in parts if part.strip())
