"""Tables of a log's calls, results, files and steps, by entry number."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from longhold.core.log.entries import (
    AnyEntry,
    Asked,
    Cleared,
    Collapsed,
    Compacted,
    Ran,
    Replied,
    Restored,
    Said,
    Snipped,
    Spilled,
    Swept,
)
from longhold.core.messages import ToolUse
from longhold.core.messages.text import one_line
from longhold.core.tools.describe import description_of

TARGET_CHARS = 120

_NUMBER = re.compile(r"\s*#?(\d{1,12})\s*")
"""Matches an entry number of up to twelve digits."""
_SPAN = re.compile(r"#?(\d{1,12})\s*(?:-|–|\.\.|to)\s*#?(\d{1,12})")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCall:
    n: int
    use: ToolUse

    @property
    def paths(self) -> tuple[str, ...]:
        return description_of(self.use.name).paths_in(self.use.input)

    @property
    def target(self) -> str:
        """The path, the command, or the beginning of the first input."""
        known = description_of(self.use.name)
        keys = (*known.path_inputs, *filter(None, [known.command_input]))
        values = [self.use.input.get(key) for key in keys] + list(self.use.input.values())
        text = next((str(value) for value in values if value), "")
        return one_line(text)[:TARGET_CHARS]


@dataclass(slots=True, kw_only=True)
class Step:
    """One answer of the model, possibly in several entries, with its tool calls."""

    response_id: str
    answers: list[int] = field(default_factory=list)
    uses: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Catalogue:
    calls: dict[str, RecordedCall] = field(default_factory=dict)
    """The newest call of each tool use id."""
    results: dict[str, list[int]] = field(default_factory=dict)
    """Entries with the result of a tool use. Usually there is one."""
    files: dict[str, list[int]] = field(default_factory=dict)
    """Entries by the path that they name: results, and answers without results."""
    swept: dict[str, str] = field(default_factory=dict)
    """Deleted bodies, each with the reason."""
    steps: dict[int, Step] = field(default_factory=dict)
    places: dict[int, int] = field(default_factory=dict)
    """The ordinal of the step or message to which an entry belongs."""
    _step: Step | None = None
    _count: int = 0

    def take(self, entry: AnyEntry) -> None:
        match entry:
            case Asked():
                self._step = None
            case Said() | Compacted() | Collapsed() | Restored():
                self._count += 1
                self.places[entry.n] = self._count
            case Replied():
                self._answer(entry)
            case Ran(tool_use_id=id):
                self.results.setdefault(id, []).append(entry.n)
                call = self.calls.get(id)
                self.places[entry.n] = self.places[call.n] if call else self._count
                self._name(call.paths if call else (), entry.n)
                self._name([entry.file] if entry.file else (), entry.n)
            case Spilled(tool_use_id=id, file=file) if file and id in self.results:
                self._name([file], self.results[id][-1])
            case Swept(files=files, why=why):
                self.swept |= {name.rpartition("/")[2]: why or "it was removed" for name in files}

    def _answer(self, entry: Replied) -> None:
        """Register an answer's calls. Later parts of the same response join its step."""
        step = self._step
        if step is None or not entry.response_id or entry.response_id != step.response_id:
            step = self._step = Step(response_id=entry.response_id)
            self._count += 1
        self.steps[entry.n] = step
        self.places[entry.n] = self._count
        step.answers.append(entry.n)
        for block in entry.content:
            if isinstance(block, ToolUse):
                self.calls[block.id] = RecordedCall(n=entry.n, use=block)
                step.uses.append(block.id)

    def _name(self, paths: Iterable[str], n: int) -> None:
        for path in paths:
            known = self.files.setdefault(path, [])
            if n not in known[-1:]:
                known.append(n)

    def call_of(self, entry: AnyEntry | None) -> RecordedCall | None:
        return self.calls.get(entry.tool_use_id) if isinstance(entry, Ran) else None

    def find_touching(self, path: str) -> list[int]:
        """Return the entries that name a file by its path or the end of the path."""
        wanted = path.strip().removeprefix("./")
        found = {
            n
            for known, numbers in self.files.items()
            if known == wanted
            or known.endswith(f"/{wanted.lstrip('/')}")
            or (wanted.startswith("/") and wanted.endswith(f"/{known.removeprefix('./')}"))
            for n in numbers
        }
        return sorted(found)

    def numbers(self, id: str) -> range | list[int] | None:
        """Resolve a tool use id, `123`, `#123`, or a span such as `#41-#57`."""
        id = id.strip()
        if id in self.results:
            return self.results[id]
        if id in self.calls:
            return [self.calls[id].n]
        if (n := number_in(id)) is not None:
            return [n]
        span = _SPAN.fullmatch(id)
        return range(int(span[1]), int(span[2]) + 1) if span else None

    def place(self, n: int) -> int:
        return self.places.get(n, 0)

    def step(self, n: int) -> list[int]:
        step = self.steps[n]
        first = step.answers[0]
        results = (r for use in step.uses for r in self.results.get(use, ()) if r > first)
        return sorted({*step.answers, *results})

    def find_covered(self, entry: AnyEntry) -> list[range]:
        """Return the numbers that an entry replaced in the view or removed from it."""
        match entry:
            case Collapsed(first=first, last=last) | Compacted(first=first, last=last):
                return [range(first, last + 1)]
            case Snipped(targets=targets):
                return [range(n, n + 1) for n in sorted(targets)]
            case Cleared(ids=ids):
                found = sorted(n for id in ids for n in self.results.get(id, ()))
                return [range(n, n + 1) for n in found]
            case Spilled(tool_use_id=id):
                return [range(n, n + 1) for n in self.results.get(id, ())]
        return []


def number_in(id: str) -> int | None:
    found = _NUMBER.fullmatch(id)
    return int(found[1]) if found else None
