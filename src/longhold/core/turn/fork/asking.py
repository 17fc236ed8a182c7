"""What is asked of a fork, and its reply: the values stages and jobs speak in.

A failure is a `ModelError`; cancelling the caller aborts the fork. Which tools may run is decided
by the request's `permit`, by default none. The list of tools that the model sees never changes,
because it is part of the prefix.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from longhold.core.log.entries import Framed
from longhold.core.log.protocol import AgentLog
from longhold.core.messages import Content, JsonObject, Text, ToolUse, Usage, is_blank, text_of
from longhold.core.models.retry import Retries
from longhold.core.tools.context import ToolContext
from longhold.core.tools.files import SeenFile
from longhold.core.tools.protocol import LIMIT_CHARS, Outcome, Tool
from longhold.core.turn.fork.prefix import Prefix
from longhold.core.turn.round import Allowed, Denied, RoundEvent, ToolGate
from longhold.errors import RequestRejected

NO_TOOLS = "No tool may be used here. Answer now, in text, from what you already know."

Permit: TypeAlias = ToolGate
"""Allows a call, perhaps with another input, or denies it; the model reads why."""

ForkEnd: TypeAlias = Literal["completed", "max_turns", "aborted", "denied", "refused", "cut_off"]
"""Why a fork stopped."""


async def deny_all(use: ToolUse, tool: Tool) -> Allowed | Denied:
    return Denied(reason=NO_TOOLS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkRequest:
    say: str | Content
    """Its own words, on the user's side, behind everything its parent has."""
    source: str
    """Who asks: compact, notes, memory, dream, progress, agent:<id>."""
    turns: int = 1
    """How many answers it may give; a denied tool is read in the next."""
    permit: Permit = deny_all
    instead: Mapping[str, Tool] = field(default_factory=dict)
    """Tools that run in place of the parent's of the same name; what the model sees stays."""
    writes_cache: bool = False
    """Leave what it adds in the cache: for forks of many turns."""
    keeps_log: AgentLog | None = None
    """Where its own transcript is kept, continued if it exists; by default none is."""
    mail: str = ""
    """If its words are mail: which mailbox, and how far it is read with this."""
    on_event: Callable[[RoundEvent], None] | None = None
    """Called with every event as it happens."""
    knows: tuple[SeenFile, ...] = ()
    """Files whose text is in its words: it may change them without reading them first."""
    least_output_tokens: int = 0
    """Its answers may be this long even if the parent's may not; the cache does not depend on it."""
    retries: Retries | None = None
    """Try no more often and wait no longer than this: the caller waits, and can do without."""
    is_wanted: bool | None = None
    """Somebody asked for it, so that no share of the engine's own limits it; by default what comes
    through a session's `ask` is wanted, and what a layer asks is not."""
    prefix: Prefix | None = None
    """Fork this rather than the conversation as it stands when asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkReply:
    text: str
    """The last answer, as far as it is text."""
    content: Content
    stop_reason: str
    """The model's, of its last answer."""
    reason: ForkEnd
    turns: int
    calls: tuple[Usage, ...]
    """What each call cost, failed attempts that were begun included."""
    seconds: float

    @property
    def usage(self) -> Usage:
        """All calls together; for prices that depend on a prompt's length take them one by one."""
        return sum(self.calls, Usage())


AskFork: TypeAlias = Callable[[ForkRequest], Awaitable[ForkReply]]
"""How stages and jobs reach a model: through a fork."""


def check_says_something(request: ForkRequest) -> None:
    """Refuse a request without words: providers do, and only after the whole prompt was sent.

    One whose frame asks the provider to compact needs none.
    """
    if request.prefix is not None and "compaction" in request.prefix.frame.options:
        return
    said = (Text(text=request.say),) if isinstance(request.say, str) else request.say
    if all(map(is_blank, said)):
        raise RequestRejected("a fork needs something to say; pass `say`")


def check_may_fork(tool_context: ToolContext) -> None:
    """Refuse a fork of a fork: its prefix is not cached, and forks would multiply."""
    if tool_context.is_fork:
        raise RequestRejected("a fork may not fork; do the work here or report what is left")


def mark_wanted(ask: AskFork) -> AskFork:
    """Return a way to ask on purpose, which the engine's own share does not limit."""

    async def on_purpose(request: ForkRequest) -> ForkReply:
        is_wanted = True if request.is_wanted is None else request.is_wanted
        return await ask(replace(request, is_wanted=is_wanted))

    return on_purpose


OUT_OF_REACH = "This tool cannot be used here. Answer now, in text, from what you already know."


async def shorten_result(use: ToolUse, outcome: Outcome, seconds: float) -> Outcome:
    """Keep the beginning of a long result, and say how much is not there."""
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
