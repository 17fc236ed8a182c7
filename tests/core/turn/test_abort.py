"""Stopping immediately, even if requested repeatedly."""

import asyncio
from contextlib import suppress

from longhold.core.turn.abort import stream_until_aborted


async def test_a_stream_is_closed_though_the_wait_for_it_is_cancelled_again():
    cleaned, may_end = [], asyncio.Event()

    async def events():
        try:
            yield 1
            await asyncio.sleep(3_600)
        finally:
            await may_end.wait()
            cleaned.append(True)

    async def read():
        async for _ in stream_until_aborted(asyncio.Event(), events()):
            pass

    reading = asyncio.create_task(read())
    for _ in range(5):
        await asyncio.sleep(0)
    for _ in range(3):
        reading.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
    may_end.set()
    with suppress(asyncio.CancelledError):
        await reading
    assert reading.cancelled()
    assert cleaned == [True]
