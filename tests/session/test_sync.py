"""The synchronous API for programs without an event loop."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from longhold.session.sync import sync


async def double(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


class Counting:
    """An asynchronous generator that knows whether it was closed."""

    def __init__(self) -> None:
        self.is_closed = False

    async def run(self) -> AsyncIterator[int]:
        try:
            for number in range(3):
                await asyncio.sleep(0)
                yield number
        finally:
            self.is_closed = True


def test_what_is_awaited_elsewhere_is_waited_for():
    assert sync(double(21)) == 42


def test_an_error_comes_out_as_it_is():
    async def fail() -> None:
        raise LookupError("not there")

    with pytest.raises(LookupError, match="not there"):
        sync(fail())


def test_the_loop_is_the_same_in_every_call():
    async def begin() -> asyncio.Task[int]:
        return asyncio.create_task(double(4))

    task = sync(begin())
    assert not task.done()
    assert sync(task) == 8


def test_an_asynchronous_iterator_becomes_a_plain_one():
    counting = Counting()
    assert list(sync(counting.run())) == [0, 1, 2]
    assert counting.is_closed


def test_an_iterator_that_is_dropped_half_way_is_closed():
    counting = Counting()
    for _ in sync(counting.run()):
        break
    assert counting.is_closed


def test_it_works_where_a_loop_is_running_already():
    async def caller() -> tuple[int, str, str]:
        async def name() -> str:
            return threading.current_thread().name

        return sync(double(3)), sync(name()), sync(name())

    number, first, second = asyncio.run(caller())
    assert number == 6
    assert first == second != threading.current_thread().name


def test_every_thread_has_a_loop_of_its_own():
    found: list[object] = []

    async def loop() -> object:
        return asyncio.get_running_loop()

    thread = threading.Thread(target=lambda: found.append(sync(loop())))
    thread.start()
    thread.join()
    assert found[0] is not sync(loop())


def test_what_cannot_be_awaited_is_refused_by_name():
    with pytest.raises(TypeError, match="not a int"):
        sync(3)
