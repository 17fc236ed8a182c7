"""Reads instruction files and their imports, each once, in order of precedence.

Files are read breadth first, so each is reached by the shortest import chain and cycles end.
Imports come before their importer, because later text takes precedence.
"""

import hashlib
import re
from bisect import bisect_right
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

_FENCE = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(`{3,}(?=[^`]*$)|~{3,})")
_COMMENT = re.compile(r" {0,3}<!--")
_LIST_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_INDENTED = re.compile(r"(?: {4}| {0,3}\t)[ \t]*\S")
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
    return "\n".join(line for line, _ in _lines(text)).strip("\n")


def find_imports(text: str) -> tuple[str, ...]:
    if "@" not in text:
        return ()
    prose = "\n".join("" if is_code else line.rstrip() for line, is_code in _lines(text))
    found = (
        match[1].replace("\\ ", " ")
        for paragraph in prose.split("\n\n")
        if "@" in paragraph
        for match in _IMPORT.finditer(_without_spans(paragraph))
    )
    return tuple(dict.fromkeys(path for path in found if _PATH_START.match(path)))


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield (line, is_code) for every line outside comments."""
    lines = text.split("\n")
    fence, place, can_close = "", 0, True
    indent = _Indentation()
    while place < len(lines):
        line = lines[place]
        if not fence and can_close and _COMMENT.match(line):
            end = _comment_end(lines, place)
            can_close = end is not None  # if this comment is not closed, no later one is
            if end is not None:
                place = end
                continue
        if fence:
            yield line, True
            fence = "" if _closes(line, fence) else fence
        elif opened := _FENCE.match(line):
            fence = opened[1]
            yield line, True
        else:
            yield line, indent.is_code(line)
        place += 1


def _comment_end(lines: list[str], place: int) -> int | None:
    """Return the line after a comment. Text after `-->` becomes a separate line."""
    start = lines[place].index("<!--") + 2
    for number in range(place, len(lines)):
        end = lines[number].find("-->", start if number == place else 0)
        if end >= 0:
            rest = lines[number][end + 3 :]
            if not rest.strip():
                return number + 1
            lines[number] = rest
            return number
    return None


def _closes(line: str, fence: str) -> bool:
    inner = line.lstrip(" \t>").rstrip()
    return len(inner) >= len(fence) and inner == fence[0] * len(inner)


class _Indentation:
    """Recognises indented code blocks. In lists, indentation has another meaning."""

    def __init__(self) -> None:
        self._may_begin = True
        self._in_list = False

    def is_code(self, line: str) -> bool:
        if not line.strip():
            self._may_begin = True
            return False
        if _INDENTED.match(line) and self._may_begin and not self._in_list:
            return True
        self._may_begin = False
        self._in_list = bool(_LIST_ITEM.match(line)) or (self._in_list and line[0] in " \t")
        return False


def _without_spans(paragraph: str) -> str:
    """Remove code between equal runs of backticks. An unmatched run is plain text."""
    runs = list(re.finditer(r"`+", paragraph))
    places: dict[int, list[int]] = {}
    for number, run in enumerate(runs):
        places.setdefault(len(run[0]), []).append(number)
    kept, done, number = [], 0, 0
    while number < len(runs):
        run = runs[number]
        equal = places[len(run[0])]
        later = bisect_right(equal, number)
        number += 1
        if later < len(equal):
            kept.append(paragraph[done : run.start()])
            done, number = runs[equal[later]].end(), equal[later] + 1
    return "`".join((*kept, paragraph[done:]))


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
    gatherer.report_dropped()
    parts = tuple(node.part for node in gatherer.walk_files())
    large = (
        f"{part.path} has {len(part.text):,} characters; every call sends them"
        for part in parts
        if len(part.text) > LARGE_CHARS
    )
    return Gathered(
        parts=parts, notices=(*gatherer.notices, *large), waiting=tuple(gatherer.waiting)
    )


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
    _dropped: list[Path] = field(default_factory=list)

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
        if part is None or self._has_twin(part):
            return None
        return self._add(part, hops=0, is_users=candidate.kind == "user")

    def _may_start(self, candidate: InstructionCandidate, path: Path) -> bool:
        if candidate.kind == "user" or candidate.is_above:
            return is_users_or_roots(candidate.path)
        if self.ground.is_inside(path):
            return True
        return self._may_leave(Waiting(importer=candidate.path, path=path), "is a link to")

    def _has_twin(self, part: InstructionPart) -> bool:
        return any(
            node.part.path.parent == part.path.parent and node.part.text == part.text
            for node in self._found.values()
            if node
        )

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
            self._dropped.append(path)
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

    def report_dropped(self) -> None:
        if not self._dropped:
            return
        named = list_some([str(path) for path in self._dropped], NAMED)
        self.notices.append(f"more than {MAX_FILES} instruction files; left out: {named}")

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
