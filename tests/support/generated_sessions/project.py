"""The invented project a session works on: a harbour's booking desk in Python and TypeScript.

It changes: edits modify the files, later reads, searches and diffs show the result, and new
modules join as the session grows. `calls` words what a tool returns.
"""

from collections import deque
from dataclasses import dataclass

from generated_sessions.chance import Chance
from generated_sessions.corpus import Language, WordList, code, fill, prose

ROOT = "/home/dev/quayside"
FIRST_MODULES = 6
"""Enough files to wander between, few enough to come back to each."""
MOST_LINES = 1_500
"""Past this a file only shrinks, so a long session does not end in one giant file."""
MOST_FILES = 60
"""Past this no module joins; searches stay about as large as in small projects."""
LONG_FILE, SHORT_FILE = (24.0, 0.8, 90), (5.0, 0.6, 20)
"""Median, spread and most pieces of a source file and of a page; some files reach 40,000 characters."""
RECENT_EDITS = 12
"""What `git diff` shows: the edits since the last commits of a working day."""
EDIT_SPAN = (15.0, 0.9, 140)
"""Median, spread and most lines of an edit; gives inputs near 1,800 characters, as seen."""
CONTEXT_LINES = 3
"""Lines around a change in a patch, as `diff -u` has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectEdit:
    path: str
    start: int
    old: tuple[str, ...]
    new: tuple[str, ...]
    before: str
    """The whole file as it was."""
    lead: tuple[str, ...]
    trail: tuple[str, ...]
    """Unchanged lines around the change."""

    def hunk_lines(self) -> list[str]:
        return [
            *(f" {line}" for line in self.lead),
            *(f"-{line}" for line in self.old),
            *(f"+{line}" for line in self.new),
            *(f" {line}" for line in self.trail),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    path: str
    number: int
    line: str


class Project:
    """Files by path, changed in place as the session proceeds."""

    def __init__(self, chance: Chance, *, scale: float = 1.0) -> None:
        """Start the project with a few modules; the scale is that of its files."""
        self._scale = scale
        self.chance = chance
        self.files: dict[str, list[str]] = {}
        self.recent: deque[ProjectEdit] = deque(maxlen=RECENT_EDITS)
        self._entities = chance.sample(prose().entities, k=len(prose().entities))
        self._joined: list[str] = []
        for _ in range(FIRST_MODULES):
            self.grow()

    def words(self, path: str | None = None) -> WordList:
        where = path or self.any_path()
        stem = where.rsplit("/", 1)[-1].split(".")[0].removeprefix("test_").split("_")[-1]
        entity = stem if stem in self._joined else self.chance.pick(self._joined)
        other = self.chance.pick([each for each in self._joined if each != entity] or ["store"])
        return WordList(self.chance, entity=entity, other=other, path=where)

    def any_path(self) -> str:
        """Return one of the files; the first ones come up more often, as in real work."""
        paths = list(self.files)
        if not paths:
            return "README.md"
        return paths[min(int(self.chance.expovariate(2.5) * len(paths)), len(paths) - 1)]

    def grow(self) -> None:
        if not self._entities or len(self.files) >= MOST_FILES:
            return
        entity = self._entities.pop()
        self._joined.append(entity)
        for path in (
            f"src/quayside/{entity}.py",
            f"tests/test_{entity}.py",
            f"web/src/{entity}.ts",
            f"docs/{entity}.md",
            f"migrations/{len(self._joined):04}_{entity}.sql",
        ):
            self.files[path] = self.compose(path).split("\n")

    def compose(self, path: str) -> str:
        language = _language_of(path)
        median, spread, most = SHORT_FILE if path.endswith((".md", ".sql")) else LONG_FILE
        count = self.chance.length(median * self._scale, spread, most)
        parts = [language.head] if language.head else []
        parts += [self.chance.pick(language.pieces) for _ in range(count)]
        return "\n".join(fill(part, self.words(path)).strip("\n") + "\n" for part in parts)

    def text(self, path: str) -> str:
        return "\n".join(self.files[path])

    def edit(self) -> ProjectEdit:
        path = self.any_path()
        lines = self.files[path]
        before = "\n".join(lines)
        start, end = self._unique_span(lines, before)
        old = lines[start:end]
        new = self._rewrite(path, old, may_grow=len(lines) < MOST_LINES)
        edit = ProjectEdit(
            path=path,
            start=start + 1,
            old=tuple(old),
            new=tuple(new),
            before=before,
            lead=tuple(lines[max(0, start - CONTEXT_LINES) : start]),
            trail=tuple(lines[end : end + CONTEXT_LINES]),
        )
        lines[start:end] = new
        self.recent.append(edit)
        return edit

    def search(self, needle: str, most: int) -> list[Match]:
        found: list[Match] = []
        for path, lines in self.files.items():
            for number, line in enumerate(lines, start=1):
                if needle in line:
                    found.append(Match(path=path, number=number, line=line))
                    if len(found) >= most:
                        return found
        return found

    def _unique_span(self, lines: list[str], text: str) -> tuple[int, int]:
        """Choose lines whose text occurs once, as an edit tool requires."""
        start = self.chance.randrange(max(1, len(lines) - 4))
        end = min(len(lines), start + self.chance.length(*EDIT_SPAN))
        while text.count("\n".join(lines[start:end])) > 1 and end < len(lines):
            end += 1
        return start, end

    def _rewrite(self, path: str, old: list[str], *, may_grow: bool) -> list[str]:
        language = _language_of(path)
        new: list[str] = []
        for line in old:
            roll = self.chance.random()
            if roll < 0.12 or (roll < 0.3 and not may_grow):
                continue
            new.append(line)
            if roll > 0.8 and may_grow:
                new += self._statement(language, path, line)
        if new == old or not new:
            new = old + self._statement(language, path, old[-1])
        return new

    def _statement(self, language: Language, path: str, near: str) -> list[str]:
        indent = near[: len(near) - len(near.lstrip())]
        return [
            indent + line
            for line in fill(self.chance.pick(language.statements), self.words(path)).split("\n")
        ]


def _language_of(path: str) -> Language:
    languages = code()
    match path.rsplit(".", 1)[-1]:
        case "py" if path.startswith("tests/"):
            return languages.python_tests
        case "py":
            return languages.python
        case "ts":
            return languages.typescript
        case "sql":
            return languages.sql
        case _:
            return languages.markdown
