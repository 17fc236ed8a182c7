"""Reads the items of a view into facts, in one pass.

A message of the user's begins a turn; rounds add steps to it. Compacted history is read from the
log (`originals`) where it is still there, and kept as `PriorSummary` where not. Results are read as
they arrived, even if they were cleared since.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from holdfast.log.entries import AnyEntry, Collapsed, Compacted, Restored
from holdfast.messages import Text, Thinking, text_of
from holdfast.stages.facts.calls import TASK_CHARS, Todos, steps_of
from holdfast.stages.facts.facts import (
    AnswerFact,
    CommandFact,
    Facts,
    Interruption,
    PriorSummary,
    Report,
    StepFact,
    TaskFact,
    Thought,
    TurnFacts,
    WordsFact,
)
from holdfast.stages.facts.user_text import Notice, is_interruption, is_summary, notices, typed
from holdfast.tools.describe import description_of
from holdfast.view import fold
from holdfast.view.items import Item, Round, Spoken


def originals(entries: Iterable[AnyEntry]) -> list[Item]:
    """Return the conversation as if nothing had been compacted or collapsed."""
    shown = fold(e for e in entries if not isinstance(e, Compacted | Collapsed | Restored))
    return list(shown.items)


def gather(history: Sequence[AnyEntry], items: Sequence[Item]) -> Facts:
    """Gather the facts of a segment, including what was compacted within it before.

    Everything still in the log is read from there, and turns are counted from its beginning. A
    summary in the segment is carried beside that in its own words, since a model or a person
    wrote it; a digest is not, since it was made from the same facts.
    """
    if not items:
        return Facts()
    first, last = items[0].order, items[-1].order
    whole = originals(history)
    turns = sum(_begins_turn(item) for item in whole if item.order < first)
    within = [item for item in whole if first <= item.order <= last]
    facts = extract(within, first_turn=turns + 1)
    shown = [item for item in items if isinstance(item, Spoken) and item.kind == "summary"]
    made_by = {entry.n: entry.by for entry in history if isinstance(entry, Compacted)}
    kept = (item for item in shown if made_by.get(item.id) != "digest")
    summaries = tuple(PriorSummary(id=item.id, text=text_of(item.content)) for item in kept)
    fresh = next((item.order for item in items if item not in shown), last) if shown else 0
    return replace(facts, prior=facts.prior + summaries, since=fresh)


def extract(items: Sequence[Item], first_turn: int = 1, todos: Todos | None = None) -> Facts:
    """Gather the facts of some items; `todos` is the list as it was before them."""
    gathered = _Gathering(first_turn, todos or Todos())
    for item in items:
        gathered.take(item)
    return gathered.facts()


class _Gathering:
    def __init__(self, first_turn: int, todos: Todos) -> None:
        self._turns: list[TurnFacts] = []
        self._number = first_turn - 1
        self._words: WordsFact | None = None
        self._steps: list[StepFact] = []
        self._rounds: list[int] = []
        self._prior: list[PriorSummary] = []
        self._tasks: dict[str, TaskFact] = {}
        self._todos = todos

    def take(self, item: Item) -> None:
        match item:
            case Spoken(kind="summary" | "line"):
                self._prior.append(PriorSummary(id=item.id, text=text_of(item.content)))
            case Spoken(kind="said"):
                self._said(item)
            case Round():
                self._round(item)

    def facts(self) -> Facts:
        self._end_turn()
        return Facts(
            turns=tuple(self._turns),
            rounds=tuple(self._rounds),
            todos=self._todos.listed(),
            tasks=tuple(self._tasks.values()),
            prior=tuple(self._prior),
        )

    def _said(self, item: Spoken) -> None:
        if is_summary(item.content):
            self._prior.append(PriorSummary(id=item.id, text=text_of(item.content)))
            return
        for notice in notices(item.content):
            self._notice(notice, item.id)
        if item.hidden:
            return
        if is_interruption(item.content):
            self._steps.append(Interruption(id=item.id))
        elif own := typed(item.content):
            self._end_turn()
            self._number += 1
            self._words = WordsFact(id=item.id, text=own.text, via=own.via, images=own.images)

    def _notice(self, notice: Notice, id: int) -> None:
        self._steps.append(
            Report(id=id, tool="background task", about=notice.about, text=notice.text)
        )
        self._note_task(TaskFact(name=notice.task, about=notice.about, state="ended", id=id))

    def _round(self, item: Round) -> None:
        self._rounds.append(item.id)
        for step in _steps(item):
            self._steps.append(step)
            if isinstance(step, CommandFact | Report) and step.task:
                about = step.text if isinstance(step, CommandFact) else step.about
                self._note_task(
                    TaskFact(name=step.task, about=about, state=_state(step), id=item.id)
                )
        for use in item.tool_uses():
            self._todos.take(use, item.result_of(use.id), item.id)

    def _note_task(self, task: TaskFact) -> None:
        known = self._tasks.get(task.name)
        if task.name:
            self._tasks[task.name] = replace(task, about=known.about if known else task.about)

    def _end_turn(self) -> None:
        if self._words is not None or self._steps:
            number = self._number if self._words is not None else max(self._number, 0)
            self._turns.append(
                TurnFacts(number=number, words=self._words, steps=tuple(self._steps))
            )
        self._words, self._steps = None, []


def _begins_turn(item: Item) -> bool:
    if not isinstance(item, Spoken) or not item.is_asked() or is_summary(item.content):
        return False
    return typed(item.content) is not None


def _steps(item: Round) -> Iterator[StepFact]:
    uses = {use.id: use for use in item.tool_uses()}
    for block in item.content:
        match block:
            case Text(text=text) if text.strip():
                yield AnswerFact(id=item.id, text=text)
            case Thinking(thinking=text) if text.strip():
                yield Thought(id=item.id, text=text)
            case _ if (use := uses.get(getattr(block, "id", ""))) is not None:
                yield from steps_of(use, item.result_of(use.id), item.id, description_of(use.name))


def _state(step: CommandFact | Report) -> Literal["running", "ended"]:
    text = step.output if isinstance(step, CommandFact) else step.text
    ended = ("<status>completed", "<status>failed", "killed", "Exit status", "had already ended")
    return "ended" if any(word in text[:TASK_CHARS] for word in ended) else "running"
