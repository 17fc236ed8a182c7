"""What is to be done by several: tasks with owners and what they wait for.

Pure rules, and one ledger on which they are applied under its lock: each line is a task as it
became, the latest of an id holds. So two agents never claim one task, and a task list is the
same for all who read it. Only what a task waits for is kept; what it blocks follows from that.
Who may start what is decided here; who does it is not.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct, structs

from holdfast.agent.subagents.ledger import LedgerLine, SharedLedger
from holdfast.agent.subagents.names import PATTERN

TASKS = 1_000
"""A list longer than this is no plan."""
SUBJECT_CHARS = 200
"""One line."""
DESCRIPTION_CHARS = 16_000
"""As much as a good briefing takes."""

Status: TypeAlias = Literal["pending", "in_progress", "completed", "deleted"]
TaskId = Annotated[str, Meta(pattern=r"\A[1-9][0-9]{0,5}\Z")]
Owner = Annotated[str, Meta(pattern=rf"({PATTERN})|\A\Z")]


class Task(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing to do."""

    id: TaskId
    subject: Annotated[str, Meta(max_length=SUBJECT_CHARS)]
    description: Annotated[str, Meta(max_length=DESCRIPTION_CHARS)] = ""
    active_form: Annotated[str, Meta(max_length=SUBJECT_CHARS)] = ""
    status: Status = "pending"
    owner: Owner = ""
    waits_for: tuple[TaskId, ...] = ()
    by: Owner = ""
    """Who changed it last."""
    at: float = 0.0


class TaskChange(Struct, frozen=True, kw_only=True):
    """What is to become different about a task; what is None stays."""

    subject: str | None = None
    description: str | None = None
    active_form: str | None = None
    status: Status | None = None
    owner: str | None = None
    waits_for: tuple[str, ...] = ()
    """Added to what it waits for."""
    blocks: tuple[str, ...] = ()
    """Tasks that are to wait for this one."""


class Unchanged(Exception):
    """The rules do not allow it; the message says why and what does."""


Tasks: TypeAlias = Mapping[str, Task]


def open_blockers(tasks: Tasks, task: Task) -> tuple[str, ...]:
    """List what a task still waits for."""
    return tuple(
        id
        for id in task.waits_for
        if id in tasks and tasks[id].status not in ("completed", "deleted")
    )


def blocked_by(tasks: Tasks, id: str) -> tuple[str, ...]:
    """List the tasks that wait for one."""
    return tuple(task.id for task in tasks.values() if id in task.waits_for)


def claimed(tasks: Tasks, id: str, owner: str) -> Task:
    """Give a task to who asks first: only a pending one that nobody has and nothing blocks."""
    task = _found(tasks, id)
    if task.status != "pending":
        raise Unchanged(f"Task {id} is {task.status.replace('_', ' ')}{_of(task)}.")
    if task.owner and task.owner != owner:
        raise Unchanged(f"Task {id} belongs to {task.owner}.")
    if waiting := open_blockers(tasks, task):
        raise Unchanged(f"Task {id} waits for {', '.join(waiting)}.")
    return structs.replace(task, status="in_progress", owner=owner)


def claimable(tasks: Tasks) -> list[str]:
    """List the tasks that can be claimed, the oldest first."""
    return [
        task.id
        for task in tasks.values()
        if task.status == "pending" and not task.owner and not open_blockers(tasks, task)
    ]


def changed(tasks: Tasks, id: str, change: TaskChange, *, by: str, is_lead: bool) -> list[Task]:
    """Apply a change; give every task that becomes different."""
    task = _found(tasks, id)
    if task.owner not in ("", by) and not is_lead:
        raise Unchanged(
            f"Task {id} belongs to {task.owner}; only {task.owner} or the lead changes it."
        )
    if change.owner not in (None, "", by) and not is_lead:
        raise Unchanged("Only the lead gives tasks to others; claim one for yourself.")
    if change.status == "in_progress" and task.status != "in_progress":
        task = claimed(tasks, id, change.owner or task.owner or by)
    elif change.status is not None:
        task = structs.replace(task, status=change.status)
    owner = task.owner if change.owner is None else change.owner
    if change.status == "pending" and change.owner is None:
        owner = ""  # given back: whoever comes next may have it
    task = structs.replace(
        task,
        subject=task.subject if change.subject is None else change.subject,
        description=task.description if change.description is None else change.description,
        active_form=task.active_form if change.active_form is None else change.active_form,
        owner=owner,
        waits_for=_joined(task.waits_for, change.waits_for),
    )
    for other in change.waits_for:
        _found(tasks, other)
    others = [_found(tasks, other) for other in dict.fromkeys(change.blocks)]
    new = [task, *(structs.replace(o, waits_for=_joined(o.waits_for, (id,))) for o in others)]
    _check_circles({**tasks, **{each.id: each for each in new}}, new)
    return new


def _found(tasks: Tasks, id: str) -> Task:
    task = tasks.get(id)
    if task is None or task.status == "deleted":
        raise Unchanged(f"There is no task {id}; TaskList shows those there are.")
    return task


def _of(task: Task) -> str:
    return f" with {task.owner}" if task.owner else ""


def _joined(one: tuple[str, ...], other: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one, *other)))


def _check_circles(tasks: Tasks, new: Iterable[Task]) -> None:
    """Refuse waiting in a circle."""
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
    """The tasks of a session or a team, on disk."""

    def __init__(self, path: Path) -> None:
        self._ledger = SharedLedger(path, Task)
        self._tasks: dict[str, Task] = {}

    def tasks(self) -> dict[str, Task]:
        """Give the tasks as they are now, without those that were deleted."""
        self._catch_up()
        return {id: task for id, task in self._tasks.items() if task.status != "deleted"}

    def create(self, subject: str, by: str, *, change: TaskChange | None = None) -> Task:
        """Add a task; what it waits for and blocks comes as a change."""
        change = change or TaskChange()
        if change.status not in (None, "pending") or change.owner:
            raise Unchanged("A new task is pending and nobody's.")

        def plan(tasks: Tasks) -> list[Task]:
            if len(tasks) >= TASKS:
                raise Unchanged(f"There are {TASKS} tasks already.")
            fresh = Task(id=str(max(map(int, self._tasks), default=0) + 1), subject=subject)
            return changed({**tasks, fresh.id: fresh}, fresh.id, change, by=by, is_lead=True)

        return self._apply(plan, by)[0]

    def change(self, id: str, change: TaskChange, *, by: str, is_lead: bool = False) -> Task:
        """Change a task."""
        return self._apply(lambda t: changed(t, id, change, by=by, is_lead=is_lead), by)[0]

    def claim(self, owner: str, id: str = "") -> Task:
        """Take a task, or the oldest that can be taken, before anyone else does."""

        def plan(tasks: Tasks) -> list[Task]:
            chosen = id or next(iter(claimable(tasks)), "")
            if not chosen:
                raise Unchanged("No task can be claimed now.")
            return [claimed(tasks, chosen, owner)]

        return self._apply(plan, owner)[0]

    def release(self, owner: str) -> tuple[Task, ...]:
        """Give back what an agent had begun, when it is gone."""

        def plan(tasks: Tasks) -> list[Task]:
            return [
                structs.replace(task, status="pending", owner="")
                for task in tasks.values()
                if task.owner == owner and task.status == "in_progress"
            ]

        return tuple(self._apply(plan, owner))

    def _apply(self, plan: Callable[[Tasks], list[Task]], by: str) -> list[Task]:
        """Decide under the lock on what is there, and write it down in one go."""
        with self._ledger.held() as append:
            new = [structs.replace(task, by=by, at=time.time()) for task in plan(self.tasks())]
            _check_form(new)
            if new:
                append(new)
        self._catch_up()
        return new

    def _catch_up(self) -> None:
        for line in self._ledger.news():
            if isinstance(line, LedgerLine):
                self._tasks[line.value.id] = line.value


def _check_form(tasks: Sequence[Task]) -> None:
    """Keep out what a reader would not take back in."""
    for task in tasks:
        if not task.subject.strip() or len(task.subject) > SUBJECT_CHARS:
            raise Unchanged(f"A subject has 1 to {SUBJECT_CHARS} characters.")
        if len(task.description) > DESCRIPTION_CHARS or len(task.active_form) > SUBJECT_CHARS:
            raise Unchanged(f"A description has at most {DESCRIPTION_CHARS:,} characters.")
