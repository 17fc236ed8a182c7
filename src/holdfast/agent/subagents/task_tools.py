"""The tools for shared tasks: TaskCreate, TaskUpdate, TaskClaim, TaskList, TaskGet.

`tasks` decides what is allowed; the model is told its refusals. Descriptions are written by other
agents, so each of their lines is shown behind a bar.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.resources import files
from typing import Annotated, TypeVar

from msgspec import Meta

from holdfast.agent.subagents.mail import plain, quoted
from holdfast.agent.subagents.tasks import (
    Status,
    Task,
    TaskChange,
    TaskList,
    Tasks,
    Unchanged,
    blocked_by,
    open_blockers,
)
from holdfast.tools.context import ToolContext
from holdfast.tools.protocol import Input, Outcome, Refused, Taken, Tool, make_tool

_Id = Annotated[str, Meta(description="The task's number.")]
_Ids = Annotated[tuple[str, ...], Meta(description="Numbers of tasks.")]

Done = TypeVar("Done")


class TaskCreateInput(Input, frozen=True, kw_only=True):
    subject: Annotated[str, Meta(description="What is to be done, in one line.")]
    description: Annotated[str, Meta(description="All that its owner must know.")] = ""
    activeForm: Annotated[str, Meta(description="The subject as something being done.")] = ""
    blockedBy: _Ids = ()


class TaskUpdateInput(Input, frozen=True, kw_only=True):
    taskId: _Id
    status: Status | None = None
    owner: Annotated[str | None, Meta(description="Its owner; empty for none.")] = None
    subject: str | None = None
    description: str | None = None
    activeForm: str | None = None
    addBlockedBy: _Ids = ()
    addBlocks: _Ids = ()


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
            description=given.description,
            active_form=given.activeForm,
            waits_for=given.blockedBy,
        )
        task = await _tried(lambda: self.tasks.create(given.subject, self.me, change=change))
        return Outcome(content=f"Task {task.id} was added.", note=_note(task))

    async def update(self, given: TaskUpdateInput, _context: ToolContext) -> Outcome:
        change = TaskChange(
            subject=given.subject,
            description=given.description,
            active_form=given.activeForm,
            status=given.status,
            owner=given.owner,
            waits_for=given.addBlockedBy,
            blocks=given.addBlocks,
        )
        task = await _tried(
            lambda: self.tasks.change(given.taskId, change, by=self.me, is_lead=self.is_lead)
        )
        return Outcome(content=f"Task {task.id} is {_state(task)} now.", note=_note(task))

    async def claim(self, given: TaskClaimInput, _context: ToolContext) -> Outcome:
        task = await _tried(lambda: self.tasks.claim(self.me, given.taskId))
        known = await _tried(self.tasks.tasks)
        return Outcome(content=f"It is yours.\n{_full(known, task)}", note=_note(task))

    async def list_all(self, _given: TaskListInput, _context: ToolContext) -> Outcome:
        known = await _tried(self.tasks.tasks)
        lines = [_line(known, task) for task in known.values()]
        return Outcome(
            content="\n".join(lines) or "There are no tasks.", note=f"{len(lines)} tasks"
        )

    async def get(self, given: TaskGetInput, _context: ToolContext) -> Outcome:
        known = await _tried(self.tasks.tasks)
        if given.taskId not in known:
            raise Refused(f"There is no task {given.taskId}; see TaskList.")
        task = known[given.taskId]
        return Outcome(content=_full(known, task), note=_note(task))


def task_tools(tasks: TaskList, me: str, *, is_lead: bool = True) -> tuple[Tool, ...]:
    """Make the task tools of one agent; only sub-agents are not leads."""
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
    """Make a tool whose description is a prompt of this package."""
    return make_tool(
        name, takes, does, kind="other", is_read_only=is_read_only, description=prompt_text(name)
    )


def prompt_text(name: str) -> str:
    """Read the description of a tool, or another prompt of this package."""
    place = files("holdfast.agent.subagents") / "prompts" / f"{name.lower()}.md"
    return place.read_text(encoding="utf-8").strip()


async def _tried(act: Callable[[], Done]) -> Done:
    """Act on the task list in a thread; tell the model what the rules forbid."""
    try:
        return await asyncio.to_thread(act)
    except Unchanged as refusal:
        raise Refused(f"{refusal} Nothing was changed.") from None


def _state(task: Task) -> str:
    return task.status.replace("_", " ") + (f" ({task.owner})" if task.owner else "")


def _subject(task: Task) -> str:
    """Show another agent's words on one line, without hidden characters."""
    return plain(" ".join(task.subject.split()))


def _note(task: Task) -> str:
    return f"task {task.id} {_state(task)}: {_subject(task)}"


def _line(tasks: Tasks, task: Task) -> str:
    waiting = open_blockers(tasks, task)
    behind = f" [waits for {', '.join(waiting)}]" if waiting else ""
    return f"{task.id}. {_state(task)}: {_subject(task)}{behind}"


def _full(tasks: Tasks, task: Task) -> str:
    lines = [_line(tasks, task)]
    if blocks := blocked_by(tasks, task.id):
        lines.append(f"Blocks {', '.join(blocks)}.")
    if task.description:
        lines += ["Described by another agent as:", *quoted(task.description)]
    return "\n".join(lines)
