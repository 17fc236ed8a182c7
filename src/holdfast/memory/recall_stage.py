"""A stage: memories that bear on what the user asked, said as a hidden reminder when they are ready.

When the user has said something new a recall begins; a search by words is ready at once, a
model's choice some calls later, after the tools it ran beside. Nothing waits for it: what is not
ready is said before a later call of the same turn, or not at all.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

from holdfast.log.entries import AnyEntry, Failed, Recalled, Said
from holdfast.memory.recall import Recollection
from holdfast.messages import text_of
from holdfast.turn.engine import Engine

RecallFunction: TypeAlias = Callable[[str], Awaitable[Recollection | None]]
"""Given what was asked, gives what bears on it."""


class RecallStage:
    """One session's recalls."""

    def __init__(self, recall: RecallFunction) -> None:
        self._recall = recall
        self._seen = 0
        self._coming: asyncio.Task[Recollection | None] | None = None

    def skip(self, history: Iterable[AnyEntry]) -> None:
        """Count what a session that goes on had before as asked and answered."""
        self._seen = max((entry.n for entry in history), default=0)

    async def __call__(self, engine: Engine) -> None:
        """Begin a recall if the user has spoken, and say what one has found."""
        asked = self._new_words(engine)
        if asked:
            self.stop()
            self._coming = asyncio.create_task(self._found(asked), name="recall")
            await asyncio.sleep(0)  # a search by words is done after this
        if self._coming is None or not self._coming.done():
            return
        done, self._coming = self._coming, None
        if done.cancelled():
            return
        error = done.exception()
        if error is not None:
            engine.record(Failed(what="recall", error=f"{type(error).__name__}: {error}"))
            return
        self._say(engine, done.result())

    def stop(self) -> None:
        """Give up what is still being looked for."""
        if self._coming is not None:
            self._coming.cancel()
            self._coming = None

    async def _found(self, asked: str) -> Recollection | None:
        return await self._recall(asked)

    def _new_words(self, engine: Engine) -> str:
        """Give what the user said since the last call."""
        said: list[str] = []
        for entry in reversed(engine.view.history):
            if entry.n <= self._seen:
                break
            if isinstance(entry, Said) and not entry.hidden:
                said.append(text_of(entry.content))
        self._seen = engine.view.history[-1].n if engine.view.history else 0
        return "\n".join(reversed(said)).strip()

    def _say(self, engine: Engine, found: Recollection | None) -> None:
        if found is None:
            return
        if found.note:
            engine.record(Failed(what="recall", error=found.note))
        said = engine.say(found.text, hidden=True)
        engine.record(Recalled(names=found.names, said=said.n, bytes=found.bytes))
        self._seen = engine.view.history[-1].n
