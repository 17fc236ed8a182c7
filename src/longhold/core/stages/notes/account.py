"""A running account of a session from the log alone, and its lines for the notes."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from longhold.core.log.entries import AnyEntry
from longhold.core.messages.secrets import mask_secrets
from longhold.core.messages.text import (
    cut,
    head_and_tail,
    one_line,
    outline,
    remove_blank_lines,
    sentences,
    strip_hidden,
)
from longhold.core.stages.facts import facts as fact
from longhold.core.stages.facts.facts import cite, error_of, subject_of, times
from longhold.core.stages.facts.gist import conclusions
from longhold.core.stages.facts.names import PROSE, last_name, list_touched, suffix_of
from longhold.core.stages.facts.outcome import commits_in, only_looks, telling_lines
from longhold.core.stages.facts.tool_steps import Todos, extract, originals
from longhold.core.view.items import Item, Round
from longhold.core.view.tokens import estimate_tokens

_Key = TypeVar("_Key")
_Known = TypeVar("_Known")

COMMANDS = 60  # number of latest commands to keep
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
    text: str
    times: int = 0
    failed: int = 0
    outcome: str = ""
    is_failing: bool = False
    last: int = 0


@dataclass(slots=True, kw_only=True)
class TurnRecord:
    number: int
    words: fact.WordsFact | None = None
    changed: Counter[str] = field(default_factory=Counter)
    read: int = 0
    commands: int = 0
    answer: fact.AnswerFact | None = None
    is_interrupted: bool = False


@dataclass(slots=True, kw_only=True)
class SessionAccount:
    mask: Callable[[str], str] = mask_secrets
    turns: list[TurnRecord] = field(default_factory=list)
    files: dict[str, File] = field(default_factory=dict)
    commands: dict[str, CommandRun] = field(default_factory=dict)
    mistakes: dict[tuple[str, str], int] = field(default_factory=dict)
    """The last message with an error, keyed by subject and error."""
    learnt: dict[str, int] = field(default_factory=dict)
    commits: dict[str, int] = field(default_factory=dict)
    plans: list[fact.PlanFact] = field(default_factory=list)
    tasks: dict[str, fact.TaskFact] = field(default_factory=dict)
    todos: tuple[fact.TodoFact, ...] = ()
    recent: list[fact.ChangeFact] = field(default_factory=list)
    upto: int = 0  # the order of the last item counted
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
        """Count new items, except the last round while its tools are still running."""
        new: list[Item] = []
        for item in reversed(items):
            if item.order <= self.upto:
                break
            new.append(item)
        new.reverse()
        rounds = [i for i, item in enumerate(new) if isinstance(item, Round)]
        if rounds and isinstance(last := new[rounds[-1]], Round) and last.missing():
            new = new[: rounds[-1]]  # an earlier round without a result was interrupted
        if not new:
            return
        facts = extract(new, self._said + 1, self._todos).mask_secrets(self.mask)
        for turn in facts.turns:
            self._turn(turn)
        for task in facts.tasks:
            self.tasks[task.name] = task
        self.todos = facts.todos
        self.upto = max(self.upto, new[-1].order)

    def _turn(self, turn: fact.TurnFacts) -> None:
        if turn.words is not None or not self.turns:
            self.turns.append(TurnRecord(number=turn.number, words=turn.words))
            self._said = max(self._said, turn.number)
        for step in turn.steps:
            self._step(self.turns[-1], step)

    def _step(self, turn: TurnRecord, step: fact.StepFact) -> None:
        if error := error_of(step):
            key = cut(one_line(subject_of(step)), COMMAND_CHARS), one_line(error)[:400]
            _put_last(self.mistakes, key, step.id, ERRORS)
        match step:
            case fact.AnswerFact():
                turn.answer = step
            case fact.Thought(id=id, text=text):
                for found in conclusions(text, THOUGHT_CHARS):
                    _put_last(self.learnt, found, id, LEARNT)
            case fact.ChangeFact(error=""):
                self._change(turn, step)
            case fact.Look(kind="read", path=path, error="", id=id):
                turn.read += 1
                file = self._file(path, id)
                file.reads += 1
            case fact.CommandFact():
                self._command(turn, step)
            case fact.PlanFact(is_approved=True):
                self.plans.append(step)
            case fact.Interruption():
                turn.is_interrupted = True

    def _file(self, path: str, id: int) -> File:
        file = self.files.setdefault(path, File(path=path))
        file.last = id
        return file

    def _change(self, turn: TurnRecord, step: fact.ChangeFact) -> None:
        turn.changed[step.path] += 1
        file = self._file(step.path, step.id)
        file.changes += 1
        file.names.update(list_touched([step]))
        self.recent = [*self.recent[-9:], step]

    def _command(self, turn: TurnRecord, step: fact.CommandFact) -> None:
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


def _put_last(known: dict[_Key, _Known], key: _Key, value: _Known, most: int) -> None:
    known.pop(key, None)
    known[key] = value
    while len(known) > most:
        del known[next(iter(known))]


TITLE_CHARS = 72
MESSAGE_CHARS = 1_200
QUOTE_CHARS = 300
ANSWER_CHARS = 600
ANSWERS = 5
WORDS_CHARS = 90
SAID_CHARS = 110
NAMES = 8
RECENT = 5
OUTLINE_CHARS = 800
MISSES = 20  # stop after this many lines in a row that do not fit


def engine_sections(account: SessionAccount, section_tokens: int) -> dict[str, str]:
    writers: dict[str, Callable[[SessionAccount], Iterable[str]]] = {
        "Title": _title,
        "Current state": _state,
        "Task": _task,
        "Files and functions": _files,
        "Workflow": _workflow,
        "Errors and corrections": _errors,
        "System documentation": _documents,
        "Learnings": lambda account: (
            f"- {text} {cite(id)}" for text, id in reversed(account.learnt.items())
        ),
        "Key results": _results,
        "Worklog": lambda account: map(_line, reversed(account.turns)),
    }
    return {
        heading: text
        for heading, writer in writers.items()
        if (text := _fit(writer(account), section_tokens, heading in NEWEST_LAST))
    }


NEWEST_LAST = frozenset({"Task", "Errors and corrections", "Learnings", "Key results", "Worklog"})
"""Sections in chronological order. Their oldest lines are dropped first."""


def _fit(lines: Iterable[str], budget_tokens: int, newest_last: bool) -> str:
    """Take lines while they fit. `lines` must be sorted by value, highest first."""
    taken: list[str] = []
    left, missed = budget_tokens, 0
    for line in map(_indent_foreign, lines):
        price = estimate_tokens(line)
        if price <= left:
            taken.append(line)
            left, missed = left - price, 0
        elif (missed := missed + 1) == MISSES:
            break  # the budget is spent
    return "\n".join(reversed(taken) if newest_last else taken)


def _indent_foreign(item: str) -> str:
    """Indent all lines but the first, because foreign text may imitate the page's lines."""
    first, *rest = map(strip_hidden, item.splitlines() or [""])
    return "\n".join((first, *(line if line.startswith("  ") else f"  {line}" for line in rest)))


def _title(account: SessionAccount) -> Iterator[str]:
    for turn in account.turns:
        if turn.words is not None and turn.words.via != "shell":
            yield cut(one_line(" ".join(sentences(turn.words.text)[:1])), TITLE_CHARS)
            return


def _state(account: SessionAccount) -> Iterator[str]:
    for todo in account.todos:
        if todo.state != "completed":
            yield f"- [{todo.state.replace('_', ' ')}] {one_line(todo.text)}"
    for task in account.tasks.values():
        if task.state == "running":
            about = cut(one_line(task.about), QUOTE_CHARS)
            yield f"- still running: {task.name} {cite(task.id)} {about}"
    spoken = [turn for turn in account.turns if turn.words is not None]
    if spoken and (words := spoken[-1].words) is not None:
        yield f"- the user last said {cite(words.id)}: {cut(one_line(words.text), QUOTE_CHARS)}"
    answers = [turn.answer for turn in account.turns if turn.answer is not None]
    if answers:
        last = " ".join(sentences(remove_blank_lines(answers[-1].text))[-2:])
        yield f"- the agent last said {cite(answers[-1].id)}: {cut(one_line(last), QUOTE_CHARS)}"
    for change in reversed(account.recent[-RECENT:]):
        yield f"- {change.action} {change.path} {cite(change.id)}"


def _task(account: SessionAccount) -> Iterator[str]:
    said = [turn for turn in account.turns if turn.words and turn.words.text.strip()]
    first = said[:1] if len(said) > 1 else []
    for turn in (*reversed(said[1:] if first else said), *first):
        assert turn.words is not None
        text = head_and_tail(turn.words.text, MESSAGE_CHARS, cite(turn.words.id))
        yield f"- T{turn.number} {cite(turn.words.id)}: {_indent(text)}"


def _files(account: SessionAccount) -> Iterator[str]:
    changed = [file for file in account.files.values() if file.changes]
    for file in sorted(changed, key=lambda file: (-file.changes, -file.last)):
        yield _file(file)
    read = [file for file in account.files.values() if not file.changes]
    for file in sorted(read, key=lambda file: (-file.reads, -file.last)):
        yield f"- {file.path}: read{times(file.reads)}"


def _file(file: File) -> str:
    read = f", read{times(file.reads)}" if file.reads else ""
    names = ", ".join(name for name, _ in file.names.most_common(NAMES))
    about = f"; {names}" if names else ""
    return f"- {file.path}: changed{times(file.changes)}{read} {cite(file.last)}{about}"


def _workflow(account: SessionAccount) -> Iterator[str]:
    for ran in sorted(account.commands.values(), key=lambda ran: (-ran.times, -ran.last)):
        failed = f", failed{times(ran.failed)}" if ran.failed else ""
        ended = "failed" if ran.is_failing else (ran.outcome or "ok")
        yield f"- `{ran.text}`{times(ran.times)}{failed}, last {cite(ran.last)}: {ended}"


def _errors(account: SessionAccount) -> Iterator[str]:
    for (subject, error), id in reversed(account.mistakes.items()):
        ran = account.commands.get(subject)
        mended = f" Works since {cite(ran.last)}." if ran and not ran.is_failing else ""
        what = f"`{subject}`: " if subject else ""
        yield f"- {cite(id)} {what}{cut(error, QUOTE_CHARS)}{mended}"


def _documents(account: SessionAccount) -> Iterator[str]:
    for plan in reversed(account.plans):
        yield f"- approved plan {cite(plan.id)}:\n  {_indent(outline(plan.text, OUTLINE_CHARS))}"
    for file in account.files.values():
        if file.reads and suffix_of(file.path).lower() in PROSE:
            yield f"- {file.path} was read {cite(file.last)}"


def _results(account: SessionAccount) -> Iterator[str]:
    answered = [turn for turn in account.turns if turn.answer is not None]
    for turn in reversed(answered[-ANSWERS:]):
        assert turn.answer is not None
        text = cut(remove_blank_lines(turn.answer.text), ANSWER_CHARS)
        yield f"- T{turn.number} {cite(turn.answer.id)}: {_indent(text)}"
    for commit, id in reversed(account.commits.items()):
        yield f"- commit {commit} {cite(id)}"


def _line(turn: TurnRecord) -> str:
    words = turn.words
    asked = f'{cite(words.id)} "{cut(one_line(words.text), WORDS_CHARS)}"' if words else ""
    done = []
    if turn.changed:
        names = (f"{last_name(p)}{times(n)}" for p, n in turn.changed.items())
        done.append(f"changed {', '.join(names)}")
    if turn.read:
        done.append(f"read {turn.read}")
    if turn.commands:
        done.append(f"ran {turn.commands}")
    if turn.is_interrupted:
        done.append("interrupted")
    if turn.answer is not None:
        said = sentences(remove_blank_lines(turn.answer.text))[:1]
        done.append(f"said: {cut(one_line(' '.join(said)), SAID_CHARS)}")
    return f"- T{turn.number} {asked}: {'; '.join(done)}".rstrip(": ").replace("  ", " ")


def _indent(text: str) -> str:
    return text.strip().replace("\n", "\n  ")
