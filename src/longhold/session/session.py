"""A session, for programs that run their own loop or let Longhold's loop run.

    session = Session.open(model="claude-sonnet-5-5", system=SYSTEM, tools=TOOLS)
    session.user("Fix the login bug")
    request = await session.prepare()
    response = await client.messages.create(**request.kwargs)
    await session.record(response)
    session.tool_result(block.id, output)        # and prepare again

A program that keeps its own list of messages passes the whole list instead:

    request = await session.follow(messages)

Both return keyword arguments for the program's client, in its dialect. `recover` receives the
exception of a call. It returns once a retry can help, or raises a Longhold error.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self, Unpack, cast

from longhold.core.log import OpenLog
from longhold.core.log.entries import Began, Compacted, Dropped, Framed, Section, Snipped, Switched
from longhold.core.log.store import Store
from longhold.core.log.stores import default_store
from longhold.core.messages import JsonObject, Message, ToolUse, block_to_wire
from longhold.core.models.capabilities import capabilities
from longhold.core.models.clients import read_response, wrap_client
from longhold.core.models.protocol import Request
from longhold.core.policy.threshold import Fullness, window_at_cost
from longhold.core.request.lifetime import latch_lifetime
from longhold.core.request.server_side import declare_clearing
from longhold.core.settings import Settings, load_settings
from longhold.core.stages.compact.owner import CompactionHooks, manual_request
from longhold.core.stages.layers import Layers, build_layers
from longhold.core.stages.snip import drop, keep
from longhold.core.stages.spill.spill import Spill
from longhold.core.turn.background import background_of
from longhold.core.turn.engine import Engine
from longhold.core.turn.fork.asking import AskFork, mark_wanted
from longhold.core.turn.undo import redo, undo
from longhold.core.view import View
from longhold.errors import LogLocked, RequestRejected, SessionClosed, SessionExists
from longhold.session.arguments import (
    ContentLike,
    MessageLike,
    as_list,
    check_content,
    check_id,
    check_limit,
    check_model,
    check_names,
    check_options,
    check_result,
    check_sections,
)
from longhold.session.dialects import chosen_dialect
from longhold.session.options import OpenOptions, Recovery, SessionOptions, ignore, shared_options
from longhold.session.own_tools import OwnCalls, Send, answer, call_of
from longhold.session.program import (
    Program,
    Wishes,
    memory_over,
    open_log,
    renew_index,
    retraction,
    rewind_point,
    settings_of,
    transcript_of,
)
from longhold.session.tool_definitions import ToolLike, ToolRegistry, read_tools
from longhold.session.waiting import PendingRequest, close_engine, open_in_thread


def _check_client(client: object) -> None:
    if client is not None:
        wrap_client(client, "")


def _make_telemetry(engine: Engine) -> Callable[[Engine], None] | None:
    if not engine.settings.telemetry.on:
        return None
    # Imported here because telemetry is off by default.
    from longhold.core.turn.telemetry import Telemetry

    return Telemetry(engine)


class Session:
    """One conversation, persisted in a log and kept within the model's window."""

    def __init__(
        self,
        engine: Engine,
        layers: Layers,
        *,
        ask: AskFork | None = None,
        program: Program | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Wrap an engine and its layers. `open` and `resume` build both.

        `ask` asks the model on a fork, or is None. `sleep` is how `recover` waits before a retry.
        """
        self._engine = engine
        self._layers = layers
        self._ask = mark_wanted(ask) if ask is not None else None
        self._program = program or Program(engine)
        self._recovery = Recovery(layers.compact, sleep)
        self._lock = asyncio.Lock()
        """A lock that is held while a request is prepared, so that callers take turns."""
        self._store: Store | None = None
        self._pending = PendingRequest(engine)
        self._calls = OwnCalls(engine, None)

    @classmethod
    def open(
        cls,
        model: str,
        *,
        system: str | Iterable[str | MessageLike | Section] = "",
        tools: Iterable[ToolLike] = (),
        client: object = None,
        id: str | None = None,
        directory: str | Path | None = None,
        store: Store | None = None,
        settings: Settings | None = None,
        **options: Unpack[SessionOptions],
    ) -> Self:
        """Open a session for a model, with the system prompt and tools of every request.

        - `client`: an Anthropic or OpenAI client for overhead calls. It sets the default `dialect`.
        - `id`: the id for `resume`. The default is a new id.
        - `directory`: the project with its settings. The default is the current directory.
        - `options`: see `SessionOptions`.
        """
        _check_client(client)
        check_names(options)
        model = check_model(model)
        wishes = Wishes(
            dialect=chosen_dialect(options.get("dialect"), client, capabilities(model)) or "",
            max_tokens=check_limit(options.get("max_tokens", 0), "max_tokens"),
            window=check_limit(options.get("window", 0), "window") or None,
            settings=settings,
            history=bool(options.get("history")),
            memory=bool(options.get("memory")),
        )
        sections, own_tools = check_sections(system), read_tools(tools)
        extra, directory = check_options(options.get("options")), Path(directory or Path.cwd())
        settings = settings or load_settings(directory)
        name = check_id(id) if id is not None else None
        log = (store or default_store()).create(directory=directory, session=name)
        with log.close_on_failure():
            made = cls._over(
                log, settings, client=client, **shared_options(options, memory=wishes.memory)
            )
            frame = made._program.set_up(wishes, sections, own_tools, extra)
            made._begin(model, frame, options.get("source", "sdk"))
        made._store = store
        return made

    @classmethod
    def _over(
        cls,
        log: OpenLog,
        settings: Settings,
        *,
        client: object = None,
        memory: bool | None = None,
        hooks: Callable[[Engine], CompactionHooks] | None = None,
        notify: Callable[[str], None] = ignore,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> Self:
        """Build a session over an open log. `hooks` returns its compaction hooks.

        `memory` turns long-term memory on or off. None keeps the previous choice.
        """
        spill = Spill()
        engine = Engine(log, settings, on_result=spill.arrive, clock=clock)
        before = engine.view.configured
        registry = ToolRegistry(before.tools if before else {})
        calls = OwnCalls(engine, client)
        ask = calls.forks().ask if client is not None else None
        background = background_of(engine)
        wants_memory = memory if memory is not None else bool(before and before.memory)
        has_memory = wants_memory and settings.memory.on
        jobs = memory_over(engine, ask, background, notify, clock) if has_memory else None
        events = hooks(engine) if hooks is not None else CompactionHooks(tell=notify)
        if jobs is not None:
            events = replace(events, renew=partial(renew_index, engine, jobs))
        layers = build_layers(
            spill,
            ask=ask,
            hooks=events,
            background=background,
            describe=registry.describe,
            notify=notify,
            recall=jobs.stage if jobs else None,
            learn=jobs.after_turn if jobs else None,
            telemetry=_make_telemetry(engine),
            use=settings.plugins.use,
        )
        program = Program(engine, registry, client, jobs)
        made = cls(engine, layers, ask=ask, program=program, sleep=sleep)
        made._calls = calls
        return made

    def _begin(self, model: str, frame: Framed, source: str) -> None:
        settings = self._engine.settings
        kept = latch_lifetime(frame, model, settings.cache, source)
        window = window_at_cost(model, settings, kept)
        self._engine.record(Switched(model=model, reason="opened"))
        self._engine.record(declare_clearing(kept, model, settings.clear, window))

    @classmethod
    def resume(
        cls,
        id: str = "newest",
        *,
        system: str | Iterable[str | MessageLike | Section] | None = None,
        tools: Iterable[ToolLike] | None = None,
        client: object = None,
        directory: str | Path | None = None,
        store: Store | None = None,
        settings: Settings | None = None,
        **options: Unpack[SessionOptions],
    ) -> Self:
        """Resume a session as it was set up. Arguments that are given apply from here on.

        Tools that a dead process left open count as interrupted. `id` must be complete. "newest" is
        the newest session of `directory`, which is by default the current directory.
        """
        _check_client(client)
        check_names(options, without=("options", "source"))
        max_tokens, window = options.get("max_tokens"), options.get("window")
        wishes = Wishes(
            dialect=chosen_dialect(options.get("dialect"), client, capabilities("")),
            settings=settings,
            history=options.get("history"),
            memory=options.get("memory"),
            max_tokens=None if max_tokens is None else check_limit(max_tokens, "max_tokens"),
            window=None if window is None else check_limit(window, "window"),
        )
        sections = None if system is None else check_sections(system)
        own_tools = None if tools is None else read_tools(tools)
        log = open_log(store or default_store(), id, Path(directory or Path.cwd()))
        with log.close_on_failure():
            settings = settings or settings_of(log)
            made = cls._over(
                log, settings, client=client, **shared_options(options, memory=wishes.memory)
            )
            for line in made._program.take_up(wishes, sections, own_tools):
                options.get("notify", ignore)(line)
        made._store = store
        return made

    @classmethod
    def open_or_resume(cls, id: str, model: str, **options: Unpack[OpenOptions]) -> Self:
        """Resume the session with this id and switch it to this model, or open a new one."""
        try:
            return cls.open(model, id=id, **options)
        except SessionExists:
            pass  # outside the handler, so that an error of `resume` is not chained
        known = {name: one for name, one in options.items() if name not in ("options", "source")}
        session = cls.resume(id, **cast(OpenOptions, known))
        if session.model != model and model:
            session.switch(model, "the program's choice")
        return session

    @classmethod
    async def aopen(
        cls, model: str, *, id: str | None = None, **options: Unpack[OpenOptions]
    ) -> Self:
        """Like `open`, but without blocking the event loop while disks and databases work."""
        return await open_in_thread(partial(cls.open, model, id=id, **options))

    @classmethod
    async def aresume(cls, id: str = "newest", **options: Unpack[OpenOptions]) -> Self:
        """Like `resume`, but without blocking the event loop."""
        return await open_in_thread(partial(cls.resume, id, **options))

    @classmethod
    async def aopen_or_resume(
        cls, id: str, model: str, *, wait_seconds: float = 0, **options: Unpack[OpenOptions]
    ) -> Self:
        """Like `open_or_resume`, but waits up to a limit while another process has the session."""
        until, pause = time.monotonic() + wait_seconds, 0.01
        while True:
            try:
                return await open_in_thread(partial(cls.open_or_resume, id, model, **options))
            except LogLocked:
                if time.monotonic() + pause > until:
                    raise
            await asyncio.sleep(pause)
            pause = min(0.25, pause * 1.5)

    @property
    def id(self) -> str:
        """The id for `resume`."""
        return self._engine.log.header.session

    @property
    def model(self) -> str:
        return self._engine.model

    @property
    def is_answered(self) -> bool:
        """Return whether there is nothing to send, because the last message is a final answer."""
        return self._engine.is_answered()

    @property
    def open_calls(self) -> list[ToolUse]:
        """Return the tool calls without a result. `prepare` raises an error while there are any."""
        last = self.view.open_round()
        return last.missing() if last is not None else []

    def abandon(self, reason: str = "the turn was cancelled") -> list[str]:
        """Abandon a request without an answer, and calls without a result.

        The model reads that the tools may have run, and why. Return the ids of the calls.
        """
        self._check_open()
        self.forget_request()
        return self._engine.repair(reason)

    def forget_request(self) -> None:
        """Forget a request whose answer will not come, so that another can be prepared."""
        self._pending.forget()

    def transcript(self) -> list[Message]:
        """Return the whole conversation as messages, including those that left the view."""
        return transcript_of(self.view)

    def __repr__(self) -> str:
        state = "open" if self._engine.log.is_open else "closed"
        return f"<Session {self.id} of {self.model}, {len(self.view.items)} items, {state}>"

    @property
    def view(self) -> View:
        """The view: the items that the model sees."""
        return self._engine.view

    def user(self, content: ContentLike) -> None:
        """Record the user's message, and tool results among its blocks, before anything is sent."""
        self._check_open()
        self._program.take_user(check_content(content, "content"))

    def tool_result(self, id: str, output: ContentLike, *, is_error: bool = False) -> None:
        """Record the result of a tool the model called."""
        self._check_open()
        content = check_result(output, "output")
        self._program.check_call(id, "id")
        self._engine.take_result(id, content, is_error=is_error)

    def tool_began(self, id: str) -> None:
        """Mark a tool as running, so that after a crash it counts as interrupted."""
        self._check_open()
        self._engine.record(Began(tool_use_id=self._program.check_call(id, "id")))
        self._engine.log.flush()

    @asynccontextmanager
    async def arunning(self, id: str) -> AsyncIterator[None]:
        """Like `running`, but without blocking the event loop while the mark is stored."""
        self._check_open()
        self._engine.record(Began(tool_use_id=self._program.check_call(id, "id")))
        await self._engine.log.wait_for_commit()
        yield

    @contextmanager
    def running(self, id: str) -> Iterator[None]:
        """Mark a tool as running, then run it inside this context. See `tool_began`."""
        self.tool_began(id)
        yield

    def retract(self, n: int = 1) -> None:
        """Remove the n-th message from the end, or answer with results, from the view only."""
        self._check_open()
        plan = retraction(self.view, n)
        if isinstance(plan, Snipped) and self.open_calls:
            self._engine.repair("the program retracted the message")  # because an open round stays
        self._engine.record(plan)

    def switch(self, model: str, reason: str = "the user's wish") -> Fullness:
        """Let another model answer from here on. Return how full its window is."""
        self._check_open()
        return self._engine.switch(check_model(model), reason)

    def fullness(self) -> Fullness:
        return self._engine.fullness()

    def tools(self) -> list[JsonObject]:
        """Return the definitions of the tools that `run_tool` runs, in the caller's dialect."""
        dialect = self._program.dialect()
        return [dialect.tool(tool.definition()) for tool in self._program.own_tools]

    async def run_tool(self, call: object) -> str | list[JsonObject]:
        """Run a call of one of `tools()`. Pass its return value as the call's result."""
        self._check_open()
        found = await answer(self._program.own_tools, call_of(call), self._engine)
        return found if isinstance(found, str) else [block_to_wire(block) for block in found]

    async def prepare(self) -> Request:
        """Free space if necessary, and return the arguments of the next call."""
        self._check_open()
        async with self._lock:
            if self.is_answered:
                raise RequestRejected("nothing to answer; call user() or tool_result() first")
            return await self._prepare_request()

    async def follow(
        self,
        messages: Iterable[MessageLike],
        *,
        system: str | Iterable[str | MessageLike | Section] | None = None,
        tools: Iterable[ToolLike] | None = None,
        abandons: bool = False,
        send: Send | None = None,
    ) -> Request:
        """Record a program's whole list of messages. Return the arguments of the next call.

        A list that its owner cut, edited or compacted is followed from the last unchanged message.
        If `system` or `tools` is None, its previous value applies. With `abandons`, calls without
        a result in the list are abandoned instead of refused. `send` sends a request as the program
        does. Longhold uses it for a summary, which then reads the program's cache.
        """
        self._check_open()
        async with self._lock:
            self._pending.check_alone()
            await self._program.know_window()
            given = (
                messages if type(messages) is list else as_list(messages, "messages", "messages")
            )
            self._program.follow(given, system, tools)
            if abandons:
                self.abandon()
            render = self._program.render_request
            rendered = None if send is None else lambda request: send(render(request))
            async with self._calls.through(rendered):
                return await self._prepare_request()

    def count_summarised(self) -> int:
        """Count the leading messages of the followed list that a summary replaces in the view."""
        return self._program.followed.count_covered(self.view)

    async def _prepare_request(self) -> Request:
        self._pending.check_alone()
        self._program.check_answered()
        await self._program.know_window()
        limit = self._engine.output_limit()
        request = await self._engine.prepare(self._layers.stages, max_output_tokens=limit)
        self._pending.begin()
        return self._program.render_request(request)

    async def record(self, response: object) -> None:
        """Record an answer, which is an SDK object, a dict, a stream, or the events of a stream."""
        self._check_open()
        reply = await read_response(response)
        self._pending.check_expected(reply.response_id)
        self.forget_request()
        self._recovery.reset()
        self._engine.record_reply(reply, self._layers.after_turn)
        await self._engine.log.wait_for_commit()

    async def recover(self, error: BaseException) -> None:
        """Wait out a temporary error, or free space after an overflow. Then retry the call.

        Raise other errors, and a second overflow in a turn, as Longhold errors.
        """
        await self._recovery.recover(self._engine, error)

    async def compact(
        self, focus: str = "", *, start: int | None = None, end: int | None = None
    ) -> Compacted:
        """Summarise all history, from `start` on, or up to `end`, with emphasis on `focus`."""
        request = manual_request(focus, start=start, end=end)
        compact = partial(self._layers.compact.compact, self._engine, request)
        return await self._engine.retry_on_overflow(compact)

    def undo(self, n: int = 0) -> str:
        """Undo a change of the view, by default the newest. Return a description of the undone change."""
        return undo(self._engine, n)

    def redo(self, n: int = 0) -> str:
        """Re-apply an undone change, by default the newest."""
        return redo(self._engine, n)

    def drop(self, *numbers: int, why: str = "") -> Dropped:
        """Mark messages for removal with the next request that allows it. `undo` restores them."""
        return drop(self._engine, numbers, why=why)

    def undrop(self, *numbers: int) -> None:
        """Keep messages that `drop` marked and that have not left the view yet."""
        keep(self._engine, numbers)

    def pin(self, *numbers: int, off: bool = False) -> None:
        """Keep messages word for word through every compaction. With `off`, stop keeping them.

        If a message was compacted, it returns at the end of the view.
        """
        # Imported here because it loads the history tool.
        from longhold.core.turn.pin import pin, unpin

        self._check_open()
        (unpin if off else pin)(self._engine, numbers)

    def rewind(self, n: int = 0, *, store: Store | None = None) -> str:
        """Branch before the user's message n, by default the newest. Return the id of the branch.

        This session does not change. Changed files are not restored.
        """
        with (store or self._store or default_store()).branch(
            self.id, upto=rewind_point(self.view.history, n)
        ) as log:
            return log.header.session

    def _check_open(self) -> None:
        if not self._engine.log.is_open:
            raise SessionClosed(self.id)

    def close(self) -> None:
        """Stop background work, save new memories, and close the log."""
        if self._engine.log.is_open:
            try:
                self._close_layers()
            finally:
                self._engine.close()

    async def aclose(self) -> None:
        """Let memory jobs finish, up to a minute, and close. `async with` calls this. It does not
        block the event loop, even while a database is unavailable.
        """
        if not self._engine.log.is_open:
            return
        try:
            if self._program.memory is not None:
                await self._program.memory.close()
        finally:
            try:
                self._close_layers()
            finally:
                await close_engine(self._engine)

    def _close_layers(self) -> None:
        if self._program.memory is not None:
            self._program.memory.stop()
        self._layers.close(self._engine)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
