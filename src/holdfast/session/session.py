"""A session: what a program holds that manages its own loop, or lets ours run.

    session = Session.open(model="claude-sonnet-5-5", system=SYSTEM, tools=TOOLS)
    session.user("Fix the login bug")
    request = await session.prepare()
    response = await client.messages.create(**request.kwargs)
    await session.settle(response)
    session.tool_result(block.id, output)        # and prepare again

`prepare` returns keyword arguments for the client of the model's own provider. `failed` takes the
exception a call raised and answers "retry" once that can help, or raises ours.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, Self

from holdfast.errors import ModelError, PromptTooLong, RequestRejected
from holdfast.log import Log
from holdfast.log.entries import Compacted, Dropped, Framed, Section, Switched
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
from holdfast.models.clients import model_over, reply_from
from holdfast.models.protocol import Request
from holdfast.models.retry import RETRIES, wait_seconds
from holdfast.models.translate import translate
from holdfast.request.frame import frame
from holdfast.request.lifetime import latched
from holdfast.request.server_side import declared
from holdfast.session.rewind import rewind_point
from holdfast.settings import Settings, home, load_settings
from holdfast.stages.compact.hooks import CompactionHooks, CompactRequest
from holdfast.stages.snip import drop, keep
from holdfast.stages.spill.spill import Spill
from holdfast.stages.standard import Layers, build_layers
from holdfast.tools.context import ToolContext
from holdfast.turn.engine import Engine, Fullness
from holdfast.turn.fork import AskFork, Forks, out_of_reach
from holdfast.turn.round import Toolbox
from holdfast.turn.undo import redo, undo
from holdfast.view import View
from holdfast.view.window import window_for


def _ignore(_line: str) -> None:
    pass


class Session:
    """One conversation that is kept, measured and never lost."""

    def __init__(
        self,
        engine: Engine,
        layers: Layers,
        *,
        ask: AskFork | None = None,
        max_tokens: int = 0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Hold an engine and its layers; `open` and `resume` build both.

        `ask` puts a question to the model on a fork of the conversation, None where there is no
        model to ask; `sleep` is how `failed` waits before a retry.
        """
        self.engine = engine
        self.layers = layers
        self.ask = ask
        self._max_tokens = max_tokens
        self._sleep = sleep
        self._attempt = 0
        self._waited = 0.0
        self._has_recovered = False
        """An overflow was recovered from in this turn; a second one is raised."""
        self._dice = random.Random()

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
        notify: Callable[[str], None] = _ignore,
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Begin a session for a model, with the system prompt and tools of every request.

        `max_tokens` is the output limit per answer (0: a sane one); `options` are request
        parameters such as thinking, which stay the same for the whole session; `source` says
        who asks, which decides how long the provider keeps the prompt. Layers that need a model
        use `client` (of Anthropic's or OpenAI's SDK, or a model); without one they do without.
        `notify` gets a line for whatever changed what the model sees; `clock` tells what the
        provider's cache still holds.
        """
        _check_client(client)
        directory = directory or Path.cwd()
        settings = settings or load_settings(directory)
        log = (store or FileStore()).create(directory=directory)
        session = cls.over(
            log, settings, max_tokens=max_tokens, client=client, notify=notify, clock=clock
        )
        session.begin(model, frame(system, tools, options or {}), source)
        return session

    @classmethod
    def over(
        cls,
        log: Log,
        settings: Settings,
        *,
        max_tokens: int = 0,
        client: object = None,
        hooks: Callable[[Engine], CompactionHooks] | None = None,
        notify: Callable[[str], None] = _ignore,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> Self:
        """Build a session over a log that is open; `hooks` gives what it adds to compactions."""
        spill = Spill()
        engine = Engine(log, settings, on_result=spill.arrive, clock=clock)
        ask = _forks(engine, client).ask if client is not None else None
        layers = build_layers(
            spill, ask=ask, hooks=hooks(engine) if hooks is not None else None, notify=notify
        )
        return cls(engine, layers, ask=ask, max_tokens=max_tokens, sleep=sleep)

    def begin(self, model: str, frame: Framed, source: str) -> None:
        """Record who answers and the frame of every request, with what is latched in it."""
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
        notify: Callable[[str], None] = _ignore,
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Go on with a session; tools that a dead process left open count as interrupted."""
        _check_client(client)
        log = (store or FileStore()).open(id)
        with log.closed_on_failure():
            settings = settings or load_settings(Path(log.header.directory or "."))
            session = cls.over(
                log, settings, max_tokens=max_tokens, client=client, notify=notify, clock=clock
            )
            for line in session.engine.resume():
                notify(line)
        return session

    @property
    def id(self) -> str:
        """What to resume it by."""
        return self.engine.log.header.session

    @property
    def view(self) -> View:
        """What the model sees."""
        return self.engine.view

    def user(self, content: str | list[JsonObject] | Content) -> None:
        """Record what the user says; it is in the log before anything is sent.

        Tool results among the blocks, as a user message of the API has them, are recorded as such.
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
        """Record the result of a tool the model called."""
        self.engine.take_result(id, result_content_from_wire(output), is_error=is_error)

    def switch(self, model: str, reason: str = "the user's wish") -> Fullness:
        """Let another model answer from here on; return how full its window is then."""
        return self.engine.switch(model, reason)

    def fullness(self) -> Fullness:
        return self.engine.fullness()

    async def prepare(self) -> Request:
        """Make room where that is due, and return the arguments of the next call."""
        if self.engine.is_answered():
            raise RequestRejected("there is nothing to answer; call user() or tool_result() first")
        limit = self._max_tokens or self.engine.output_limit()
        request = await self.engine.prepare(self.layers.stages, max_output_tokens=limit)
        return worded_for(request, capabilities(self.engine.model))

    async def settle(self, response: object) -> None:
        """Record an answer: the SDK's object, a dict, or a stream that has a final message."""
        final = getattr(response, "get_final_message", None)
        final = final or getattr(response, "get_final_completion", None)
        if final is not None:
            response = final()
            if isinstance(response, Awaitable):
                response = await response
        self._attempt, self._waited, self._has_recovered = 0, 0.0, False
        self.engine.record_reply(reply_from(response), self.layers.after_turn)

    async def failed(self, error: BaseException) -> Literal["retry"]:
        """Wait out what passes, make room for what was too long, and answer "retry".

        What neither helps against is raised, as one of ours; so is a second overflow in a turn.
        """
        ours = error if isinstance(error, ModelError) else translate(error)
        if ours is None:
            raise error
        if isinstance(ours, PromptTooLong) and not self._has_recovered:
            self._has_recovered = True
            if await self.layers.compact.recover(self.engine, ours):
                return "retry"
        self._attempt += 1
        wait = wait_seconds(ours, self._attempt, RETRIES, self._dice, self._waited)
        if wait is None:
            raise ours from error
        self._waited += wait
        await self._sleep(wait)
        return "retry"

    async def compact(self, focus: str = "") -> Compacted:
        """Summarise history now; `focus` says what the summary is to dwell on."""
        request = CompactRequest(trigger="manual", focus=focus)
        compact = partial(self.layers.compact.compact, self.engine, request)
        return await self.engine.doubting(compact)

    def undo(self, n: int = 0) -> str:
        """Undo a change of the view, by default the newest; return what was undone."""
        return undo(self.engine, n)

    def redo(self, n: int = 0) -> str:
        """Re-apply an undone change, by default the newest."""
        return redo(self.engine, n)

    def drop(self, *numbers: int, why: str = "") -> Dropped:
        """Mark messages to leave the view with the next request that allows it; undo brings them back."""
        return drop(self.engine, numbers, why=why)

    def keep(self, *numbers: int) -> None:
        """Remove the marks of messages that have not left the view yet."""
        keep(self.engine, numbers)

    def rewind(self, n: int = 0, *, store: Store | None = None) -> str:
        """Branch to before the user's message n, by default the newest; return the branch to resume.

        This session stays as it is, and so do the files that were changed since.
        """
        with (store or FileStore()).branch(self.id, upto=rewind_point(self.view.history, n)) as log:
            return log.header.session

    def close(self) -> None:
        """Stop what runs in the background, save what was learnt, and close the log."""
        try:
            self.layers.close(self.engine)
        finally:
            self.engine.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _forks(engine: Engine, client: object) -> Forks:
    """Let questions to the model pass through the caller's client, on forks without tools."""
    context = ToolContext(
        root=Path(engine.log.header.directory or "."),
        home=home(),
        scratch=engine.directory / "scratch",
    )
    return Forks(
        parent=engine,
        model=lambda: model_over(client, engine.model),
        toolbox=lambda: Toolbox(tools=out_of_reach(engine.frame), tool_context=context),
    )


def _check_client(client: object) -> None:
    """Raise at once, before anything is made, if a client cannot be used."""
    if client is not None:
        model_over(client, "")
