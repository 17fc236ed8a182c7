"""A summary prepared in the background, so that at the line nobody waits.

From a lower line on a fork is asked for the summary while the work goes on. What it covers is
fixed when it starts. At the line it is taken if nothing since has changed what had been sent by
then; messages that came later stay word for word behind it. Otherwise it is thrown away.
"""

import asyncio
from dataclasses import dataclass

from holdfast.compaction.segment import Segment, segment_before
from holdfast.compaction.summary import Written
from holdfast.engine import Engine
from holdfast.entries import Failed, Framed, Redone, Shaped, Switched, Undone
from holdfast.errors import HoldfastError
from holdfast.stages.timing import drops_thinking, may_move


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    task: "asyncio.Task[Written]"
    last: int
    """The last message it covers."""
    position: int
    """How long the log was."""


class Ahead:
    """The summary under way, if there is one."""

    def __init__(self) -> None:
        self._draft: _Draft | None = None

    @property
    def is_under_way(self) -> bool:
        """Say whether one was begun and not yet taken or thrown away."""
        return self._draft is not None

    def begin(self, engine: Engine, task: "asyncio.Task[Written]", segment: Segment) -> None:
        """Take note of a summary that is being written."""
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._draft = _Draft(task=task, last=segment.last, position=len(engine.view.history))

    async def take(self, engine: Engine) -> tuple[Segment, Written] | None:
        """Give the summary with what it covers, if it can be used; it is gone after this."""
        draft, self._draft = self._draft, None
        if draft is None:
            return None
        segment = self._still_covers(engine, draft)
        if segment is None:
            draft.task.cancel()
            return None
        try:
            return segment, await draft.task
        except HoldfastError as error:
            engine.record(Failed(what="compact: ahead", error=str(error)))
            return None

    def _still_covers(self, engine: Engine, draft: _Draft) -> Segment | None:
        since = engine.view.history[draft.position :]
        if any(isinstance(e, Shaped | Framed | Switched | Undone | Redone) for e in since):
            return None
        item = engine.view.item_of(draft.last)
        if item is None:
            return None
        segment = segment_before(engine.view, engine.view.items.index(item) + 1)
        if segment is not None and segment.kept and drops_thinking(engine) and not may_move(engine):
            return None  # the thinking of the messages that stay is still at work
        return segment

    def drop(self) -> None:
        """Throw away what is under way."""
        if self._draft is not None:
            self._draft.task.cancel()
            self._draft = None
