"""Shared tasks with owners and dependencies. Changes are decided under a lock."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal, TypeAlias, TypeVar

from msgspec import Meta, Struct, field, structs

from longhold.agent.subagents.ledger import SharedLedger
from longhold.agent.subagents.names import MAIN, PATTERN
from longhold.core.messages.text import one_line, quote_lines, strip_hidden
from longhold.core.tools.context import ToolContext
from longhold.core.tools.protocol import Input, Outcome, Refused, Taken, Tool, make_tool
from longhold.errors import StoreError

TASKS = 1_000
SUBJECT_CHARS = 200
DESCRIPTION_CHARS = 16_000

Status: TypeAlias = Literal["pending", "in_progress", "completed", "deleted"]
TaskId = Annotated[str, Meta(pattern=r"\A[1-9][0-9]{0,5}\Z")]
Owner = Annotated[str, Meta(pattern=rf"({PATTERN})|\A\Z")]


class Task(Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: TaskId
    subject: Annotated[str, Meta(pattern=r"\S", max_length=SUBJECT_CHARS)]
    description: Annotated[str, Meta(max_length=DESCRIPTION_CHARS)] = ""
    active_form: Annotated[str, Meta(max_length=SUBJECT_CHARS)] = ""
    status: Status = "pending"
    owner: Owner = ""
    waits_for: tuple[TaskId, ...] = ()
    by: Owner = ""
    at: float = 0.0


_Id = Annotated[str, Meta(description="The task's number.")]
_Ids = Annotated[tuple[str, ...], Meta(description="Numbers of tasks.")]


class TaskChange(Input, frozen=True, kw_only=True):
    """A change to a task. None keeps a field. New dependencies are added to the existing ones."""

    status: Status | None = None
    owner: Annotated[str | None, Meta(description="Its owner; empty for none.")] = None
    subject: str | None = None
    description: str | None = None
    active_form: str | None = field(name="activeForm", default=None)
    waits_for: _Ids = field(name="addBlockedBy", default=())
    blocks: _Ids = field(name="addBlocks", default=())


class Unchanged(Exception):
    """The change is not allowed. The message is the reason."""


Tasks: TypeAlias = Mapping[str, Task]

_TEXTS = ("subject", "description", "active_form")


def _open_blockers(tasks: Tasks, task: Task) -> tuple[str, ...]:
    return tuple(
        id
        for id in task.waits_for
        if id in tasks and tasks[id].status not in ("completed", "deleted")
    )


def claim_task(tasks: Tasks, id: str, owner: str) -> Task:
    """Return the claimed task, which must be pending, unblocked and not owned by another agent."""
    task = _find(tasks, id)
    if task.status != "pending":
        owner = f" with {task.owner}" if task.owner else ""
        raise Unchanged(f"Task {id} is {task.status.replace('_', ' ')}{owner}.")
    if task.owner and task.owner != owner:
        raise Unchanged(f"Task {id} belongs to {task.owner}.")
    if waiting := _open_blockers(tasks, task):
        raise Unchanged(f"Task {id} waits for {', '.join(waiting)}.")
    return structs.replace(task, status="in_progress", owner=owner)


def apply_change(
    tasks: Tasks, id: str, change: TaskChange, *, by: str, is_lead: bool
) -> list[Task]:
    """Apply a change. Return every task it alters."""
    task = _find(tasks, id)
    if task.owner not in ("", by) and not is_lead:
        raise Unchanged(
            f"Task {id} belongs to {task.owner}; only {task.owner} or {MAIN} changes it."
        )
    if change.owner not in (None, "", by) and not is_lead:
        raise Unchanged(f"Only {MAIN} assigns tasks to others; claim one for yourself.")
    if change.status == "in_progress" and task.status != "in_progress":
        task = claim_task(tasks, id, change.owner or task.owner or by)
    elif change.status is not None:
        task = structs.replace(task, status=change.status)
    owner = task.owner if change.owner is None else change.owner
    if change.status == "pending" and change.owner is None:
        owner = ""  # a pending task has no owner
    task = structs.replace(
        task,
        **{name: text for name in _TEXTS if (text := getattr(change, name)) is not None},
        owner=owner,
        waits_for=_join(task.waits_for, change.waits_for),
    )
    for other in change.waits_for:
        _find(tasks, other)
    others = [_find(tasks, other) for other in dict.fromkeys(change.blocks)]
    new = [task, *(structs.replace(o, waits_for=_join(o.waits_for, (id,))) for o in others)]
    _check_cycles({**tasks, **{each.id: each for each in new}}, new)
    return new


def _find(tasks: Tasks, id: str) -> Task:
    task = tasks.get(id)
    if task is None or task.status == "deleted":
        raise Unchanged(f"There is no task {id}; see TaskList.")
    return task


def _join(one: tuple[str, ...], other: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one, *other)))


def _check_cycles(tasks: Tasks, new: Iterable[Task]) -> None:
    for task in new:
        reached, ahead = set[str](), list(task.waits_for)
        while ahead:
            id = ahead.pop()
            if id == task.id:
                raise Unchanged(f"Task {task.id} would wait for itself.")
            if id not in reached and id in tasks:
                reached.add(id)
                ahead += tasks[id].waits_for


class TaskList:
    def __init__(self, path: Path) -> None:
        self._ledger = SharedLedger(path, Task)
        self._tasks: dict[str, Task] = {}

    def tasks(self) -> dict[str, Task]:
        self._catch_up()
        return {id: task for id, task in self._tasks.items() if task.status != "deleted"}

    def create(self, subject: str, by: str, *, change: TaskChange | None = None) -> Task:
        change = change or TaskChange()
        if change.status not in (None, "pending") or change.owner:
            raise Unchanged("A new task is pending and has no owner.")

        def plan(tasks: Tasks) -> list[Task]:
            if len(tasks) >= TASKS:
                raise Unchanged(f"There are {TASKS} tasks already.")
            fresh = Task(id=str(max(map(int, self._tasks), default=0) + 1), subject=subject)
            return apply_change({**tasks, fresh.id: fresh}, fresh.id, change, by=by, is_lead=True)

        return self._apply(plan, by)[0]

    def change(self, id: str, change: TaskChange, *, by: str, is_lead: bool = False) -> Task:
        return self._apply(lambda t: apply_change(t, id, change, by=by, is_lead=is_lead), by)[0]

    def claim(self, owner: str, id: str = "") -> Task:
        """Claim a task, by default the oldest claimable one."""

        def plan(tasks: Tasks) -> list[Task]:
            pending = (t for t in tasks.values() if t.status == "pending" and not t.owner)
            free = (task.id for task in pending if not _open_blockers(tasks, task))
            chosen = id or next(free, "")
            if not chosen:
                raise Unchanged("No task can be claimed now.")
            return [claim_task(tasks, chosen, owner)]

        return self._apply(plan, owner)[0]

    def release(self, owner: str) -> tuple[Task, ...]:
        def plan(tasks: Tasks) -> list[Task]:
            return [
                structs.replace(task, status="pending", owner="")
                for task in tasks.values()
                if task.owner == owner and task.status == "in_progress"
            ]

        return tuple(self._apply(plan, owner))

    def _apply(self, plan: Callable[[Tasks], list[Task]], by: str) -> list[Task]:
        with self._ledger.lock() as append:
            new = [structs.replace(task, by=by, at=time.time()) for task in plan(self.tasks())]
            if new:
                append(new)
        self._catch_up()
        return new

    def _catch_up(self) -> None:
        self._tasks |= {task.id: task for task in self._ledger.values()}


Done = TypeVar("Done")


class TaskCreateInput(Input, frozen=True, kw_only=True):
    subject: Annotated[str, Meta(description="What is to be done, in one line.")]
    description: Annotated[str, Meta(description="All that its owner must know.")] = ""
    activeForm: Annotated[str, Meta(description="The subject as something being done.")] = ""
    blockedBy: _Ids = ()


class TaskUpdateInput(TaskChange, frozen=True, kw_only=True):
    taskId: _Id


class TaskClaimInput(Input, frozen=True, kw_only=True):
    taskId: Annotated[str, Meta(description="Which; empty for the oldest that is free.")] = ""


class TaskListInput(Input, frozen=True, kw_only=True):
    """TaskList has no fields."""


class TaskGetInput(Input, frozen=True, kw_only=True):
    taskId: _Id


@dataclass(frozen=True, slots=True)
class _TaskAccess:
    tasks: TaskList
    me: str
    is_lead: bool

    async def create(self, given: TaskCreateInput, _context: ToolContext) -> Outcome:
        change = TaskChange(
            description=given.description, active_form=given.activeForm, waits_for=given.blockedBy
        )
        task = await _try(lambda: self.tasks.create(given.subject, self.me, change=change))
        return Outcome(content=f"Task {task.id} was added.", note=_note(task))

    async def update(self, given: TaskUpdateInput, _context: ToolContext) -> Outcome:
        task = await _try(
            lambda: self.tasks.change(given.taskId, given, by=self.me, is_lead=self.is_lead)
        )
        return Outcome(content=f"Task {task.id} is {_state(task)} now.", note=_note(task))

    async def claim(self, given: TaskClaimInput, _context: ToolContext) -> Outcome:
        task = await _try(lambda: self.tasks.claim(self.me, given.taskId))
        known = await _try(self.tasks.tasks)
        return Outcome(content=f"It is yours.\n{_describe_task(known, task)}", note=_note(task))

    async def list_all(self, _given: TaskListInput, _context: ToolContext) -> Outcome:
        known = await _try(self.tasks.tasks)
        lines = [_line(known, task) for task in known.values()]
        return Outcome(
            content="\n".join(lines) or "There are no tasks.", note=f"{len(lines)} tasks"
        )

    async def get(self, given: TaskGetInput, _context: ToolContext) -> Outcome:
        known = await _try(self.tasks.tasks)
        task = await _try(lambda: _find(known, given.taskId))
        return Outcome(content=_describe_task(known, task), note=_note(task))


def task_tools(tasks: TaskList, me: str, *, is_lead: bool = True) -> tuple[Tool, ...]:
    access = _TaskAccess(tasks, me, is_lead)
    return (
        team_tool("TaskClaim", TaskClaimInput, access.claim),
        team_tool("TaskCreate", TaskCreateInput, access.create),
        team_tool("TaskGet", TaskGetInput, access.get, is_read_only=True),
        team_tool("TaskList", TaskListInput, access.list_all, is_read_only=True),
        team_tool("TaskUpdate", TaskUpdateInput, access.update),
    )


def team_tool(
    name: str,
    takes: type[Taken],
    does: Callable[[Taken, ToolContext], Awaitable[Outcome]],
    *,
    is_read_only: bool = False,
) -> Tool:
    return make_tool(
        name, takes, does, kind="other", is_read_only=is_read_only, description=prompt_text(name)
    )


def prompt_text(name: str) -> str:
    place = files("longhold.agent.subagents") / "prompts" / f"{name.lower()}.md"
    return place.read_text(encoding="utf-8").strip()


async def _try(act: Callable[[], Done]) -> Done:
    try:
        return await asyncio.to_thread(act)
    except (StoreError, Unchanged) as refusal:
        raise Refused(f"{refusal} Nothing was changed.") from None


def _state(task: Task) -> str:
    return task.status.replace("_", " ") + (f" ({task.owner})" if task.owner else "")


def _note(task: Task) -> str:
    return f"task {task.id} {_state(task)}: {strip_hidden(one_line(task.subject))}"


def _line(tasks: Tasks, task: Task) -> str:
    waiting = _open_blockers(tasks, task)
    behind = f" [waits for {', '.join(waiting)}]" if waiting else ""
    return f"{task.id}. {_note(task).partition(' ')[2].partition(' ')[2]}{behind}"


def _describe_task(tasks: Tasks, task: Task) -> str:
    lines = [_line(tasks, task)]
    if blocks := [other.id for other in tasks.values() if task.id in other.waits_for]:
        lines.append(f"Blocks {', '.join(blocks)}.")
    if task.description:
        lines += ["Described by another agent as:", *quote_lines(task.description)]
    return "\n".join(lines)
