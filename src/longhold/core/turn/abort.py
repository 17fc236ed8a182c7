"""Stop waits and streams immediately when the user aborts."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from typing import TypeVar

from longhold.errors import Aborted

T = TypeVar("T")


async def run_unless_aborted(abort: asyncio.Event, work: Awaitable[T]) -> T | None:
    """Await `work`, or return None if the user aborts first."""
    doing, aborted = asyncio.ensure_future(work), asyncio.create_task(abort.wait())
    try:
        await asyncio.wait({doing, aborted}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        aborted.cancel()
        await stop(doing)
    try:
        return None if doing.cancelled() else doing.result()
    except Aborted:
        return None


async def stop(task: "asyncio.Future[T]") -> None:
    """Cancel a task and wait for its end, even if this wait is cancelled too."""
    cancelled: asyncio.CancelledError | None = None
    task.cancel()
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


async def stream_until_aborted(
    abort: asyncio.Event, events: AsyncGenerator[T, None]
) -> AsyncGenerator[T, None]:
    """Yield events until the user aborts. The generator is always closed."""
    aborted = asyncio.create_task(abort.wait())
    try:
        while True:
            coming = asyncio.ensure_future(anext(events, None))
            try:
                await asyncio.wait({coming, aborted}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                await stop(coming)
            if coming.cancelled():
                return
            event = coming.result()
            if event is None:
                return
            yield event
    finally:
        aborted.cancel()
        await events.aclose()
