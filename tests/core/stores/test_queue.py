"""The job queue: a worker leaves its connections clean when it ends."""

import asyncio
import logging
import os

import pytest

from longhold.core.settings import StoreSettings

STARTS = 5
"""A worker that cancels its sweep ends in the middle of a query nearly every time."""


def test_a_worker_ends_after_its_sweep_not_in_the_middle_of_it(postgres_url, caplog):
    pytest.importorskip("procrastinate", reason="procrastinate is not installed: no worker")
    from longhold.core.log.stores.postgres.queue import open_queue

    settings = StoreSettings(tenant=os.urandom(4).hex(), worker_beat_seconds=0.0)

    async def work():
        async with open_queue(postgres_url, settings) as queue:
            await queue.work(is_endless=False)

    with caplog.at_level(logging.WARNING, logger="psycopg"):
        for _ in range(STARTS):
            asyncio.run(work())
    assert caplog.messages == []
