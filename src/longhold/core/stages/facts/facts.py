"""The facts of a segment, as turns with the user's words and the steps that followed.

Steps are complete. Every fact has its message's number, so that a reader can open it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, TypeVar

from longhold.core.messages import JsonObject
from longhold.core.stages.facts.outcome import has_failed, only_looks

Via: TypeAlias = Literal["message", "command", "shell", "answer", "refusal"]
"""How the user's words arrived: as a message, a command or shell line, or in a tool result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WordsFact:
    id: int
    text: str
    via: Via = "message"
    about: str = ""
    """The question or the refused call, if the words are from a tool result."""
    error: str = ""
    """The tool result that reports a refusal."""
    images: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFact:
    id: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Thought:
    id: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFact:
    id: int
    path: str
    action: Literal["edited", "wrote", "deleted"] = "edited"
    added: str = ""
    removed: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    id: int
    path: str
    kind: Literal["read", "search"] = "read"
    pattern: str = ""
    span: str = ""
    text: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandFact:
    id: int
    text: str
    output: str = ""
    is_error: bool = False
    task: str = ""
    """The name of the background task in which the command continues, if any."""

    @property
    def has_failed(self) -> bool:
        return self.is_error or (not only_looks(self.text) and has_failed(self.output))


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of any other tool, such as a sub-agent, a web page or an MCP server."""

    id: int
    tool: str
    about: str
    text: str = ""
    is_error: bool = False
    task: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFact:
    id: int
    text: str
    is_approved: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Interruption:
    id: int


StepFact: TypeAlias = (
    AnswerFact
    | Thought
    | ChangeFact
    | Look
    | CommandFact
    | Report
    | PlanFact
    | WordsFact
    | Interruption
)


Call: TypeAlias = ChangeFact | Look | CommandFact | Report


def subject_of(step: StepFact) -> str:
    match step:
        case CommandFact(text=text):
            return text
        case ChangeFact(path=path):
            return f"change {path}"
        case Look(kind="read", path=path):
            return f"read {path}"
        case Look(pattern=pattern):
            return f"search {pattern}"
        case Report(tool=tool, about=about):
            return f"{tool} {about}"
        case WordsFact(about=about, error=error) if error:
            return about
    return ""


def error_of(step: StepFact) -> str:
    match step:
        case CommandFact() if step.has_failed:
            return step.output
        case ChangeFact(error=error) | Look(error=error) | WordsFact(error=error):
            return error
        case Report(is_error=True, text=text):
            return text
    return ""


def cite(*ids: int) -> str:
    return "[" + " ".join(f"#{id}" for id in dict.fromkeys(ids)) + "]"


def times(n: int) -> str:
    return f" ×{n}" if n > 1 else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFacts:
    """The user's words and the steps that followed. Work before the first message is turn 0."""

    number: int
    words: WordsFact | None = None
    steps: tuple[StepFact, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TodoFact:
    text: str
    state: str
    id: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFact:
    name: str
    about: str
    state: Literal["running", "ended"]
    id: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorSummary:
    """A summary of history that is not in the log."""

    id: int
    text: str


_TEXTS = ("text", "about", "error", "added", "removed", "pattern", "output")

_Fact = TypeVar("_Fact", WordsFact, StepFact, TodoFact, TaskFact, PriorSummary)
_Step = TypeVar("_Step", bound=StepFact)


def _mask_fact(fact: _Fact, mask: Callable[[str], str]) -> _Fact:
    changed: JsonObject = {
        name: safe
        for name in _TEXTS
        if (text := getattr(fact, name, "")) and (safe := mask(text)) != text
    }
    return replace(fact, **changed) if changed else fact


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    turns: tuple[TurnFacts, ...] = ()
    rounds: tuple[int, ...] = ()
    todos: tuple[TodoFact, ...] = ()
    tasks: tuple[TaskFact, ...] = ()
    prior: tuple[PriorSummary, ...] = ()
    since: int = 0
    """Messages before this number were compacted earlier and are kept shorter."""

    def steps(self) -> Iterator[tuple[int, StepFact]]:
        for turn in self.turns:
            for step in turn.steps:
                yield turn.number, step

    def find(self, kind: type[_Step]) -> Iterator[tuple[int, _Step]]:
        return ((turn, step) for turn, step in self.steps() if isinstance(step, kind))

    def words(self) -> Iterator[tuple[int, WordsFact]]:
        """Yield the user's words with the turn number, whether typed or from tool results."""
        for turn in self.turns:
            if turn.words is not None:
                yield turn.number, turn.words
            for step in turn.steps:
                if isinstance(step, WordsFact):
                    yield turn.number, step

    def mask_secrets(self, mask: Callable[[str], str]) -> "Facts":
        """Mask secrets in every text. This comes before cutting, which could split a secret."""
        turns = tuple(
            replace(
                turn,
                words=_mask_fact(turn.words, mask) if turn.words else None,
                steps=tuple(_mask_fact(step, mask) for step in turn.steps),
            )
            for turn in self.turns
        )
        return replace(
            self,
            turns=turns,
            todos=tuple(_mask_fact(todo, mask) for todo in self.todos),
            tasks=tuple(_mask_fact(task, mask) for task in self.tasks),
            prior=tuple(_mask_fact(summary, mask) for summary in self.prior),
        )
