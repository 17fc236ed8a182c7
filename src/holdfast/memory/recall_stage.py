"""A stage that adds recalled memories as a hidden reminder once they are ready.

A recall begins when the user has said something new. A search by words is ready at once, a model's
choice some calls later. Nothing waits for it: a late result is added before a later call of the
same turn, or dropped.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import TypeAlias

from holdfast.log.entries import AnyEntry, Failed, Recalled, Said
from holdfast.memory.recall import Recollection
from holdfast.messages import text_of
from holdfast.turn.engine import Engine

RecallFunction: TypeAlias = Callable[[str], Coroutine[None, None, Recollection | None]]
"""Takes the question; returns the memories for it."""


class RecallStage:
    def __init__(self, recall: RecallFunction) -> None:
        self._recall = recall
        self._seen = 0
        self._pending: asyncio.Task[Recollection | None] | None = None

    def skip(self, history: Iterable[AnyEntry]) -> None:
        """Treat everything in a resumed session's history as answered."""
        self._seen = max((entry.n for entry in history), default=0)

    async def __call__(self, engine: Engine) -> None:
        """Begin a recall if the user said something; add the result of a finished one."""
        asked = self._new_words(engine)
        if asked:
            self.stop()
            self._pending = asyncio.create_task(self._recall(asked), name="recall")
            await asyncio.sleep(0)  # a search by words finishes here
        if self._pending is None or not self._pending.done():
            return
        done, self._pending = self._pending, None
        if done.cancelled():
            return
        error = done.exception()
        if error is not None:
            engine.record(Failed(what="recall", error=f"{type(error).__name__}: {error}"))
            return
        self._say(engine, done.result())

    def stop(self) -> None:
        if self._pending is not None:
            self._pending.cancel()
            self._pending = None

    def _new_words(self, engine: Engine) -> str:
        """Return what the user said since the last call."""
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
