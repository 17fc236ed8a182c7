"""Options for opening or resuming a session, and the recovery from failed calls."""

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import TypedDict

from longhold.core.log.entries import Section
from longhold.core.log.store import Store
from longhold.core.models.clients import DialectName
from longhold.core.models.retry import Backoff
from longhold.core.models.translate import translate
from longhold.core.settings import Settings
from longhold.core.stages.compact.owner import CompactionStage
from longhold.core.turn.engine import Engine
from longhold.errors import ModelError, PromptTooLong
from longhold.session.arguments import MessageLike
from longhold.session.tool_definitions import ToolLike


def ignore(_line: str) -> None:
    pass


class SessionOptions(TypedDict, total=False):
    """Keyword arguments of `Session.open` and `Session.resume` that few programs need.

    When a session is resumed, an option that is missing or None keeps its previous value.
    """

    max_tokens: int | None
    """The output limit per answer. 0 chooses a default."""
    window: int | None
    """The model's window in tokens. 0 looks it up in the table or asks the server."""
    dialect: DialectName | None
    """The API that requests are written for. The default is the API of the client or the model."""
    history: bool | None
    """Whether to add a tool that opens content that left the view."""
    memory: bool | None
    """Whether to add memory across sessions."""
    options: Mapping[str, object] | None
    """Request parameters for the whole session. Only `open` accepts them."""
    notify: Callable[[str], None]
    """Receives a line for every change to what the model sees."""
    source: str
    """The source of the requests, which decides the cache lifetime. Only `open` accepts it."""
    clock: Callable[[], float]
    """Returns the time in seconds, for tests."""


class OpenOptions(SessionOptions, total=False):
    system: str | Iterable[str | MessageLike | Section]
    tools: Iterable[ToolLike]
    client: object
    directory: str | Path | None
    store: Store | None
    settings: Settings | None


class SharedOptions(TypedDict):
    memory: bool | None
    notify: Callable[[str], None]
    clock: Callable[[], float]


def shared_options(options: SessionOptions, *, memory: bool | None) -> SharedOptions:
    notify, clock = options.get("notify", ignore), options.get("clock", time.time)
    return {"memory": memory, "notify": notify, "clock": clock}


class Recovery:
    def __init__(self, compact: CompactionStage, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._compact = compact
        self._sleep = sleep
        self.reset()

    def reset(self) -> None:
        self._backoff = Backoff()
        self._has_recovered = False
        """Whether this turn already had an overflow. A second overflow is raised."""

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
