"""Runs asynchronous code for programs without an event loop.

    request = sync(session.prepare())
    for event in sync(agent.run("Fix the login bug")): ...

Each thread has its own loop, which runs only during calls. If a loop is already running, as in a
notebook, a second thread does the work and the caller blocks, together with its loop. Ctrl-C
cancels the work.
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
    """One thread's loop, and a second thread for use while that loop is running."""

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

        async def note_task() -> _Result:
            task = asyncio.current_task()
            assert task is not None
            begun.append(task)
            return await work

        waiting = self._beside.submit(lambda: _local.bridge.run(note_task()))
        try:
            return waiting.result()
        except KeyboardInterrupt:
            for task in begun:
                task.get_loop().call_soon_threadsafe(task.cancel)
            raise

    def close(self) -> None:
        if self._beside is not None:
            self._beside.shutdown()
        if self._runner is not None:
            self._runner.close()
        self._runner = self._beside = None

    def __del__(self) -> None:
        with suppress(RuntimeError):  # because its thread has ended, perhaps with the whole program
            self.close()


class _Local(threading.local):
    """Holds a bridge per thread, because its `__init__` runs once in every thread that uses it."""

    def __init__(self) -> None:
        self.bridge = _Bridge()


_local = _Local()
atexit.register(lambda: _local.bridge.close())


@overload
def sync(work: Awaitable[_Result]) -> _Result: ...
@overload
def sync(work: AsyncIterator[_Result]) -> Iterator[_Result]: ...
def sync(work: Awaitable[_Result] | AsyncIterator[_Result]) -> _Result | Iterator[_Result]:
    """Wait for an awaitable, or turn an asynchronous iterator into a plain one that closes it."""
    if inspect.isawaitable(work):
        return _local.bridge.run(_await_result(work))
    if not isinstance(work, AsyncIterator):
        raise TypeError(f"sync needs an awaitable, not a {type(work).__name__}")
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
