"""A session: what a program holds that manages its own loop, or lets ours run.

    session = Session.open(model="claude-sonnet-5-5", system=SYSTEM, tools=TOOLS)
    session.user("Fix the login bug")
    request = await session.prepare()
    response = await client.messages.create(**request.kwargs)
    await session.settle(response)
    session.tool_result(block.id, output)        # and prepare again

`prepare` gives keyword arguments for the client of the model's own provider. `failed` takes the
exception a call raised and answers "retry" once that can help, or raises ours.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from holdfast.errors import ModelError, PromptTooLong, RequestRejected
from holdfast.log import Log
from holdfast.log.entries import Compacted, Framed, Section, Switched
from holdfast.log.store import FileStore, Store
from holdfast.messages import (
    Content,
    JsonObject,
    ResultContent,
    ToolResult,
    content_from_wire,
    result_content_from_wire,
)
from holdfast.models.capabilities import capabilities
from holdfast.models.chat import worded_for
from holdfast.models.clients import model_over
from holdfast.models.protocol import Request
from holdfast.models.responses import reply_from
from holdfast.models.retry import RETRIES, wait_seconds
from holdfast.models.translate import translate
from holdfast.request.frame import frame
from holdfast.request.lifetime import latched
from holdfast.request.server_side import declared
from holdfast.settings import Settings, home, load_settings
from holdfast.stages.clear.clear import Clearing
from holdfast.stages.compact.compact import Compaction, CompactRequest
from holdfast.stages.standard import StandardStages
from holdfast.tools.context import ToolContext
from holdfast.turn.engine import Engine, Fullness
from holdfast.turn.fork import Forks, out_of_reach
from holdfast.turn.round import Toolbox
from holdfast.turn.undo import redo, undo
from holdfast.view import View
from holdfast.view.window import window_for


class Session:
    """One conversation that is kept, measured and never lost."""

    def __init__(
        self, log: Log, settings: Settings, *, max_tokens: int = 0, client: object = None
    ) -> None:
        self.engine = Engine(log, settings)
        self.stages = StandardStages()
        self.stages.attach(self.engine)
        if client is not None:
            self.engine.ask = self._forks(client).ask
        self._max_tokens = max_tokens
        self._attempt = 0
        self._has_recovered = False
        """An overflow was answered in this turn; one more is the caller's to see."""
        self._dice = random.Random()
        self.sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
        """How `failed` waits; tests put in one that does not."""

    @classmethod
    def open(
        cls,
        *,
        model: str,
        system: str | Sequence[Section] = "",
        tools: Iterable[JsonObject] = (),
        max_tokens: int = 0,
        options: JsonObject | None = None,
        directory: Path | None = None,
        store: Store | None = None,
        settings: Settings | None = None,
        source: str = "sdk",
        client: object = None,
    ) -> Self:
        """Begin a session for a model, with the system prompt and tools of every request.

        `max_tokens` is the output limit per answer (0: a sane one); `options` are request
        parameters such as thinking, which stay the same for the whole session; `source` says
        who asks, which decides how long the provider is to keep the prompt. With a `client` (of
        Anthropic's or OpenAI's SDK, or a model) what needs a model uses it; else it is done
        without one.
        """
        _check_client(client)
        directory = directory or Path.cwd()
        log = (store or FileStore()).create(directory=directory)
        settings = settings or load_settings(directory)
        session = cls(log, settings, max_tokens=max_tokens, client=client)
        session.begin(model, frame(system, tools, options or {}), source)
        return session

    def begin(self, model: str, frame: Framed, source: str) -> None:
        """Write down who answers and the frame of every request, with what is latched in it."""
        settings = self.engine.settings
        kept = latched(frame, model, settings.cache, source)
        window = window_for(model, settings.window)
        self.engine.record(Switched(model=model, reason="opened"))
        self.engine.record(declared(kept, model, settings.clear, window))

    @classmethod
    def resume(
        cls,
        id: str = "newest",
        *,
        max_tokens: int = 0,
        store: Store | None = None,
        settings: Settings | None = None,
        client: object = None,
    ) -> Self:
        """Go on with a session; tools that a dead process left open count as interrupted."""
        _check_client(client)
        log = (store or FileStore()).open(id)
        settings = settings or load_settings(Path(log.header.directory or "."))
        session = cls(log, settings, max_tokens=max_tokens, client=client)
        session.engine.repair()
        return session

    @property
    def id(self) -> str:
        """What to resume it by."""
        return self.engine.log.header.session

    @property
    def view(self) -> View:
        """What the model sees."""
        return self.engine.view

    @property
    def clearing(self) -> Clearing:
        """The stage that clears old results."""
        return self.stages.clear

    @property
    def compaction(self) -> Compaction:
        """The stage that compacts."""
        return self.stages.compact

    def user(self, content: str | list[JsonObject] | Content) -> None:
        """Take in what the user says; it is in the log before anything is sent.

        Tool results among the blocks, as a user message of the API has them, are taken as such.
        """
        if isinstance(content, str):
            self.engine.say(content)
            return
        blocks = content_from_wire(content) if isinstance(content, list) else content
        for block in blocks:
            if isinstance(block, ToolResult):
                self.engine.take_result(block.tool_use_id, block.content, is_error=block.is_error)
        rest = tuple(block for block in blocks if not isinstance(block, ToolResult))
        if rest:
            self.engine.say(rest)

    def tool_result(
        self, id: str, output: str | list[JsonObject] | ResultContent, *, is_error: bool = False
    ) -> None:
        """Take in the result of a tool the model called."""
        self.engine.take_result(id, result_content_from_wire(output), is_error=is_error)

    def switch(self, model: str, reason: str = "the user's wish") -> Fullness:
        """Let another model answer from here on; what it gives says how full its window is then."""
        return self.engine.switch(model, reason)

    def fullness(self) -> Fullness:
        """Say how full the context is."""
        return self.engine.fullness()

    async def prepare(self) -> Request:
        """Make room where that is due, and give the arguments of the next call."""
        if self.engine.is_answered():
            raise RequestRejected("there is nothing to answer; call user() or tool_result() first")
        able = capabilities(self.engine.model)
        limit = self._max_tokens or min(
            self.engine.settings.loop.output_tokens, able.max_output_tokens
        )
        request = await self.engine.prepare(max_output_tokens=limit)
        return worded_for(request, able)

    async def settle(self, response: object) -> None:
        """Take in an answer: the SDK's object, a dict, or a stream that has a final message."""
        final = getattr(response, "get_final_message", None)
        final = final or getattr(response, "get_final_completion", None)
        if final is not None:
            response = final()
            if isinstance(response, Awaitable):
                response = await response
        self._attempt, self._has_recovered = 0, False
        self.engine.record_reply(reply_from(response))

    async def failed(self, error: BaseException) -> Literal["retry"]:
        """Wait out what passes, make room for what was too long, and answer "retry".

        What neither helps against is raised, as one of ours; so is a second overflow in a turn.
        """
        ours = error if isinstance(error, ModelError) else translate(error)
        if ours is None:
            raise error
        if isinstance(ours, PromptTooLong) and not self._has_recovered:
            self._has_recovered = True
            if await self.compaction.recover(self.engine, ours):
                return "retry"
        self._attempt += 1
        wait = wait_seconds(ours, self._attempt, RETRIES, self._dice)
        if wait is None:
            raise ours from error
        await self.sleep(wait)
        return "retry"

    async def compact(self, focus: str = "") -> Compacted:
        """Let history become a summary now; `focus` says what it is to dwell on."""
        return await self.compaction.compact(
            self.engine, CompactRequest(trigger="manual", focus=focus)
        )

    def undo(self, n: int = 0) -> str:
        """Take a change of the view back, by default the newest; say what was taken back."""
        return undo(self.engine, n)

    def redo(self, n: int = 0) -> str:
        """Bring back what was taken back, by default the newest."""
        return redo(self.engine, n)

    def _forks(self, client: object) -> Forks:
        """Let questions to the model go through the caller's client, on forks without tools."""
        directory = Path(self.engine.log.header.directory or ".")
        scratch = self.engine.log.path.with_suffix("") / "scratch"
        tool_context = ToolContext(root=directory, home=home(), scratch=scratch)
        return Forks(
            parent=self.engine,
            model=lambda: model_over(client, self.engine.model),
            toolbox=lambda: Toolbox(
                tools=out_of_reach(self.engine.frame), tool_context=tool_context
            ),
        )

    def close(self) -> None:
        """Stop what runs in the background, keep what was learnt and let the log go."""
        self.stages.close()
        self.engine.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _check_client(client: object) -> None:
    """Say at once, before anything is made, if a client cannot be used."""
    if client is not None:
        model_over(client, "")
