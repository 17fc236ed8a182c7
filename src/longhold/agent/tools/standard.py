"""The tools an agent has by default, sorted by name as a request lists them."""

from longhold.agent.tools.bash import BASH, BASH_OUTPUT, KILL_SHELL
from longhold.agent.tools.edit import EDIT, WRITE
from longhold.agent.tools.grep import GLOB, GREP
from longhold.agent.tools.plan import ENTER_PLAN, EXIT_PLAN, TODO_WRITE
from longhold.agent.tools.read import READ
from longhold.agent.tools.skills import SKILL
from longhold.agent.tools.web import WEB_FETCH
from longhold.core.tools.protocol import Tool

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
