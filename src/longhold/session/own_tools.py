"""The tools a session runs itself: History, which opens content that left the view, and memory."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from longhold.core.messages import ResultContent, ToolUse
from longhold.core.settings import home
from longhold.core.tools.context import ToolContext
from longhold.core.tools.protocol import Tool
from longhold.core.turn.engine import Engine
from longhold.core.wire.messages import read_arguments
from longhold.errors import InvalidArgument
from longhold.session.arguments import to_plain_object


def history_over(engine: Engine) -> Tool:
    # Imported here because sessions without the History tool need no index of their history.
    from longhold.core.stages.collapse import open_span
    from longhold.core.tools.history.history import History, is_shown
    from longhold.core.tools.history.tool import history_tool

    history = History(
        lambda: engine.view.history,
        directory=engine.directory,
        results=engine.results,
        session=engine.log.header.session,
        shows=lambda n: is_shown(engine.view, n),
    )
    return history_tool(
        history,
        window_tokens=lambda: engine.fullness().window.limit_tokens,
        reopen=partial(open_span, engine),
    )


def context_over(engine: Engine) -> ToolContext:
    return ToolContext(
        root=Path(engine.log.header.directory or "."),
        home=home(),
        scratch=engine.directory / "scratch",
    )


def call_of(call: object) -> ToolUse:
    """Read a tool call of any dialect: a block, a chat completions call, or a Responses item."""
    if isinstance(call, ToolUse):
        return call
    found = to_plain_object(call, "call")
    id = str(found.get("call_id") or found.get("id") or "")
    match found:
        case {"name": str(name), "input": dict(data)}:
            return ToolUse(id=id, name=name, input=data)
        case {"function": {"name": str(name)} as given}:
            return ToolUse(id=id, name=name, input=read_arguments(given))
        case {"type": "function_call", "name": str(name)}:
            return ToolUse(id=id, name=name, input=read_arguments(found))
    raise InvalidArgument(
        "call", "this is not a tool call; pass the tool_use block of the model's answer"
    )


async def answer(tools: Sequence[Tool], call: ToolUse, engine: Engine) -> ResultContent:
    """Run one of the session's own tools. A failure is explained in the returned content."""
    found = {tool.name: tool for tool in tools}
    if call.name not in found:
        ours = " and ".join(found)
        raise InvalidArgument(
            "call", f"{call.name!r} is the program's own tool; Longhold only runs {ours}"
        )
    outcome = await found[call.name].run(call.input, context_over(engine))
    return outcome.content
