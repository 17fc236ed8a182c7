"""A brain that follows a script: answers in order, written as values or in a few lines.

The line language, one directive per line, answers separated by `---`:

    think: The user wants the file.
    text: I will read it.
    tool: Read {"path": "notes.txt"}
    stop: max_tokens
    error: 429 5

A line without a directive continues the text or thinking before it. Summaries that
the server asks for are taken from the script too.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from longhold.core.request.billing.errors import ApiError
from longhold.core.request.billing.request import JsonObject
from longhold.simulator.brains import Brain, BrainAnswer, BrainRequest, text, thinking, tool_use
from longhold.simulator.faults import parse_fault

SEPARATOR = "---"
DIRECTIVES = ("text", "think", "tool", "stop", "error")

Line = BrainAnswer | ApiError


class ScriptedBrain:
    """Plays a script from top to bottom; past its end it refuses, so that tests notice."""

    def __init__(self, script: str | Sequence[Line], *, repeats: bool = False) -> None:
        self._lines = parse_script(script) if isinstance(script, str) else tuple(script)
        self._repeats = repeats
        self._next = 0
        self.requests: list[BrainRequest] = []
        """What it was asked, for tests to look at."""

    def answer(self, request: BrainRequest) -> BrainAnswer:
        self.requests.append(request)
        if self._next >= len(self._lines) and self._repeats and self._lines:
            self._next = 0
        if self._next >= len(self._lines):
            raise ApiError(500, f"the script has no answer number {self._next + 1}")
        line = self._lines[self._next]
        self._next += 1
        if isinstance(line, ApiError):
            raise line
        return line


def parse_script(script: str) -> tuple[Line, ...]:
    """Read a script; raise ValueError with the line that is invalid."""
    parts: list[list[str]] = [[]]
    for line in script.splitlines():
        if line.strip() == SEPARATOR:
            parts.append([])
        else:
            parts[-1].append(line)
    return tuple(_parse_answer(part) for part in parts if any(line.strip() for line in part))


def _parse_answer(lines: Iterable[str]) -> Line:
    blocks: list[JsonObject] = []
    stop_reason: str | None = None
    for line in lines:
        directive, colon, rest = line.partition(":")
        rest = rest.strip()
        match directive.strip() if colon else "":
            case "text":
                blocks.append(text(rest))
            case "think":
                blocks.append(thinking(rest))
            case "tool":
                blocks.append(_parse_tool(rest))
            case "stop":
                stop_reason = rest
            case "error":
                return _parse_error(rest)
            case _:
                _continue(blocks, line)
    return BrainAnswer(blocks=tuple(blocks), stop_reason=stop_reason)


def _continue(blocks: list[JsonObject], line: str) -> None:
    field = {"text": "text", "thinking": "thinking"}.get(blocks[-1]["type"]) if blocks else None
    if field is not None:
        blocks[-1][field] += f"\n{line}"
    elif line.strip():
        raise ValueError(f"script line {line!r} should begin with one of {', '.join(DIRECTIVES)}:")


def _parse_tool(rest: str) -> JsonObject:
    name, _, arguments = rest.partition(" ")
    try:
        return tool_use(name, msgspec.json.decode(arguments or "{}", type=JsonObject))
    except msgspec.DecodeError as error:
        raise ValueError(f"script tool {rest!r} wants a JSON object: {error}") from error


def _parse_error(rest: str) -> ApiError:
    fault = parse_fault(":".join(rest.split()))
    if fault is None or fault.status is None:
        raise ValueError(f"script error {rest!r} should be a status such as 429 or 529")
    return fault.error()


if TYPE_CHECKING:
    _: Brain = ScriptedBrain("")
