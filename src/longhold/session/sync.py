"""One bridge for programs that have no event loop: `sync` waits for what is awaited elsewhere.

    request = sync(session.prepare())
    for event in sync(agent.run("Fix the login bug")): ...

There is one interface, and it is asynchronous; this runs any of it to its end. Each thread has a
loop of its own, which stands still between calls: nothing runs behind a program's back. Where a
loop is running already, as in a notebook, a second thread does the work and the caller waits, its
own loop with it. Ctrl-C cancels what is waited for.
"""

import asyncio
import atexit
import inspect
import threading
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar, overload

_Result = TypeVar("_Result")


class _Bridge:
    """One thread's loop, and a second thread for when that one already runs a loop."""

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None
        self._beside: ThreadPoolExecutor | None = None

    def run(self, work: Coroutine[object, object, _Result]) -> _Result:
        if _has_loop():
            return self._run_beside(work)
        self._runner = self._runner or asyncio.Runner()
        return self._runner.run(work)

    def _run_beside(self, work: Coroutine[object, object, _Result]) -> _Result:
        self._beside = self._beside or ThreadPoolExecutor(1, "longhold-sync")
        begun: list[asyncio.Task[object]] = []

        async def noted() -> _Result:
            task = asyncio.current_task()
            assert task is not None
            begun.append(task)
            return await work

        waiting = self._beside.submit(lambda: _local.bridge.run(noted()))
        try:
            return waiting.result()
        except KeyboardInterrupt:
            for task in begun:
                task.get_loop().call_soon_threadsafe(task.cancel)
            raise

    def close(self) -> None:
        """Cancel what is left and close the loop; the second thread closes its own."""
        if self._beside is not None:
            self._beside.shutdown()
        if self._runner is not None:
            self._runner.close()
        self._runner = self._beside = None

    def __del__(self) -> None:
        with suppress(RuntimeError):  # its thread has ended, perhaps with the whole program
            self.close()


class _Local(threading.local):
    """Holds a bridge for each thread: its `__init__` runs once in every thread that uses it."""

    def __init__(self) -> None:
        self.bridge = _Bridge()


_local = _Local()
atexit.register(lambda: _local.bridge.close())


@overload
def sync(work: Awaitable[_Result]) -> _Result: ...
@overload
def sync(work: AsyncIterator[_Result]) -> Iterator[_Result]: ...
def sync(
    work: Awaitable[_Result] | AsyncIterator[_Result],
) -> _Result | Iterator[_Result]:
    """Wait for something asynchronous, from code that is not.

    Args:
        work: what an asynchronous function gave; an asynchronous iterator gives a plain one,
            which ends it properly when it is dropped half-way.
    """
    if inspect.isawaitable(work):
        return _local.bridge.run(_await_result(work))
    if not isinstance(work, AsyncIterator):
        raise TypeError(f"sync waits for what is awaited; a {type(work).__name__} is not")
    return _steps(work)


async def _await_result(work: Awaitable[_Result]) -> _Result:
    return await work


def _steps(work: AsyncIterator[_Result]) -> Iterator[_Result]:
    try:
        while True:
            try:
                item = sync(anext(work))
            except StopAsyncIteration:
                return
            yield item
    finally:
        close = getattr(work, "aclose", None)
        if close is not None:
            sync(close())


def _has_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
