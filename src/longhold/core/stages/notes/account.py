"""A running account of a session, from the log alone.

Items are counted once, as they are finished, so the cost is that of what is new. Facts are those of
the digest, with secrets masked before anything is cut.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from longhold.core.log.entries import AnyEntry
from longhold.core.messages.secrets import mask_secrets
from longhold.core.messages.text import cut, one_line
from longhold.core.stages.facts.calls import Todos, extract, originals
from longhold.core.stages.facts.facts import (
    AnswerFact,
    ChangeFact,
    CommandFact,
    Interruption,
    Look,
    PlanFact,
    StepFact,
    TaskFact,
    Thought,
    TodoFact,
    TurnFacts,
    WordsFact,
    error_of,
    subject_of,
)
from longhold.core.stages.facts.gist import conclusions
from longhold.core.stages.facts.names import list_touched
from longhold.core.stages.facts.outcome import commits_in, only_looks, telling_lines
from longhold.core.view.items import Item, Round

_Key = TypeVar("_Key")
_Known = TypeVar("_Known")

COMMANDS = 60
"""The latest are remembered; a workflow has fewer."""
ERRORS = 40
LEARNT = 40
OUTCOME_CHARS = 160
THOUGHT_CHARS = 240
COMMAND_CHARS = 200


@dataclass(slots=True, kw_only=True)
class File:
    path: str
    changes: int = 0
    reads: int = 0
    names: Counter[str] = field(default_factory=Counter)
    last: int = 0


@dataclass(slots=True, kw_only=True)
class CommandRun:
    """One command line, however often it was run."""

    text: str
    times: int = 0
    failed: int = 0
    outcome: str = ""
    is_failing: bool = False
    last: int = 0


@dataclass(slots=True, kw_only=True)
class TurnRecord:
    number: int
    words: WordsFact | None = None
    changed: Counter[str] = field(default_factory=Counter)
    read: int = 0
    commands: int = 0
    answer: AnswerFact | None = None
    is_interrupted: bool = False


@dataclass(slots=True, kw_only=True)
class SessionAccount:
    mask: Callable[[str], str] = mask_secrets
    turns: list[TurnRecord] = field(default_factory=list)
    files: dict[str, File] = field(default_factory=dict)
    commands: dict[str, CommandRun] = field(default_factory=dict)
    mistakes: dict[tuple[str, str], int] = field(default_factory=dict)
    """The last message, by what went wrong and its error."""
    learnt: dict[str, int] = field(default_factory=dict)
    commits: dict[str, int] = field(default_factory=dict)
    plans: list[PlanFact] = field(default_factory=list)
    tasks: dict[str, TaskFact] = field(default_factory=dict)
    todos: tuple[TodoFact, ...] = ()
    recent: list[ChangeFact] = field(default_factory=list)
    upto: int = 0
    """The order of the last item counted."""
    _todos: Todos = field(default_factory=Todos)
    _said: int = 0

    @classmethod
    def of(
        cls, history: Iterable[AnyEntry], mask: Callable[[str], str] = mask_secrets
    ) -> "SessionAccount":
        account = cls(mask=mask)
        account.follow(originals(history))
        return account

    def follow(self, items: Sequence[Item]) -> None:
        """Count new items, up to a last round whose tools still run."""
        new: list[Item] = []
        for item in reversed(items):
            if item.order <= self.upto:
                break
            new.append(item)
        new.reverse()
        rounds = [i for i, item in enumerate(new) if isinstance(item, Round)]
        if rounds and isinstance(last := new[rounds[-1]], Round) and last.missing():
            new = new[: rounds[-1]]  # one before it that lacks a result was interrupted
        self._take(new)

    def _take(self, items: Sequence[Item]) -> None:
        if not items:
            return
        facts = extract(items, self._said + 1, self._todos).mask_secrets(self.mask)
        for turn in facts.turns:
            self._turn(turn)
        for task in facts.tasks:
            self.tasks[task.name] = task
        self.todos = facts.todos
        self.upto = max(self.upto, items[-1].order)

    def _turn(self, turn: TurnFacts) -> None:
        if turn.words is not None or not self.turns:
            self.turns.append(TurnRecord(number=turn.number, words=turn.words))
            self._said = max(self._said, turn.number)
        for step in turn.steps:
            self._step(self.turns[-1], step)

    def _step(self, turn: TurnRecord, step: StepFact) -> None:
        if error := error_of(step):
            self._mistake(step.id, subject_of(step), error)
        match step:
            case AnswerFact():
                turn.answer = step
            case Thought(id=id, text=text):
                self._learn(text, id)
            case ChangeFact(error=""):
                self._change(turn, step)
            case Look(kind="read", path=path, error="", id=id):
                turn.read += 1
                self._file(path, id).reads += 1
            case CommandFact():
                self._command(turn, step)
            case PlanFact(is_approved=True):
                self.plans.append(step)
            case Interruption():
                turn.is_interrupted = True

    def _file(self, path: str, id: int) -> File:
        file = self.files.setdefault(path, File(path=path))
        file.last = id
        return file

    def _change(self, turn: TurnRecord, step: ChangeFact) -> None:
        turn.changed[step.path] += 1
        file = self._file(step.path, step.id)
        file.changes += 1
        file.names.update(list_touched([step]))
        self.recent = [*self.recent[-9:], step]

    def _command(self, turn: TurnRecord, step: CommandFact) -> None:
        turn.commands += 1
        self.commits.update(
            (f"{c.hash} on {c.branch}: {c.subject}", step.id) for c in commits_in(step.output)
        )
        if only_looks(step.text):
            return
        text = cut(one_line(step.text), COMMAND_CHARS)
        ran = self.commands.get(text) or CommandRun(text=text)
        _put_last(self.commands, text, ran, COMMANDS)
        ran.times += 1
        ran.failed += step.has_failed
        ran.is_failing, ran.last = step.has_failed, step.id
        ran.outcome = telling_lines(step.output, OUTCOME_CHARS)

    def _mistake(self, id: int, what: str, error: str) -> None:
        key = cut(one_line(what), COMMAND_CHARS), one_line(error)[:400]
        _put_last(self.mistakes, key, id, ERRORS)

    def _learn(self, thought: str, id: int) -> None:
        for found in conclusions(thought, THOUGHT_CHARS):
            _put_last(self.learnt, found, id, LEARNT)


def _put_last(known: dict[_Key, _Known], key: _Key, value: _Known, most: int) -> None:
    """Put the newest last, and drop the oldest beyond `most`."""
    known.pop(key, None)
    known[key] = value
    while len(known) > most:
        del known[next(iter(known))]
