"""Wrap a model to inject provider faults, reproducibly by seed.

`injected` lists the faults, so that tests know what a session survived.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Literal, get_args

from longhold.core.models.protocol import Event, Finished, Model, Request, Started
from longhold.core.models.steady import closing
from longhold.core.models.translate import ProviderFault, explain
from longhold.errors import StreamBroken

Kind = Literal[
    "rate_limited",
    "overloaded",
    "server_error",
    "broken",
    "stalled",
    "repeated",
    "early_end",
    "empty",
    "late_error",
]
KINDS: tuple[Kind, ...] = get_args(Kind)

RATE = 0.3
"""High enough that a short session has several faults, low enough that it makes progress."""
DEPTH_EVENTS = 6
"""A fault within an answer occurs at one of its first events, before its end."""

_STATUS: dict[Kind, int] = {"rate_limited": 429, "overloaded": 529, "server_error": 500}


class ChaosModel:
    def __init__(
        self, inner: Model, *, seed: int, rate: float = RATE, kinds: tuple[Kind, ...] = KINDS
    ) -> None:
        self.name, self.capabilities = inner.name, inner.capabilities
        self._inner = inner
        self._dice = random.Random(seed)
        self._rate = rate
        self._kinds = kinds
        self._kept: tuple[Request, list[Event]] | None = None
        """A spoilt answer with its request, so that a retry does not pay for another."""
        self.injected: list[Kind] = []

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        kind, at = self._draw()
        if kind in _STATUS:
            raise explain(ProviderFault(status=_STATUS[kind], message="injected"))
        if kind is None:
            async for event in self._answer(request):
                yield event
            return
        whole = [event async for event in self._answer(request)]
        if kind != "repeated":
            self._kept = (request, whole)
        async for event in _spoil(kind, whole, min(at, len(whole) - 1)):
            yield event

    async def _answer(self, request: Request) -> AsyncIterator[Event]:
        """Stream from the inner model, or replay the answer if this request's answer was spoilt."""
        kept, self._kept = self._kept, None
        if kept and kept[0] == request:
            for event in kept[1]:
                yield event
            return
        events = self._inner.stream(request)
        async with closing(events):
            async for event in events:
                yield event

    async def count(self, request: Request) -> int | None:
        return await self._inner.count(request)

    async def close(self) -> None:
        await self._inner.close()

    def _draw(self) -> tuple[Kind | None, int]:
        """Draw equally often for every request, so that runs with the same seed stay in step."""
        chance, kind = self._dice.random(), self._dice.choice(self._kinds)
        at = self._dice.randrange(1, DEPTH_EVENTS)
        if chance >= self._rate:
            return None, at
        self.injected.append(kind)
        return kind, at


async def _spoil(kind: Kind, whole: list[Event], at: int) -> AsyncIterator[Event]:
    for event in whole[:at]:
        if kind != "empty" or isinstance(event, Started):
            yield event
    match kind:
        case "broken":
            raise StreamBroken("injected: the connection closed midway")
        case "late_error":
            raise explain(
                ProviderFault(kind="overloaded_error", message="injected"), has_begun=True
            )
        case "stalled":
            await asyncio.Event().wait()
        case "repeated":
            for event in (whole[at], *whole[at:]):
                yield event
        case "empty":
            last = whole[-1]
            assert isinstance(last, Finished)
            yield Finished(reply=replace(last.reply, content=(), stop_reason="end_turn"))
