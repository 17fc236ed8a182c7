"""The tools an agent has by default, sorted by name as a request lists them."""

from holdfast.tools.bash import BASH, BASH_OUTPUT, KILL_SHELL
from holdfast.tools.edit import EDIT, WRITE
from holdfast.tools.grep import GLOB, GREP
from holdfast.tools.plan import ENTER_PLAN, EXIT_PLAN
from holdfast.tools.protocol import Tool
from holdfast.tools.read import READ
from holdfast.tools.skills import SKILL
from holdfast.tools.todo import TODO_WRITE
from holdfast.tools.web import WEB_FETCH

STANDARD: tuple[Tool, ...] = (
    BASH,
    BASH_OUTPUT,
    EDIT,
    ENTER_PLAN,
    EXIT_PLAN,
    GLOB,
    GREP,
    KILL_SHELL,
    READ,
    SKILL,
    TODO_WRITE,
    WEB_FETCH,
    WRITE,
)


def tool_named(name: str, tools: tuple[Tool, ...] = STANDARD) -> Tool | None:
    return next((tool for tool in tools if tool.name == name), None)
