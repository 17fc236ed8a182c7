"""A brain that plays a script of `longhold.core.models.scripted`, without its `usage:` lines."""

from collections.abc import Sequence

from longhold.core.messages import block_to_wire
from longhold.core.models.scripted import ScriptedAnswer, read_script, read_status
from longhold.core.request.billing.api_request import ERROR_TYPES, ApiError
from longhold.errors import ConfigError
from longhold.simulator.brains import BrainAnswer, BrainRequest, plain_block
from longhold.simulator.faults import InjectedFault

Line = BrainAnswer | ApiError


class ScriptedBrain:
    """Plays a script from top to bottom. After the end it refuses, so that tests notice."""

    def __init__(self, script: str | Sequence[Line], *, repeats: bool = False) -> None:
        self._lines = parse_script(script) if isinstance(script, str) else tuple(script)
        self._repeats = repeats
        self._next = 0
        self.requests: list[BrainRequest] = []

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
    return tuple(map(_to_line, read_script(script)))


def _to_line(answer: ScriptedAnswer) -> Line:
    if answer.error is None:
        blocks = (plain_block(block_to_wire(block)) for block in answer.blocks)
        return BrainAnswer(blocks=tuple(blocks), stop_reason=answer.stop_reason)
    word = answer.error.split()[0]
    if not word.isdigit() or int(word) not in ERROR_TYPES:
        allowed = ", ".join(map(str, ERROR_TYPES))
        raise ConfigError(f"the simulator cannot answer with error {word!r}; it has {allowed}")
    status, headers = read_status(answer.error)
    seconds = headers.get("retry-after")
    return InjectedFault(
        status=status, retry_after_seconds=float(seconds) if seconds else None
    ).error()
