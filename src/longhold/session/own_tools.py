"""The tools that a program's session runs itself (History and memory), and its overhead calls.

A framework renders requests in its own way, so a fork that Longhold renders reads nothing from the
provider's cache. Therefore Longhold sends forks through the framework while it prepares a
framework's call.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from longhold.core.messages import ResultContent, ToolUse
from longhold.core.models.capabilities import Capabilities
from longhold.core.models.clients import read_response, wrap_client
from longhold.core.models.protocol import Event, Model, Request, play
from longhold.core.models.translate import translate_errors
from longhold.core.settings import home
from longhold.core.tools.context import ToolContext
from longhold.core.tools.protocol import Tool
from longhold.core.turn.answering import own_refusal
from longhold.core.turn.engine import Engine
from longhold.core.turn.fork.asking import make_placeholders
from longhold.core.turn.round import Toolbox
from longhold.core.wire.messages import read_arguments
from longhold.errors import InvalidArgument
from longhold.session.arguments import to_plain_object

if TYPE_CHECKING:
    from longhold.core.turn.fork.run import Forks


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


Send: TypeAlias = Callable[[Request], Awaitable[object]]
"""Sends a request as the program sends its own, and returns an answer that `record` accepts."""


class OwnCalls:
    def __init__(self, engine: Engine, client: object) -> None:
        self._engine, self._client = engine, client
        self._send: Send | None = None

    def through(self, send: Send | None) -> AbstractAsyncContextManager[None]:

        @asynccontextmanager
        async def sending() -> AsyncIterator[None]:
            self._send = send
            try:
                yield
            finally:
                self._send = None

        return sending()

    def forks(self) -> "Forks":
        # Imported here because without a client no model is called.
        from longhold.core.turn.fork.run import Forks

        engine, context = self._engine, context_over(self._engine)
        return Forks(
            parent=engine,
            model=self._model,
            toolbox=lambda: Toolbox(tools=make_placeholders(engine.frame), tool_context=context),
            refuses=partial(own_refusal, engine),
        )

    def _model(self) -> Model:
        model = wrap_client(self._client, self._engine.model)
        return model if self._send is None else _Sender(model, self._send, self._engine)


class _Sender:
    def __init__(self, model: Model, send: Send, engine: Engine) -> None:
        self._model, self._send, self._engine = model, send, engine

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def capabilities(self) -> Capabilities:
        return self._model.capabilities

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        system = request.kwargs.get("system") or ()
        texts = [system] if isinstance(system, str) else [block["text"] for block in system]
        if texts != [section.text for section in self._engine.frame.sections]:
            async for event in self._model.stream(request):
                yield event
            return
        with translate_errors():
            reply = await read_response(await self._send(request))
        for event in play(reply):
            yield event

    async def count(self, request: Request) -> int | None:
        return await self._model.count(request)

    async def close(self) -> None:
        await self._model.close()
