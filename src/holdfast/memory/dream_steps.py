"""What a dream has done so far: its phase, its counts and its last steps, for whoever looks on."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import overload

from holdfast.memory.tool import MEMORY, READS, ROOT
from holdfast.messages import text_of
from holdfast.models.protocol import Finished
from holdfast.turn.round import RoundEvent, ToolBegan

STEP_CHARS = 160
"""One line per step; the diff has the details."""


class Steps(Sequence[str]):
    """The last steps as a sequence of lines, with what they add up to."""

    def __init__(self, *, most: int) -> None:
        self.phase = "starting"
        """starting, gathering, updating, orient, consolidate, index."""
        self.answers = 0
        """Of the model."""
        self.looks = 0
        """Tool calls that only read."""
        self.files: dict[str, str] = {}
        """The memories touched, each with the last thing done to it."""
        self.done: deque[str] = deque(maxlen=most)

    def add(self, phase: str, step: str) -> None:
        self.phase = phase
        self.done.append(step)

    @property
    def summary(self) -> str:
        """The phase and the counts in one line."""
        counts = ((self.answers, "answers"), (self.looks, "looks"), (len(self.files), "memories"))
        told = ", ".join(f"{count} {what}" for count, what in counts if count)
        return f"{self.phase}: {told}" if told else self.phase

    def __len__(self) -> int:
        return len(self.done)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self.done))

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        return list(self.done)[at]


def observer(steps: Steps) -> Callable[[RoundEvent], None]:
    """Make a callback that adds a step for each answer and each tool call of a fork."""

    def observe(event: RoundEvent) -> None:
        match event:
            case ToolBegan(use=use):
                command = str(use.input.get("command"))
                is_writing = use.name == MEMORY and command not in READS
                if is_writing:
                    path = use.input.get("path") or use.input.get("new_path") or ""
                    steps.files[str(path).removeprefix(f"{ROOT}/")] = command
                else:
                    steps.looks += 1
                phase = "updating" if is_writing or steps.phase == "updating" else "gathering"
                given = " ".join(map(str, use.input.values()))
                steps.add(phase, f"{use.name} {' '.join(given.split())}"[:STEP_CHARS])
            case Finished(reply=reply):
                steps.answers += 1
                if said := " ".join(text_of(reply.content).split()):
                    steps.add(steps.phase, said[:STEP_CHARS])
            case _:
                pass

    return observe
