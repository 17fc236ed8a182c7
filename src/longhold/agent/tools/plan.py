"""The EnterPlan, ExitPlan and TodoWrite tools. A fork cannot plan, as it has no user to ask."""

import re
from collections import Counter
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from longhold.core.settings.private_files import write_private
from longhold.core.tools.context import PlanMode, Todo, ToolContext
from longhold.core.tools.protocol import Input, Outcome, Refused, Tool, make_tool
from longhold.core.tools.recovered import TODO_NAME


class EnterPlanInput(Input, frozen=True, kw_only=True):
    """EnterPlan has no input."""


class ExitPlanInput(Input, frozen=True, kw_only=True):
    plan: Annotated[
        str, Meta(description="The plan, in Markdown; leave out what already is in the plan file.")
    ] = ""


async def _enter_plan(_given: EnterPlanInput, tool_context: ToolContext) -> Outcome:
    if tool_context.is_fork:
        raise Refused("Only the main session plans: there is no user here to approve a plan.")
    file = plan_file(tool_context)
    tool_context.set_plan(PlanMode(is_on=True, file=file))
    begun = " A plan from before is in it." if file.exists() else ""
    said = (
        f"Planning. Look around, change nothing but {file}, in which the plan grows.{begun} "
        "Hand it over with ExitPlan."
    )
    return Outcome(content=said, note="planning")


async def _exit_plan(given: ExitPlanInput, tool_context: ToolContext) -> Outcome:
    if not tool_context.plan.is_on:
        raise Refused("Nothing is being planned. Begin with EnterPlan.")
    file = tool_context.plan.file or plan_file(tool_context)
    if given.plan.strip():
        write_private(file, given.plan.rstrip() + "\n")
    plan = file.read_text(encoding="utf-8") if file.exists() else ""
    if not plan.strip():
        raise Refused(f"There is no plan yet: write it to {file}, or give it here.")
    tool_context.set_plan(PlanMode(is_on=False, file=file))
    said = f"The plan is approved and is in {file}. Carry it out.\n\n{plan}"
    return Outcome(content=said, note=f"plan approved: {file.name}")


def plan_file(tool_context: ToolContext) -> Path:
    name = re.sub(r"[^\w-]+", "-", tool_context.session).strip("-") or "session"
    return tool_context.home / "plans" / f"{name}.md"


ENTER_PLAN: Tool = make_tool("EnterPlan", EnterPlanInput, _enter_plan, kind="other")
EXIT_PLAN: Tool = make_tool("ExitPlan", ExitPlanInput, _exit_plan, kind="ask")


class TodoWriteInput(Input, frozen=True, kw_only=True):
    todos: Annotated[tuple[Todo, ...], Meta(description="The whole list, in order.")]


async def _todo_write(given: TodoWriteInput, tool_context: ToolContext) -> Outcome:
    counts = Counter(todo.status for todo in given.todos)
    if counts["in_progress"] > 1 or any(not todo.content.strip() for todo in given.todos):
        raise Refused("At most one todo is in progress, and each says something. Nothing changed.")
    tool_context.set_todos(given.todos)
    said = (
        f"{counts['completed']} done, {counts['in_progress']} in progress, "
        f"{counts['pending']} to do"
    )
    current = (
        each.activeForm or each.content for each in given.todos if each.status == "in_progress"
    )
    return Outcome(content=f"Todos: {said}.", note=next(current, said))


TODO_WRITE: Tool = make_tool(TODO_NAME, TodoWriteInput, _todo_write, kind="other")
