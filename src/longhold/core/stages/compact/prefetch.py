"""A summary prepared in the background, so that nobody waits at the compaction threshold.

It is used if nothing it covers has changed. Otherwise it is dropped and its cost is recorded.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from longhold.core.log.entries import Failed, Framed, Redone, Spilled, Switched, Undone, ViewChange
from longhold.core.stages.compact.compose import Judged
from longhold.core.stages.compact.draft import sum_usage
from longhold.core.stages.compact.fallbacks import MadeSummary
from longhold.core.stages.compact.segment import Segment, segment_before
from longhold.core.stages.prefix_lock import may_move
from longhold.core.turn.background import Job
from longhold.core.turn.engine import Engine

PREFETCH = "compact: ahead"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedSummary:
    segment: Segment
    written: Judged
    since: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _UnderWay:
    task: "asyncio.Task[MadeSummary]"
    last: int
    since: int


class Prefetch:
    def __init__(self, job: Job) -> None:
        self._job = job
        self._under_way: _UnderWay | None = None

    @property
    def is_under_way(self) -> bool:
        return self._under_way is not None

    def begin(
        self, engine: Engine, write: Coroutine[Any, Any, MadeSummary], segment: Segment
    ) -> None:
        task = self._job.run(write)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._under_way = _UnderWay(task=task, last=segment.last, since=len(engine.view.history))

    def waits(self, engine: Engine) -> bool:
        """True if a summary is ready and only the turn's thinking prevents its use."""
        one = self._under_way
        if one is None or not one.task.done() or one.task.cancelled() or one.task.exception():
            return False
        return self._find_covered(engine, one) is not None and not may_move(engine)

    async def take(self, engine: Engine) -> PreparedSummary | None:
        """Return the summary if it can be used. It can be taken only once."""
        one = self._under_way
        if one is None:
            return None
        segment = self._find_covered(engine, one)
        if segment is None:
            self.drop(engine, "what it covers was changed since")
            return None
        if segment.kept and not may_move(engine):
            self.drop(engine, "the thinking behind it is still at work")
            return None
        self._under_way = None
        made = await self._made(engine, one.task)
        if made is None or made.written is None:
            return None
        return PreparedSummary(segment=segment, written=made.written, since=one.since)

    async def _made(self, engine: Engine, task: "asyncio.Task[MadeSummary]") -> MadeSummary | None:
        try:
            await asyncio.wait((task,), timeout=engine.settings.compact.rung_seconds)
        finally:  # the waiting caller was cancelled, or it took too long
            is_late = not task.done()
            task.cancel()
        if is_late:
            said = "it took too long"
        elif task.cancelled():
            said = "it was stopped"
        elif (error := task.exception()) is not None:
            said = str(error) or type(error).__name__
        else:
            return task.result()
        engine.record(Failed(what=PREFETCH, error=said))
        return None

    def _find_covered(self, engine: Engine, one: _UnderWay) -> Segment | None:
        since = engine.view.history[one.since :]
        if any(_can_move(entry, one.last) for entry in since):
            return None
        item = engine.view.item_of(one.last)
        if item is None:
            return None
        return segment_before(engine.view, engine.view.items.index(item) + 1)

    def drop(self, engine: Engine, why: str) -> str:
        """Drop the summary in progress. Return a line with its cost, or "" if there is none."""
        one, self._under_way = self._under_way, None
        if one is None:
            return ""
        one.task.cancel()
        spent = sum_usage(engine.view.history[one.since :])
        cost = f"{spent.total_tokens:,} tokens" if spent else "nothing was paid yet"
        said = f"thrown away ({cost}): {why}"
        engine.record(Failed(what=PREFETCH, error=said))
        return said


def _can_move(entry: object, last: int) -> bool:
    if isinstance(entry, Spilled):  # results of later messages do not matter
        return any(n <= last for n in entry.rests_on)
    return isinstance(entry, ViewChange | Framed | Switched | Undone | Redone)
