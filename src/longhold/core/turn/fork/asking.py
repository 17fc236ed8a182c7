"""Requests to forks and their replies."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from longhold.core.log.entries import Framed
from longhold.core.log.protocol import AgentLog
from longhold.core.messages import Content, JsonObject, Text, ToolUse, Usage, is_blank, text_of
from longhold.core.models.retry import Retries
from longhold.core.tools.context import SeenFile, ToolContext
from longhold.core.tools.protocol import LIMIT_CHARS, Outcome, Tool
from longhold.core.turn.fork.prefix import Prefix
from longhold.core.turn.round import Allowed, Denied, RoundEvent, ToolGate
from longhold.errors import RequestRejected

NO_TOOLS = "No tool may be used here. Answer now, in text, from what you already know."

Permit: TypeAlias = ToolGate  # allows a tool call, possibly with another input, or denies it

ForkEnd: TypeAlias = Literal[
    "completed", "max_turns", "max_usd", "aborted", "denied", "refused", "cut_off"
]


async def deny_all(use: ToolUse, tool: Tool) -> Allowed | Denied:
    return Denied(reason=NO_TOOLS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkRequest:
    say: str | Content  # the fork's user message, appended to its parent's conversation
    source: str  # the caller: compact, notes, memory, dream, progress or agent:<id>
    turns: int = 1  # maximum number of answers
    permit: Permit = deny_all
    instead: Mapping[str, Tool] = field(default_factory=dict)  # the model sees the same tool list
    writes_cache: bool = False  # caches the fork's own messages, which pays over many turns
    keeps_log: AgentLog | None = None  # the log for the fork's transcript, new or existing
    mail: str = ""  # if `say` is mail: the mailbox, and the read position after this mail
    on_event: Callable[[RoundEvent], None] | None = None
    knows: tuple[SeenFile, ...] = ()  # files in `say` that the fork may change without reading
    least_output_tokens: int = 0  # a minimum, even above the parent's limit
    retries: Retries | None = None  # set if the caller waits and can do without the answer
    is_wanted: bool | None = None  # True ignores the overhead budget
    is_enough: Callable[[], bool] = lambda: False  # called after each tool run, to end the fork
    max_usd: float | None = None  # once answers cost this much, the fork ends as `max_usd`
    prefix: Prefix | None = None  # fork this prefix instead of the current conversation


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkReply:
    text: str
    content: Content
    stop_reason: str
    reason: ForkEnd
    turns: int
    calls: tuple[Usage, ...]  # usage of each call, including failed attempts that were billed
    seconds: float
    tool_calls: int = 0
    failed_tool_calls: int = 0

    @property
    def is_in_vain(self) -> bool:
        return 0 < self.tool_calls == self.failed_tool_calls

    @property
    def usage(self) -> Usage:
        """The sum of all calls. To apply prices that depend on the prompt length, use `calls`."""
        return sum(self.calls, Usage())


AskFork: TypeAlias = Callable[[ForkRequest], Awaitable[ForkReply]]
"""The function through which stages and jobs call a model."""


def check_says_something(request: ForkRequest) -> None:
    """Raise on an empty request, which a provider would refuse only after reading the prompt."""
    if request.prefix is not None and "compaction" in request.prefix.frame.options:
        return
    said = (Text(text=request.say),) if isinstance(request.say, str) else request.say
    if all(map(is_blank, said)):
        raise RequestRejected("a fork needs something to say; pass `say`")


def check_may_fork(tool_context: ToolContext) -> None:
    """Raise in a fork, because a fork's prefix is not cached and forks would multiply."""
    if tool_context.is_fork:
        raise RequestRejected("a fork may not fork; do the work here or report what is left")


def mark_wanted(ask: AskFork) -> AskFork:
    """Wrap `ask` so that the overhead budget does not limit its requests."""

    async def on_purpose(request: ForkRequest) -> ForkReply:
        is_wanted = True if request.is_wanted is None else request.is_wanted
        return await ask(replace(request, is_wanted=is_wanted))

    return on_purpose


OUT_OF_REACH = "This tool cannot be used here. Answer now, in text, from what you already know."


async def shorten_result(use: ToolUse, outcome: Outcome, seconds: float) -> Outcome:
    text = text_of(outcome.content)
    if len(text) <= LIMIT_CHARS:
        return outcome
    left_out = len(text) - LIMIT_CHARS
    note = f"\n[{left_out:,} more characters were left out here; ask for a smaller part]"
    head = text[:LIMIT_CHARS] + note
    if isinstance(outcome.content, str):
        return replace(outcome, content=head)
    rest = (block for block in outcome.content if not isinstance(block, Text))
    return replace(outcome, content=(Text(text=head), *rest))


def make_placeholders(frame: Framed) -> dict[str, Tool]:
    return {str(tool.get("name", "")): _placeholder(tool) for tool in frame.tools}


def _placeholder(definition: JsonObject) -> Tool:
    return Tool(
        name=str(definition.get("name", "")),
        description=str(definition.get("description", "")),
        input_schema=definition.get("input_schema") or {},
        kind="other",
        path_inputs=(),
        command_input="",
        is_read_only=lambda given: True,
        limit_chars=None,
        run=_say_so,
    )


async def _say_so(given: JsonObject, tool_context: ToolContext) -> Outcome:
    return Outcome(content=OUT_OF_REACH, is_error=True)
