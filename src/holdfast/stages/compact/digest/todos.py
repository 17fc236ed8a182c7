"""The list of what is to be done, as the tools that keep one left it.

Some agents write the whole list each time, others add and change single entries; both end up
as one list in its last state. A call that failed changes nothing.
"""

import re

from holdfast.messages import Json, ToolUse, text_of
from holdfast.stages.compact.digest.facts import TodoFact
from holdfast.view.items import Result

_NUMBER = re.compile(r"#(\d+)")
_LISTED = re.compile(r"^#(\d+) \[(\w+)\]", re.MULTILINE)


class Todos:
    """The list so far; lives for one pass over a segment."""

    def __init__(self) -> None:
        self._listed: dict[str, TodoFact] = {}

    def take(self, use: ToolUse, result: Result | None, id: int) -> None:
        """Take in a call, if it is one that keeps the list."""
        if result is None or result.is_error:
            return
        whole = use.input.get("todos", use.input.get("plan"))
        if isinstance(whole, list):
            self._replace(whole, id)
        elif use.name == "TaskCreate":
            found = _NUMBER.search(text_of(result.content))
            number = found[1] if found else str(len(self._listed) + 1)
            text = str(use.input.get("subject") or "")
            self._listed[number] = TodoFact(text=text, state="pending", id=id)
        elif use.name == "TaskList":
            for number, state in _LISTED.findall(text_of(result.content)):
                self._update(number, state, id)
        elif use.name == "TaskUpdate":
            self._update(str(use.input.get("taskId")), use.input.get("status"), id)

    def listed(self) -> tuple[TodoFact, ...]:
        """Give the list in its last state."""
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
