"""Overhead calls in a program's session: through its client, or through its own call function.

A framework renders requests in its own way, so a fork that Longhold renders reads nothing from the
provider's cache. So while a framework's call is prepared, forks are sent through the framework.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from longhold.core.models.capabilities import Capabilities
from longhold.core.models.clients import read_response, wrap_client
from longhold.core.models.protocol import Event, Model, Request, play
from longhold.core.models.translate import translate_errors
from longhold.core.turn.answering import own_refusal
from longhold.core.turn.engine import Engine
from longhold.core.turn.fork.asking import make_placeholders
from longhold.core.turn.round import Toolbox
from longhold.session.own_tools import context_over

if TYPE_CHECKING:
    from longhold.core.turn.fork.run import Forks

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
