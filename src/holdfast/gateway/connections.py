"""Connections to the providers, in pools of a few.

A pool looks at each of its connections for every request that begins or ends, which is most of the
work of a request when hundreds are open. So a pool takes a few requests at a time, and the next
pool those above: one client's calls find the same connection again, many do not wait for a look.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx2

POOL_REQUESTS = 8


@dataclass(slots=True)
class _Pool:
    client: httpx2.AsyncClient
    in_flight: int = 0


class Connections:
    """Sends requests over the first pool that has room; `build` makes another."""

    def __init__(self, build: Callable[[], httpx2.AsyncClient]) -> None:
        self._build = build
        self._pools: list[_Pool] = []

    @asynccontextmanager
    async def open(self, request: httpx2.Request) -> AsyncIterator[httpx2.Response]:
        """Send a request; its answer has its head, and is closed with the block."""
        pool = self._with_room()
        pool.in_flight += 1
        try:
            response = await pool.client.send(request, stream=True)
            try:
                yield response
            finally:
                await response.aclose()
        finally:
            pool.in_flight -= 1

    async def close(self) -> None:
        for pool in self._pools:
            await pool.client.aclose()

    def _with_room(self) -> _Pool:
        for pool in self._pools:
            if pool.in_flight < POOL_REQUESTS:
                return pool
        self._pools.append(_Pool(self._build()))
        return self._pools[-1]
