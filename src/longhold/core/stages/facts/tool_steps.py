"""Convert tool calls and their results to steps, and read the todo list in them.

Agents name tool inputs differently, so every kind of input has a list of names.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from longhold.core.log.entries import AnyEntry, Collapsed, Compacted, Restored
from longhold.core.messages import Json, JsonObject, Text, Thinking, ToolUse, text_of
from longhold.core.stages.facts.facts import (
    AnswerFact,
    ChangeFact,
    CommandFact,
    Facts,
    Interruption,
    Look,
    PlanFact,
    PriorSummary,
    Report,
    StepFact,
    TaskFact,
    Thought,
    TodoFact,
    TurnFacts,
    WordsFact,
)
from longhold.core.stages.facts.user_text import (
    is_approval,
    is_interruption,
    is_summary,
    notices,
    read_typed,
    reply,
)
from longhold.core.tools.describe import Described, description_of
from longhold.core.view import fold
from longhold.core.view.items import NO_RESULT, Item, Result, Round, Spoken

TASK_CHARS = 2_000
"""Limit for the search. A tool prints the name of its background task near the beginning."""

_OLD = ("old_string", "oldText", "old_str", "old", "search")
_NEW = ("new_string", "newText", "new_str", "new", "replace", "content", "file_text", "contents")
_NAMES = ("title", "subject", "skill", "name", "id", "pattern")
_ABOUT = ("description", "query", "url", "prompt", *_NAMES)
_LINES = ("offset", "limit")
_PATCH = ("input", "patch", "command", "content")
_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)
_TASK = re.compile(
    r"(?:running in background with ID|Runs in the background as|agentId|task[_ ]id)[: ]+([\w-]+)",
    re.IGNORECASE,
)
_TODO_NUMBER = re.compile(r"#(\d+)")
_TODO_LINE = re.compile(r"^#(\d+) \[(\w+)\]", re.MULTILINE)


def _steps_of(
    use: ToolUse, result: Result | None, id: int, described: Described
) -> Iterator[StepFact]:
    text = text_of(result.content) if result else NO_RESULT
    is_error = result.is_error if result else True
    shown, error = ("", text) if is_error else (text, "")
    if result is not None and result.refused is not None:
        yield WordsFact(
            id=id, text=result.refused, via="refusal", about=_call(use, described), error=text
        )
        return
    match described.kind:
        case "write" if changes := [*_changes(use, described, id, error)]:
            yield from changes
        case "read":
            for path in described.paths_in(use.input):
                yield Look(id=id, path=path, span=_span(use.input), text=shown, error=error)
        case "search":
            path = next(iter(described.paths_in(use.input)), "")
            pattern = _text(use.input, ("pattern", "query", "regex", "glob"))
            yield Look(id=id, path=path, kind="search", pattern=pattern, text=shown, error=error)
        case "shell" if described.command_input:
            given = use.input.get(described.command_input)
            line = " ".join(map(str, given)) if isinstance(given, list) else str(given or "")
            task = _find_background_task(use.input, text)
            yield CommandFact(id=id, text=line.strip(), output=text, is_error=is_error, task=task)
        case "ask" if not is_error or _is_plan(use):
            yield from _read_answers(use, id, text, is_error)
        case _ if not _keeps_list(use):
            about, task = _describe_input(use.input), _find_background_task(use.input, text)
            yield Report(id=id, tool=use.name, about=about, text=text, is_error=is_error, task=task)


def _changes(use: ToolUse, described: Described, id: int, error: str) -> Iterator[ChangeFact]:
    paths = described.paths_in(use.input)
    if not paths:
        yield from _read_patch(use, id, error)
        return
    edits = use.input.get("edits")
    each = [edit for edit in edits if isinstance(edit, dict)] if isinstance(edits, list) else []
    removed = "\n".join(_text(edit, _OLD) for edit in (each or [use.input]))
    added = "\n".join(_text(edit, _NEW) for edit in (each or [use.input]))
    action = "deleted" if "delete" in use.name.lower() else "edited" if removed else "wrote"
    for path in paths:
        yield ChangeFact(id=id, path=path, action=action, added=added, removed=removed, error=error)  # type: ignore[arg-type]


def _read_patch(use: ToolUse, id: int, error: str) -> Iterator[ChangeFact]:
    patch = _text(use.input, _PATCH)
    parts = _PATCHED.split(patch)
    for verb, path, body in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        lines = body.splitlines()
        yield ChangeFact(
            id=id,
            path=path.strip(),
            action="wrote" if verb == "Add" else "deleted" if verb == "Delete" else "edited",
            added="\n".join(line[1:] for line in lines if line.startswith("+")),
            removed="\n".join(line[1:] for line in lines if line.startswith("-")),
            error=error,
        )


def _read_answers(use: ToolUse, id: int, text: str, is_error: bool) -> Iterator[StepFact]:
    if _is_plan(use):
        plan = _text(use.input, ("plan",))
        yield PlanFact(id=id, text=plan or text, is_approved=not is_error and is_approval(text))
    elif (said := reply(text)) is not None:
        yield WordsFact(id=id, text=said, via="answer", about=_questions(use.input))
    else:  # another client's tool of the same name
        yield Report(id=id, tool=use.name, about=_questions(use.input), text=text)


def _is_plan(use: ToolUse) -> bool:
    return bool(_text(use.input, ("plan",))) or "plan" in use.name.lower()


def _questions(given: JsonObject) -> str:
    questions = given.get("questions")
    if isinstance(questions, list):
        asked = [str(each.get("question", "")) for each in questions if isinstance(each, dict)]
        return " ".join(asked)
    return _text(given, ("question", "prompt", "message"))


def _call(use: ToolUse, described: Described) -> str:
    paths = described.paths_in(use.input)
    command = _text(use.input, (described.command_input,)) if described.command_input else ""
    return f"{use.name} {command or ' '.join(paths) or _describe_input(use.input)}".strip()


def _span(given: JsonObject) -> str:
    offset, limit = (given.get(name) for name in _LINES)
    if not isinstance(offset, int) and not isinstance(limit, int):
        return ""
    first = offset if isinstance(offset, int) else 1
    return f"lines {first}-{first + limit - 1}" if isinstance(limit, int) else f"from line {first}"


def _describe_input(given: JsonObject) -> str:
    named = _text(given, _ABOUT)
    return named or " ".join(
        f"{key}={value}"
        for key, value in given.items()
        if isinstance(value, str | int | float) and len(str(value)) <= 80
    )


def _text(given: JsonObject, names: tuple[str, ...]) -> str:
    return next((given[name] for name in names if isinstance(given.get(name), str)), "")


def _keeps_list(use: ToolUse) -> bool:
    return use.name in ("TaskCreate", "TaskUpdate", "TaskList", "TaskGet") or "todos" in use.input


def _find_background_task(given: JsonObject, text: str) -> str:
    if given.get("run_in_background") is True:
        found = _TASK.search(text[:TASK_CHARS])
        return found[1] if found else ""
    return _text(given, ("task_id", "shell_id", "bash_id"))


class Todos:
    def __init__(self, listed: Mapping[str, TodoFact] | None = None) -> None:
        self._listed: dict[str, TodoFact] = dict(listed or {})

    def copy(self) -> "Todos":
        return Todos(self._listed)

    def take(self, use: ToolUse, result: Result | None, id: int) -> None:
        if result is None or result.is_error:
            return
        whole = use.input.get("todos", use.input.get("plan"))
        if isinstance(whole, list):
            self._replace(whole, id)
        elif use.name == "TaskCreate":
            found = _TODO_NUMBER.search(text_of(result.content))
            number = found[1] if found else str(len(self._listed) + 1)
            text = str(use.input.get("subject") or "")
            self._listed[number] = TodoFact(text=text, state="pending", id=id)
        elif use.name == "TaskList":
            for number, state in _TODO_LINE.findall(text_of(result.content)):
                self._update(number, state, id)
        elif use.name == "TaskUpdate":
            self._update(str(use.input.get("taskId")), use.input.get("status"), id)

    def list_current(self) -> tuple[TodoFact, ...]:
        return tuple(todo for todo in self._listed.values() if todo.state != "deleted")

    def _replace(self, whole: list[Json], id: int) -> None:
        listed = [each for each in whole if isinstance(each, dict)]
        self._listed = {
            str(i): TodoFact(
                text=str(each.get("content") or each.get("step") or each.get("text") or ""),
                state=str(each.get("status") or "pending"),
                id=id,
            )
            for i, each in enumerate(listed, 1)
        }

    def _update(self, number: str, state: Json, id: int) -> None:
        known = self._listed.get(number)
        if known is not None and isinstance(state, str):
            self._listed[number] = TodoFact(text=known.text, state=state, id=id)


def originals(entries: Iterable[AnyEntry]) -> list[Item]:
    """Return the conversation as if nothing had been compacted or collapsed."""
    shown = fold(e for e in entries if not isinstance(e, Compacted | Collapsed | Restored))
    return list(shown.items)


def gather(history: Sequence[AnyEntry], items: Sequence[Item]) -> Facts:
    """Gather the facts of a segment from the log, including history compacted within it.

    Earlier summaries are kept word for word, except digests, which come from the same facts.
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
                self._carry(item)
            case Spoken(kind="said") if is_summary(item.content):
                self._carry(item)
            case Spoken(kind="said"):
                self._add_notices(item)
            case Round():
                self._round(item)

    def facts(self) -> Facts:
        self._end_turn()
        return Facts(
            turns=tuple(self._turns),
            rounds=tuple(self._rounds),
            todos=self._todos.list_current(),
            tasks=tuple(self._tasks.values()),
            prior=tuple(self._prior),
        )

    def _carry(self, item: Spoken) -> None:
        self._prior.append(PriorSummary(id=item.id, text=text_of(item.content)))

    def _add_notices(self, item: Spoken) -> None:
        for one in notices(item.content):
            about = one.about
            self._steps.append(
                Report(id=item.id, tool="background task", about=about, text=one.text)
            )
            self._note_task(TaskFact(name=one.task, about=about, state="ended", id=item.id))
        if item.hidden:
            return
        if is_interruption(item.content):
            self._steps.append(Interruption(id=item.id))
        elif own := read_typed(item.content):
            self._end_turn()
            self._number += 1
            self._words = WordsFact(id=item.id, text=own.text, via=own.via, images=own.images)

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
            steps = tuple(self._steps)
            self._turns.append(TurnFacts(number=self._number, words=self._words, steps=steps))
        self._words, self._steps = None, []


def _begins_turn(item: Item) -> bool:
    if not isinstance(item, Spoken) or not item.is_asked() or is_summary(item.content):
        return False
    return read_typed(item.content) is not None


def _steps(item: Round) -> Iterator[StepFact]:
    uses = {use.id: use for use in item.tool_uses()}
    for block in item.content:
        match block:
            case Text(text=text) if text.strip():
                yield AnswerFact(id=item.id, text=text)
            case Thinking(thinking=text) if text.strip():
                yield Thought(id=item.id, text=text)
            case _ if (use := uses.get(getattr(block, "id", ""))) is not None:
                yield from _steps_of(use, item.result_of(use.id), item.id, description_of(use.name))


def _state(step: CommandFact | Report) -> Literal["running", "ended"]:
    text = step.output if isinstance(step, CommandFact) else step.text
    ended = ("<status>completed", "<status>failed", "killed", "Exit status", "had already ended")
    return "ended" if any(word in text[:TASK_CHARS] for word in ended) else "running"
