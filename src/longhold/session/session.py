"""A session, for programs that run their own loop or let Longhold's loop run.

    session = Session.open(model="claude-sonnet-5-5", system=SYSTEM, tools=TOOLS)
    session.user("Fix the login bug")
    request = await session.prepare()
    response = await client.messages.create(**request.kwargs)
    await session.settle(response)
    session.tool_result(block.id, output)        # and prepare again

A program that keeps its own list of messages passes the whole list instead:

    request = await session.follow(messages)

Both return keyword arguments for the program's client, in its dialect. `failed` takes the exception
of a call and returns "retry" once a retry can help, or raises a Longhold error.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from longhold.core.log import OpenLog
from longhold.core.log.entries import (
    AnyEntry,
    Began,
    Compacted,
    Dropped,
    Framed,
    Said,
    Section,
    Switched,
)
from longhold.core.log.store import Store
from longhold.core.log.stores import default_store
from longhold.core.messages import JsonObject, block_to_wire
from longhold.core.models.capabilities import capabilities
from longhold.core.models.clients import DialectName, read_response, wrap_client
from longhold.core.models.protocol import Request
from longhold.core.models.retry import Backoff
from longhold.core.models.translate import translate
from longhold.core.policy.advice import window_at_cost
from longhold.core.request.lifetime import latch_lifetime
from longhold.core.request.server_side import declare_clearing
from longhold.core.settings import Settings, load_settings
from longhold.core.stages.compact.owner import CompactionHooks, CompactionStage, manual_request
from longhold.core.stages.layers import Layers, build_layers
from longhold.core.stages.snip import drop, keep
from longhold.core.stages.spill.spill import Spill
from longhold.core.turn.answering import own_refusal
from longhold.core.turn.background import background_of
from longhold.core.turn.engine import Engine, Fullness
from longhold.core.turn.fork import AskFork, make_placeholders, mark_wanted
from longhold.core.turn.round import Toolbox
from longhold.core.turn.undo import redo, undo
from longhold.core.view import View
from longhold.errors import ModelError, NotInHistory, PromptTooLong, RequestRejected, SessionClosed
from longhold.session.arguments import (
    ContentLike,
    MessageLike,
    as_list,
    check_content,
    check_id,
    check_limit,
    check_model,
    check_options,
    check_result,
    check_sections,
)
from longhold.session.dialects import chosen_dialect
from longhold.session.own_tools import answer, call_of, context_over
from longhold.session.program import Program, Wishes, memory_over, open_log, retraction, settings_of
from longhold.session.tool_definitions import ToolLike, ToolRegistry, read_tools

if TYPE_CHECKING:
    from longhold.core.turn.fork.run import Forks


def _check_client(client: object) -> None:
    """Raise before anything is created if a client cannot be used."""
    if client is not None:
        wrap_client(client, "")


def _forks_over(engine: Engine, client: object) -> "Forks":
    """Run model calls through the caller's client, on forks without tools."""
    # Imported here because without a client no model is called.
    from longhold.core.turn.fork.run import Forks

    context = context_over(engine)
    return Forks(
        parent=engine,
        model=lambda: wrap_client(client, engine.model),
        toolbox=lambda: Toolbox(tools=make_placeholders(engine.frame), tool_context=context),
        refuses=partial(own_refusal, engine),
    )


class Recovery:
    def __init__(self, compact: CompactionStage, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._compact = compact
        self._sleep = sleep
        self.reset()

    def reset(self) -> None:
        self._backoff = Backoff()
        self._has_recovered = False
        """An overflow was recovered from in this turn. A second one is raised."""

    async def recover(self, engine: Engine, error: BaseException) -> None:
        """Return once the call can be retried, or raise if nothing helps."""
        ours = error if isinstance(error, ModelError) else translate(error)
        if ours is None:
            raise error
        if isinstance(ours, PromptTooLong) and not self._has_recovered:
            self._has_recovered = True
            if await self._compact.recover(engine, ours):
                return
        wait = self._backoff.next_seconds(ours)
        if wait is None:
            raise ours from error
        await self._sleep(wait)


def _first_frame(frame: Framed, model: str, source: str, settings: Settings) -> Framed:
    kept = latch_lifetime(frame, model, settings.cache, source)
    window = window_at_cost(model, settings, kept)
    return declare_clearing(kept, model, settings.clear, window)


def rewind_point(history: Sequence[AnyEntry], n: int = 0) -> int:
    """Return the last entry to keep: before the user's message n, by default the newest.

    Any other entry n is itself kept, for example an answer from which to branch.
    """
    asked = [entry.n for entry in history if isinstance(entry, Said) and not entry.hidden]
    if not n:
        if not asked:
            raise NotInHistory("nothing was said yet; there is nothing to go back to")
        return asked[-1] - 1
    if not any(entry.n == n for entry in history):
        raise NotInHistory(f"there is no entry #{n}; `longhold explain` lists them")
    return n - 1 if n in asked else n


def _ignore(_line: str) -> None:
    pass


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
        """Wrap an engine and its layers; `open` and `resume` build both.

        `ask` asks the model on a fork, or is None. `sleep` is how `failed` waits before a retry.
        """
        self.engine = engine
        self.layers = layers
        self.ask = mark_wanted(ask) if ask is not None else None
        self._program = program or Program(engine)
        self._recovery = Recovery(layers.compact, sleep)
        self._lock = asyncio.Lock()
        """Held while a request is prepared, so that concurrent callers take turns."""

    @classmethod
    def open(
        cls,
        *,
        model: str,
        system: str | Iterable[str | MessageLike | Section] = "",
        tools: Iterable[ToolLike] = (),
        max_tokens: int = 0,
        window: int = 0,
        dialect: DialectName | None = None,
        history: bool = False,
        memory: bool = False,
        options: Mapping[str, object] | None = None,
        id: str | None = None,
        directory: str | Path | None = None,
        store: Store | None = None,
        settings: Settings | None = None,
        source: str = "sdk",
        client: object = None,
        notify: Callable[[str], None] = _ignore,
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Open a session for a model, with the system prompt and tools of every request.

        - `max_tokens`: the output limit per answer; 0 chooses a default.
        - `window`: the model's window; 0 uses the table or asks the server.
        - `client`: an Anthropic or OpenAI client, which layers call; sets the default `dialect`.
        - `history` and `memory`: tools for content that left the view, and across sessions.
        - `options`: request parameters for the whole session.
        - `source`: who is asking, which decides how long the provider caches the prompt.
        - `notify`: receives a line for every change to what the model sees.
        """
        _check_client(client)
        model = check_model(model)
        wishes = Wishes(
            dialect=chosen_dialect(dialect, client, capabilities(model)) or "",
            max_tokens=check_limit(max_tokens, "max_tokens"),
            window=check_limit(window, "window") or None,
            settings=settings,
            history=bool(history),
            memory=bool(memory),
        )
        sections, own_tools = check_sections(system), read_tools(tools)
        extra, directory = check_options(options), Path(directory or Path.cwd())
        settings = settings or load_settings(directory)
        name = check_id(id) if id is not None else None
        log = (store or default_store()).create(directory=directory, session=name)
        with log.close_on_failure():
            made = cls.over(log, settings, client=client, memory=memory, notify=notify, clock=clock)
            made.begin(model, made._program.set_up(wishes, sections, own_tools, extra), source)
        return made

    @classmethod
    def over(
        cls,
        log: OpenLog,
        settings: Settings,
        *,
        client: object = None,
        memory: bool | None = None,
        hooks: Callable[[Engine], CompactionHooks] | None = None,
        notify: Callable[[str], None] = _ignore,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> Self:
        """Build a session over an open log. `hooks` returns its compaction hooks.

        `memory` turns long-term memory on or off; None keeps the previous choice.
        """
        spill = Spill()
        engine = Engine(log, settings, on_result=spill.arrive, clock=clock)
        before = engine.view.configured
        registry = ToolRegistry(before.tools if before else {})
        ask = _forks_over(engine, client).ask if client is not None else None
        background = background_of(engine)
        wants_memory = memory if memory is not None else bool(before and before.memory)
        has_memory = wants_memory and settings.memory.on
        jobs = memory_over(engine, ask, background, notify, clock) if has_memory else None
        layers = build_layers(
            spill,
            ask=ask,
            hooks=hooks(engine) if hooks is not None else None,
            background=background,
            describe=registry.describe,
            notify=notify,
            recall=jobs.stage if jobs else None,
            learn=jobs.after_turn if jobs else None,
            telemetry=_make_telemetry(engine),
        )
        program = Program(engine, registry, client, jobs)
        return cls(engine, layers, ask=ask, program=program, sleep=sleep)

    def begin(self, model: str, frame: Framed, source: str) -> None:
        """Record the model and the frame, with its cache lifetime and clearing fixed."""
        self.engine.record(Switched(model=model, reason="opened"))
        self.engine.record(_first_frame(frame, model, source, self.engine.settings))

    @classmethod
    def resume(
        cls,
        id: str = "newest",
        *,
        system: str | Iterable[str | MessageLike | Section] | None = None,
        tools: Iterable[ToolLike] | None = None,
        max_tokens: int | None = None,
        window: int | None = None,
        dialect: DialectName | None = None,
        history: bool | None = None,
        memory: bool | None = None,
        directory: str | Path | None = None,
        store: Store | None = None,
        settings: Settings | None = None,
        client: object = None,
        notify: Callable[[str], None] = _ignore,
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Resume a session as it was set up. Arguments that are given apply from here on.

        Tools that a dead process left open count as interrupted. `id` must be complete; "newest" is
        the newest session of `directory`, by default the current directory.
        """
        _check_client(client)
        wishes = Wishes(
            dialect=chosen_dialect(dialect, client, capabilities("")),
            max_tokens=None if max_tokens is None else check_limit(max_tokens, "max_tokens"),
            window=None if window is None else check_limit(window, "window"),
            settings=settings,
            history=history,
            memory=memory,
        )
        sections = None if system is None else check_sections(system)
        own_tools = None if tools is None else read_tools(tools)
        log = open_log(store or default_store(), id, Path(directory or Path.cwd()))
        with log.close_on_failure():
            settings = settings or settings_of(log)
            made = cls.over(log, settings, client=client, memory=memory, notify=notify, clock=clock)
            for line in made._program.take_up(wishes, sections, own_tools):
                notify(line)
        return made

    @property
    def id(self) -> str:
        """The id for `resume`."""
        return self.engine.log.header.session

    @property
    def view(self) -> View:
        """What the model sees."""
        return self.engine.view

    def user(self, content: ContentLike) -> None:
        """Record the user's message, and tool results among its blocks, before anything is sent."""
        self._check_open()
        self._program.take_user(check_content(content, "content"))

    def tool_result(self, id: str, output: ContentLike, *, is_error: bool = False) -> None:
        """Record the result of a tool the model called."""
        self._check_open()
        content = check_result(output, "output")
        self._program.check_call(id, "id")
        self.engine.take_result(id, content, is_error=is_error)

    def tool_began(self, id: str) -> None:
        """Mark a tool as running, so that after a crash it counts as interrupted."""
        self._check_open()
        self.engine.record(Began(tool_use_id=self._program.check_call(id, "id")))
        self.engine.log.flush()

    @contextmanager
    def running(self, id: str) -> Iterator[None]:
        """Mark a tool as running, then run it inside this context. See `tool_began`."""
        self.tool_began(id)
        yield

    def retract(self, n: int = 1) -> None:
        """Remove the n-th last message, or answer with results, from the view. The log keeps it."""
        self._check_open()
        self.engine.record(retraction(self.view, n))

    def switch(self, model: str, reason: str = "the user's wish") -> Fullness:
        """Let another model answer from here on. Return how full its window is."""
        self._check_open()
        return self.engine.switch(check_model(model), reason)

    def fullness(self) -> Fullness:
        return self.engine.fullness()

    def tools(self) -> list[JsonObject]:
        """Return the definitions of the tools that `run_tool` runs, in the caller's dialect."""
        dialect = self._program.dialect()
        return [dialect.tool(tool.definition()) for tool in self._program.own_tools]

    async def run_tool(self, call: object) -> str | list[JsonObject]:
        """Run a call of one of `tools()`. Pass its return value as the call's result."""
        self._check_open()
        found = await answer(self._program.own_tools, call_of(call), self.engine)
        return found if isinstance(found, str) else [block_to_wire(block) for block in found]

    async def prepare(self) -> Request:
        """Free space if that is due, and return the arguments of the next call."""
        self._check_open()
        async with self._lock:
            if self.engine.is_answered():
                raise RequestRejected("nothing to answer; call user() or tool_result() first")
            return await self._prepare_request()

    async def follow(
        self,
        messages: Iterable[MessageLike],
        *,
        system: str | Iterable[str | MessageLike | Section] | None = None,
        tools: Iterable[ToolLike] | None = None,
    ) -> Request:
        """Record a program's whole list of messages. Return the arguments of the next call.

        A list that its owner cut, edited or compacted is followed from the last unchanged message.
        `system` and `tools` keep their previous values if not given.
        """
        self._check_open()
        async with self._lock:
            await self._program.know_window()
            given = (
                messages if type(messages) is list else as_list(messages, "messages", "messages")
            )
            self._program.follow(given, system, tools)
            return await self._prepare_request()

    async def _prepare_request(self) -> Request:
        self._program.check_answered()
        await self._program.know_window()
        limit = self.engine.output_limit()
        request = await self.engine.prepare(self.layers.stages, max_output_tokens=limit)
        return self._program.render_request(request)

    async def settle(self, response: object) -> None:
        """Record an answer: an SDK object, a dict, a stream, or the events of a stream."""
        self._check_open()
        reply = await read_response(response)
        self._recovery.reset()
        self.engine.record_reply(reply, self.layers.after_turn)
        await self.engine.log.committed()

    async def failed(self, error: BaseException) -> Literal["retry"]:
        """Wait out a temporary error, or free space after an overflow, and return "retry".

        Raise other errors, and a second overflow in a turn, as Longhold errors.
        """
        await self._recovery.recover(self.engine, error)
        return "retry"

    async def compact(
        self, focus: str = "", *, start: int | None = None, end: int | None = None
    ) -> Compacted:
        """Summarise history now: all, from `start` on, or up to `end`, with emphasis on `focus`."""
        request = manual_request(focus, start=start, end=end)
        compact = partial(self.layers.compact.compact, self.engine, request)
        return await self.engine.retry_on_overflow(compact)

    def undo(self, n: int = 0) -> str:
        """Undo a change of the view, by default the newest. Return what was undone."""
        return undo(self.engine, n)

    def redo(self, n: int = 0) -> str:
        """Re-apply an undone change, by default the newest."""
        return redo(self.engine, n)

    def drop(self, *numbers: int, why: str = "") -> Dropped:
        """Mark messages for removal with the next request that allows it. `undo` restores them."""
        return drop(self.engine, numbers, why=why)

    def keep(self, *numbers: int) -> None:
        """Remove the marks of messages that have not left the view yet."""
        keep(self.engine, numbers)

    def rewind(self, n: int = 0, *, store: Store | None = None) -> str:
        """Branch before the user's message n, by default the newest. Return the id of the branch.

        This session does not change. Changed files are not restored.
        """
        with (store or default_store()).branch(
            self.id, upto=rewind_point(self.view.history, n)
        ) as log:
            return log.header.session

    def _check_open(self) -> None:
        if not self.engine.log.is_open:
            raise SessionClosed(self.id)

    def close(self) -> None:
        """Stop background work, save what was learnt, and close the log."""
        if not self.engine.log.is_open:
            return
        try:
            if self._program.memory is not None:
                self._program.memory.stop()
            self.layers.close(self.engine)
        finally:
            self.engine.close()

    async def aclose(self) -> None:
        """Let memory jobs finish, up to `memory.drain_seconds`, and close. `async with` does it."""
        try:
            if self._program.memory is not None and self.engine.log.is_open:
                await self._program.memory.close()
        finally:
            self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
