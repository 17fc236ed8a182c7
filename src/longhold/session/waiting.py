"""Opens and closes sessions in threads, and tracks the pending request. Opening and closing use
disks and databases, which must not block other tasks of an event loop. A request belongs to one
task until the log has its answer.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeVar

from longhold.core.log.entries import Replied
from longhold.core.turn.engine import Engine
from longhold.errors import SessionBusy


class _Closable(Protocol):
    def close(self) -> None: ...


_Opened = TypeVar("_Opened", bound=_Closable)


async def open_in_thread(open: Callable[[], _Opened]) -> _Opened:
    """Open a session in a thread. If the caller is cancelled, the session is closed again."""
    work = asyncio.ensure_future(asyncio.to_thread(open))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        work.add_done_callback(_close_unwanted)
        raise


def _close_unwanted(work: "asyncio.Future[_Opened]") -> None:
    if not work.cancelled() and work.exception() is None:
        work.result().close()


async def close_engine(engine: Engine) -> None:
    """Close an engine, in a thread if its store is remote. Cancelling does not stop the closing."""
    if engine.log.has_file:
        engine.close()
    else:
        await asyncio.shield(asyncio.ensure_future(asyncio.to_thread(engine.close)))


class PendingRequest:
    """The last request of a session. It belongs to one task until the log has the answer."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._asker: asyncio.Task[object] | None = None
        self._asked = 0  # the entry of the request, or 0 if there is none

    def begin(self) -> None:
        asked = self._engine.view.asked
        self._asked, self._asker = asked.n if asked else 0, asyncio.current_task()

    def forget(self) -> None:
        self._asked, self._asker = 0, None

    @property
    def is_out(self) -> bool:
        """Return whether the log has no answer to the request yet."""
        if not self._asked:
            return False
        history = self._engine.view.history
        place = len(history)
        while place and history[place - 1].n > self._asked:
            place -= 1
            entry = history[place]
            if isinstance(entry, Replied) and entry.stop_reason:
                return False
        return True

    def check_alone(self) -> None:
        other = self._asker
        if other is None or other is asyncio.current_task() or other.done() or not self.is_out:
            return
        raise SessionBusy(
            f"another task has a request of {self._engine.log.header.session} that is not answered "
            "yet; wait for it, or call abandon() if its answer will not come"
        )

    def check_expected(self, response_id: str) -> None:
        """Raise if an answer belongs to no request. The last answer may be repeated."""
        is_known = response_id and response_id == self._engine.view.response_id
        if not self.is_out and not is_known and self._engine.ends_with_answer():
            raise SessionBusy(
                f"{self._engine.log.header.session} has no pending request; "
                "the session did not request this answer"
            )
