"""A session: what a program holds that manages its own loop, or lets ours run.

    session = Session.open(model="claude-sonnet-5-5", system=SYSTEM, tools=TOOLS)
    session.user("Fix the login bug")
    request = await session.prepare()
    response = await client.messages.create(**request.kwargs)
    await session.settle(response)
    session.tool_result(block.id, output)        # and prepare again

A program that keeps a list of messages hands all of it in instead, and need not say what is new:

    request = await session.follow(messages)

Both return keyword arguments for the program's client, in its dialect. `failed` takes the
exception a call raised and answers "retry" once that can help, or raises ours.
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
from longhold.core.stages.snip import drop, keep
from longhold.core.stages.spill.spill import Spill
from longhold.core.stages.standard import Layers, build_layers
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
    """Raise at once, before anything is made, if a client cannot be used."""
    if client is not None:
        wrap_client(client, "")


def _forks_over(engine: Engine, client: object) -> "Forks":
    """Let questions to the model pass through the caller's client, on forks without tools."""
    # Imported here because without a client no model is asked.
    from longhold.core.turn.fork.run import Forks

    context = context_over(engine)
    return Forks(
        parent=engine,
        model=lambda: wrap_client(client, engine.model),
        toolbox=lambda: Toolbox(tools=make_placeholders(engine.frame), tool_context=context),
        refuses=partial(own_refusal, engine),
    )


class Recovery:
    """One session's failures since its last answer."""

    def __init__(self, compact: CompactionStage, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._compact = compact
        self._sleep = sleep
        self.reset()

    def reset(self) -> None:
        self._backoff = Backoff()
        self._has_recovered = False
        """An overflow was recovered from in this turn; a second one is raised."""

    async def recover(self, engine: Engine, error: BaseException) -> None:
        """Return once the call can be tried again, or raise what cannot be helped."""
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

    Any other entry is kept itself, such as the answer after which to go another way.
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
    """One conversation that is kept, measured and never lost."""

    def __init__(
        self,
        engine: Engine,
        layers: Layers,
        *,
        ask: AskFork | None = None,
        program: Program | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Hold an engine and its layers; `open` and `resume` build both.

        `ask` puts a question to the model on a fork of the conversation, None where there is no
        model to ask; `sleep` is how `failed` waits before a retry.
        """
        self.engine = engine
        self.layers = layers
        self.ask = mark_wanted(ask) if ask is not None else None
        self._program = program or Program(engine)
        self._recovery = Recovery(layers.compact, sleep)
        self._lock = asyncio.Lock()
        """Held while a request is prepared: two callers at once take turns."""

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
        """Begin a session for a model, with the system prompt and tools of every request.

        `max_tokens` is the output limit per answer (0: a sane one), `window` the model's (0: as
        the table or the server says). Requests are worded for `client`, of Anthropic's or OpenAI's
        SDK, or as `dialect` says; layers that need a model use the client, if there is one.
        `history` gives the model a tool that opens what left its view, `memory` what lasts between
        the sessions of `directory`. `options` are request parameters that stay the same for the
        whole session; `source` says who asks, which decides how long the provider keeps the prompt.
        `notify` gets a line for whatever changed what the model sees.
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
        """Build a session over a log that is open; `hooks` gives what it adds to compactions.

        It has long-term memory if `memory` says so; None leaves that as it was set up.
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
        """Record who answers and the frame of every request, with what is latched in it."""
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
        """Go on with a session as it was set up; what is given counts from here on.

        Tools that a dead process left open count as interrupted. `id` is a whole one; `newest` is
        the newest of `directory`, by default the current one, never another's.
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
        """What to resume it by."""
        return self.engine.log.header.session

    @property
    def view(self) -> View:
        """What the model sees."""
        return self.engine.view

    def user(self, content: ContentLike) -> None:
        """Record what the user says; it is in the log before anything is sent.

        Tool results among the blocks, as a user message of the API has them, are recorded as such.
        """
        self._check_open()
        self._program.take_user(check_content(content, "content"))

    def tool_result(self, id: str, output: ContentLike, *, is_error: bool = False) -> None:
        """Record the result of a tool the model called."""
        self._check_open()
        content = check_result(output, "output")
        self._program.check_call(id, "id")
        self.engine.take_result(id, content, is_error=is_error)

    def tool_began(self, id: str) -> None:
        """Record that a tool is about to run, so that after a crash it is known that it may have."""
        self._check_open()
        self.engine.record(Began(tool_use_id=self._program.check_call(id, "id")))
        self.engine.log.flush()

    @contextmanager
    def running(self, id: str) -> Iterator[None]:
        """Run a tool inside this; what a crash interrupts is then told from what never began."""
        self.tool_began(id)
        yield

    def retract(self, n: int = 1) -> None:
        """Take the n-th last message back: something said, or an answer with its results.

        It leaves the view and stays in the log.
        """
        self._check_open()
        self.engine.record(retraction(self.view, n))

    def switch(self, model: str, reason: str = "the user's wish") -> Fullness:
        """Let another model answer from here on; return how full its window is then."""
        self._check_open()
        return self.engine.switch(check_model(model), reason)

    def fullness(self) -> Fullness:
        return self.engine.fullness()

    def tools(self) -> list[JsonObject]:
        """Return the definitions of the tools that `run_tool` answers, in the caller's dialect."""
        dialect = self._program.dialect()
        return [dialect.tool(tool.definition()) for tool in self._program.own_tools]

    async def run_tool(self, call: object) -> str | list[JsonObject]:
        """Answer a call of one of `tools()`; give what it returns as the call's result."""
        self._check_open()
        found = await answer(self._program.own_tools, call_of(call), self.engine)
        return found if isinstance(found, str) else [block_to_wire(block) for block in found]

    async def prepare(self) -> Request:
        """Make room where that is due, and return the arguments of the next call."""
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
        """Take in a program's whole list of messages; return the arguments of the next call.

        What is known of the list is recognised by its content, and what is new is appended. A list
        that was cut, edited or compacted by its owner is followed from the last message that
        stands. Without `system` and `tools` those given before hold.
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
        """Record an answer: the SDK's object, a dict, a stream, or the events of one."""
        self._check_open()
        reply = await read_response(response)
        self._recovery.reset()
        self.engine.record_reply(reply, self.layers.after_turn)
        await self.engine.log.committed()

    async def failed(self, error: BaseException) -> Literal["retry"]:
        """Wait out what passes, make room for what was too long, and answer "retry".

        What neither helps against is raised, as one of ours; so is a second overflow in a turn.
        """
        await self._recovery.recover(self.engine, error)
        return "retry"

    async def compact(
        self, focus: str = "", *, start: int | None = None, end: int | None = None
    ) -> Compacted:
        """Summarise history now, all of it or from `start` or up to `end`; `focus` is dwelt on."""
        request = manual_request(focus, start=start, end=end)
        compact = partial(self.layers.compact.compact, self.engine, request)
        return await self.engine.retry_on_overflow(compact)

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
        with (store or default_store()).branch(
            self.id, upto=rewind_point(self.view.history, n)
        ) as log:
            return log.header.session

    def _check_open(self) -> None:
        if not self.engine.log.is_open:
            raise SessionClosed(self.id)

    def close(self) -> None:
        """Stop what runs in the background, save what was learnt, and close the log."""
        if not self.engine.log.is_open:
            return
        try:
            if self._program.memory is not None:
                self._program.memory.stop()
            self.layers.close(self.engine)
        finally:
            self.engine.close()

    async def aclose(self) -> None:
        """Let memory jobs finish, for `memory.drain_seconds` at most, and close; `async with` does."""
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
