"""The sessions of an adapter, one per conversation. A session is opened when a call needs it.

Only one call at a time uses a session. Other calls of its conversation wait, even in other
processes. Frameworks never report the end of a conversation, so `hold` decides when a log is
released.
"""

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias, TypeVar, cast

from longhold.core.messages import JsonObject
from longhold.core.models.clients import DialectName
from longhold.core.tools.history.history import History
from longhold.core.tools.history.tool import history_tool
from longhold.core.tools.protocol import Tool
from longhold.errors import InvalidArgument, SessionBusy
from longhold.session.options import OpenOptions
from longhold.session.session import Session
from longhold.session.tool_definitions import DeclaredTool, Kind, ToolLike

OPEN_SESSIONS = 100  # each open session has a file descriptor and holds its view in memory
WAIT_SECONDS = 60.0
LOOK_AGAIN_SECONDS = 0.01

Hold: TypeAlias = Literal["call", "turn", "process"]
_Result = TypeVar("_Result")


class AdapterOptions(OpenOptions, total=False):
    """The options of every adapter, in addition to those of `Session.open`. Without a `client`,
    Longhold writes notes and summaries from the log, without a model."""

    hold: Hold
    """When to release a log for other processes: after each call, after each turn (the default), or
    when the adapter is closed."""
    wait_seconds: float
    """How long a call waits for a conversation that is in use. The default is one minute."""
    kinds: Mapping[str, Kind]
    """The kinds of tools by name, which decide whether old results are cleared."""


@dataclass(slots=True, eq=False)
class _Place:
    owner: object = None
    session: Session | None = None
    loop: asyncio.AbstractEventLoop | None = None


class Sessions:
    def __init__(
        self, dialect: DialectName, id: str | None, options: AdapterOptions, open_sessions: int = 1
    ) -> None:
        """`id` is for callers without a conversation. `open_sessions` idle sessions stay open."""
        rest = dict(options)
        self._hold = cast(Hold, rest.pop("hold", "turn"))
        if self._hold not in ("call", "turn", "process"):
            raise InvalidArgument(
                "hold",
                f"{self._hold!r} is not a value for hold; choose call, turn or process",
            )
        self._wait = cast(float, rest.pop("wait_seconds", WAIT_SECONDS))
        self._kinds = cast(Mapping[str, Kind], rest.pop("kinds", {}))
        self._dialect, self._default, self._most = dialect, id, max(1, open_sessions)
        self._options = cast(OpenOptions, rest)
        self._places: OrderedDict[str, _Place] = OrderedDict()
        self._guard = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def own_tools(self) -> list[JsonObject]:
        """Return the definitions of the enabled tools that sessions run themselves."""
        made: list[Tool] = []
        if self._options.get("history"):
            made.append(history_tool(History(lambda: ())))
        if self._options.get("memory"):
            # Imported here because most sessions have no memory.
            from longhold.core.memory.memory_tool import memory_tool

            made.append(memory_tool(cast(Any, None)))  # only its definition is used
        return [tool.definition() for tool in made]

    async def run_own_tool(self, id: str | None, name: str, given: JsonObject) -> Any:
        async with self.use(id) as session:
            return await session.run_tool({"id": "", "name": name, "input": given})

    def declare(self, tool: JsonObject) -> ToolLike:
        name = tool.get("name") or tool.get("function", {}).get("name")
        return DeclaredTool(tool, self._kinds[name]) if name in self._kinds else tool

    @asynccontextmanager
    async def use(self, id: str | None, model: str = "") -> AsyncIterator[Session]:
        owner = object()
        session = await self.enter(id, owner, model)
        is_over = True
        try:
            yield session
            is_over = session.is_answered
        finally:
            await self.leave(id, owner, is_over=is_over)

    async def enter(self, id: str | None, owner: object, model: str = "") -> Session:
        """Wait until no other call uses a conversation, and open it for this owner."""
        name, until = self._name(id), time.monotonic() + self._wait
        while (place := self._claim(name, owner)) is None:
            if time.monotonic() > until:
                raise SessionBusy(
                    f"{name} has been in use for {self._wait:g} seconds by another call"
                )
            await asyncio.sleep(LOOK_AGAIN_SECONDS)
        try:
            if place.session is not None and place.loop is not asyncio.get_running_loop():
                await self._aclose(place)  # because the session's jobs belong to another loop
            session = place.session
            if session is None:
                session = await self._open(name, model, max(0.0, until - time.monotonic()))
                if not self._give(name, place, owner, session):
                    await session.aclose()
                    raise SessionBusy(f"{name} was released while this run waited for it")
        except BaseException:
            await self.leave(id, owner, is_over=True)
            raise
        session.forget_request()
        if model and session.model != model:
            session.switch(model, "the program's choice")
        return session

    async def leave(self, id: str | None, owner: object, *, is_over: bool) -> None:
        """Let others use a conversation. Its log is released even if the caller is cancelled."""
        with self._guard:
            place = self._places.get(self._name(id))
            if place is None or place.owner != owner:
                return
            place.owner = object()  # because a run that still enters must not get this session
        leaving = self._leave(self._name(id), place, is_over=is_over)
        await asyncio.shield(asyncio.ensure_future(leaving))

    async def _leave(self, name: str, place: _Place, *, is_over: bool) -> None:
        if self._hold == "call" or (self._hold == "turn" and is_over):
            await self._aclose(place)
        with self._guard:
            place.owner = None
            if self._places.get(name) is not place:
                return  # because the adapter was closed meanwhile
            self._places.move_to_end(name)
            if place.session is None:
                del self._places[name]
            idle = [key for key, one in self._places.items() if one.owner is None]
            surplus = idle[: max(0, len(self._places) - self._most)]
            closing = [self._places.pop(key) for key in surplus]
        for one in closing:
            await self._aclose(one)

    async def release(self, id: str | None, owner: object = None) -> None:
        """Release a conversation whose turn ended in any way, unless another call uses it."""
        owner = owner or object()
        if self._name(id) in self._places and self._claim(self._name(id), owner) is not None:
            await self.leave(id, owner, is_over=True)

    def current(self, id: str | None, owner: object) -> Session:
        place = self._places.get(self._name(id))
        if place is None or place.owner != owner or place.session is None:
            raise SessionBusy(f"{self._name(id)} is not in use by this run")
        return place.session

    def run(self, work: Coroutine[object, object, _Result]) -> _Result:
        """Run a coroutine for a synchronous caller, on one loop for all of its threads."""
        with self._guard:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                serve = partial(_run_until_stopped, self._loop)
                threading.Thread(target=serve, name="longhold-adapter", daemon=True).start()
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        for name in list(self._places):
            self._close(self._places.pop(name))
        with self._guard:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)

    def _name(self, id: str | None) -> str:
        name = id or self._default
        if not name:
            raise InvalidArgument(
                "id",
                "the call names no conversation, and one session for all of them would mix users; "
                'pass {"configurable": {"thread_id": ...}} with the call, or an id to the adapter',
            )
        return name

    def _claim(self, name: str, owner: object) -> _Place | None:
        with self._guard:
            place = self._places.setdefault(name, _Place())
            if place.owner is not None and place.owner != owner:
                return None
            place.owner = owner
            return place

    def _give(self, name: str, place: _Place, owner: object, session: Session) -> bool:
        with self._guard:
            if self._places.get(name) is not place or place.owner != owner:
                return False
            place.session, place.loop = session, asyncio.get_running_loop()
            return True

    async def _open(self, name: str, model: str, wait_seconds: float) -> Session:
        given: OpenOptions = {"dialect": self._dialect, **self._options}
        return await Session.aopen_or_resume(name, model, wait_seconds=wait_seconds, **given)

    async def _aclose(self, place: _Place) -> None:
        if place.session is None or place.loop is not asyncio.get_running_loop():
            await asyncio.to_thread(self._close, place)
            return
        session, place.session, place.loop = place.session, None, None
        await session.aclose()

    def _close(self, place: _Place) -> None:
        session, place.session = place.session, None
        loop, place.loop = place.loop, None
        if session is None:
            return
        if loop is not None and loop is self._loop:
            with suppress(RuntimeError):
                asyncio.run_coroutine_threadsafe(session.aclose(), loop).result()
                return
        session.close()


def _run_until_stopped(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()
