"""The TodoWrite tool: replaces the whole list; at most one item is in progress."""

from collections import Counter
from typing import Annotated

from msgspec import Meta

from longhold.core.tools.context import Todo, ToolContext
from longhold.core.tools.protocol import Input, Outcome, Refused, Tool, make_tool
from longhold.core.tools.recovered import TODO_NAME


class TodoWriteInput(Input, frozen=True, kw_only=True):
    todos: Annotated[tuple[Todo, ...], Meta(description="The whole list, in order.")]


async def _todo_write(given: TodoWriteInput, tool_context: ToolContext) -> Outcome:
    counts = Counter(todo.status for todo in given.todos)
    if counts["in_progress"] > 1:
        raise Refused(
            f"{counts['in_progress']} todos are in progress; at most one may be. "
            "The list was not changed."
        )
    if any(not todo.content.strip() for todo in given.todos):
        raise Refused("A todo says nothing. The list was not changed.")
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
