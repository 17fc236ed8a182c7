"""Layer 4: past the line, history becomes a summary.

A compaction is planned on the view, written by whoever can (`ladder`), put together with what the
log knows and made to fit (`drafting`), and only then recorded, all at once: until that moment
nothing has changed, so cancelling leaves the session as it was. The last rung needs no model.
Where not even that helps, because what every request holds is over the line by itself, no call
is made and the error says what weighs how much.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from msgspec import structs

from holdfast.errors import HoldfastError, ModelError, PromptTooLong, RequestRejected
from holdfast.log.entries import Compacted, Failed, Framed, SpokenContent
from holdfast.stages.collapse.collapse import drain, is_collapsing
from holdfast.stages.compact.commit import recorded
from holdfast.stages.compact.compose import Manner, compose
from holdfast.stages.compact.draft import (
    CompactionDraft,
    asked_for,
    check_floor,
    check_helps,
    fitted,
    line_for,
    material_of,
    within,
)
from holdfast.stages.compact.fallbacks import Fallbacks, MadeSummary
from holdfast.stages.compact.from_notes import FromNotes
from holdfast.stages.compact.hooks import Before, Blocked, CompactionHooks, Trigger
from holdfast.stages.compact.prefetch import Prefetch
from holdfast.stages.compact.segment import Segment, partial_segment, whole_segment
from holdfast.stages.compact.summary import SummaryKind
from holdfast.stages.compact.thrash import Guard, is_thrashing, may_ask_models
from holdfast.tools.describe import HISTORY
from holdfast.turn.engine import Engine, Fullness
from holdfast.view import View
from holdfast.view.items import Spoken

TROUBLE = (OSError, HoldfastError, ValueError)
"""What may go wrong around a summary without the summary being lost for it."""


class NothingToCompact(RequestRejected):
    """There is no history yet that a summary could stand for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactRequest:
    """What is to be compacted, and why."""

    trigger: Trigger = "auto"
    focus: str = ""
    kind: SummaryKind = "full"
    pivot: int = 0
    """The message a partial compaction begins or ends at."""
    error: PromptTooLong | None = None
    by_model: bool = True
    may_ask: bool = True
    """Whether a model may be asked for it now; what is written already may serve all the same."""


class Compaction:
    """The stage: compacts by itself past the line, and when asked to."""

    def __init__(self, around: CompactionHooks | None = None) -> None:
        self.around = around or CompactionHooks()
        self.ladder = Fallbacks()
        self.notes: FromNotes | None = None
        """Lets notes stand for history before anybody is asked."""
        self._ahead = Prefetch()
        self._guard = Guard()
        self._refused_in = 0
        """The message of the turn in which a hook's refusal was told."""

    def attach(self, engine: Engine) -> None:
        """Let it run before each of an engine's calls, after the stages that are there."""
        engine.stages = (*engine.stages, self)
        engine.can_make_room = engine.settings.compact.on and engine.settings.window.auto

    async def __call__(self, engine: Engine) -> None:
        """Compact before the next call if the line is reached; prepare for it before that."""
        settings, full = engine.settings.compact, engine.fullness()
        if not settings.on or not full.window.auto or settings.reactive_only:
            return
        if full.used_tokens < full.window.auto_tokens:
            self._look_ahead(engine, full)
            return
        if not full.is_blocked and self._waits(engine):
            return
        may_ask = may_ask_models(engine.view.history)
        if is_thrashing(engine.view, settings):
            stopped = self._guard.stop(engine)
            self.around.tell(stopped.said)
            if stopped.has_room:
                return
            may_ask = False
        try:
            await self.compact(engine, CompactRequest(may_ask=may_ask))
        except Blocked as refusal:
            self._tell_refused(engine, refusal)
        except NothingToCompact:
            return

    def _tell_refused(self, engine: Engine, refusal: Blocked) -> None:
        """Say once a turn that a hook does not let it happen, not at every call."""
        asked = (i.id for i in engine.view.items if isinstance(i, Spoken) and i.is_asked())
        turn = max(asked, default=0)
        if turn != self._refused_in or not turn:
            self._refused_in = turn
            self.around.tell(f"not compacted: {refusal}")

    def _waits(self, engine: Engine) -> bool:
        """Say whether compacting may wait until it must be."""
        return (
            is_collapsing(engine.settings)
            or is_taken_back(engine.view)
            or self._ahead.waits(engine)
            or (self.notes is not None and self.notes.waits(engine))
        )

    async def recover(self, engine: Engine, error: ModelError) -> bool:
        """Make room because the provider says there is none; say whether that was possible."""
        settings = engine.settings
        if not settings.compact.on or not settings.window.auto:
            return False
        if not isinstance(error, PromptTooLong):
            return False
        line = line_for(engine, error)
        if drain(engine) and engine.fullness().used_tokens < line:
            return True
        try:
            may_ask = may_ask_models(engine.view.history)
            wish = CompactRequest(trigger="reactive", error=error, may_ask=may_ask)
            await self.compact(engine, wish)
        except RequestRejected as failure:
            engine.record(Failed(what="compact", error=str(failure)))
            return False
        return True

    async def compact(self, engine: Engine, wish: CompactRequest) -> Compacted:
        """Replace history by a summary; raise, with nothing changed, where that cannot be."""
        began = time.monotonic()
        draft = await self.draft(engine, wish)
        frame = await self._renewed(engine)
        return await self._install(engine, draft, wish, frame, time.monotonic() - began)

    async def draft(self, engine: Engine, wish: CompactRequest) -> CompactionDraft:
        """Do everything but record it."""
        line, manner = line_for(engine, wish.error), self._manner(engine, wish)
        lowest = check_floor(engine, line)
        noted, before = await self._noted(engine, wish, manner, line)
        if noted is not None:
            return noted
        material = material_of(engine, _segment(engine, wish))
        check_helps(engine, material, manner, line, lowest)
        since = len(engine.view.history)
        async with self._progress(engine):
            is_plain = replace(wish, may_ask=True) == CompactRequest()
            prepared = await self._ahead.take(engine) if is_plain else None
            if prepared is not None:
                material, since = material_of(engine, prepared.segment), prepared.since
                made = MadeSummary(written=prepared.written, way="ahead")
            else:
                before = before or await self._let(wish.trigger, wish.focus)
                asked = asked_for(material, (wish.focus, *before.focus))
                made = await self.ladder.climb(
                    engine,
                    material,
                    asked,
                    is_wished=wish.trigger == "manual",
                    by_model=wish.by_model and wish.may_ask,
                    error=wish.error,
                )
            restored = await self._restored(engine, material.segment)
        composed = compose(material, made.written, manner)
        draft = CompactionDraft(
            material=material, made=made, composed=composed, restored=restored, since=since
        )
        return fitted(engine, draft, manner, line)

    async def make_ready(self, engine: Engine) -> None:
        """Have notes made ready to stand for history, for when the line is reached."""
        if self.notes is not None:
            await self.notes.make_ready(engine, self._manner(engine, CompactRequest()))

    async def _noted(
        self, engine: Engine, wish: CompactRequest, manner: Manner, line: int
    ) -> tuple[CompactionDraft | None, Before | None]:
        """Let notes stand for history if they can; with what hooks said, if they were asked.

        Who wishes for something particular, a person or a hook, is not served by notes.
        """
        if self.notes is None or wish.focus or wish.kind != "full" or not wish.by_model:
            return None, None
        draft = await self.notes.draft(engine, manner, line, must=wish.trigger == "reactive")
        if draft is None:
            return None, None
        before = await self._let(wish.trigger, wish.focus)
        if before.focus:
            return None, before
        restored = await self._restored(engine, draft.material.segment)
        return within(engine, replace(draft, restored=restored), line), before

    async def _let(self, trigger: Trigger, focus: str) -> Before:
        """Ask the hooks; one of them may not let it happen."""
        before = await self.around.before(trigger, focus)
        if before.blocked:
            raise Blocked(before.blocked)
        return before

    async def _restored(self, engine: Engine, segment: Segment) -> SpokenContent:
        """Gather what is shown again, and what hooks say to the session that begins anew."""
        try:
            content = await self.around.restore(segment) if self._guard.restores else ()
            return (*content, *await self.around.greet())
        except TROUBLE as error:
            engine.record(Failed(what="compact: restore", error=str(error)))
            return ()

    async def _renewed(self, engine: Engine) -> Framed | None:
        """Have the frame made anew; nothing where it is as before."""
        try:
            frame = await self.around.renew()
        except TROUBLE as error:
            engine.record(Failed(what="compact: frame", error=str(error)))
            return None
        now = engine.frame
        return None if frame is None or _same(frame, now) else frame

    async def _install(
        self,
        engine: Engine,
        draft: CompactionDraft,
        wish: CompactRequest,
        frame: Framed | None,
        seconds: float,
    ) -> Compacted:
        """Record a draft and all that goes with it, then let others know."""
        entry = recorded(engine, draft, wish.trigger, frame=frame, seconds=seconds)
        self._ahead.drop(engine, "history was compacted without it")
        self.around.tell(entry.why)
        await self.around.after(entry)
        return entry

    def _look_ahead(self, engine: Engine, full: Fullness) -> None:
        """Begin to have a summary written in the background once the lower line is reached."""
        settings = engine.settings.compact
        if not (settings.ahead and settings.model) or engine.ask is None:
            return
        if self.notes is not None and self.notes.serves(engine):
            return
        if self._ahead.is_under_way or is_collapsing(engine.settings):
            return
        segment = whole_segment(engine.view)
        if (
            full.used_tokens < settings.ahead_ratio * full.window.auto_tokens
            or segment is None
            or self.ladder.is_broken(settings)
            or not may_ask_models(engine.view.history)
            or is_taken_back(engine.view)
        ):
            return
        material, prefix = material_of(engine, segment), engine.prefix()

        async def write() -> MadeSummary:
            before = await self._let("auto", "")
            asked = asked_for(material, before.focus)
            return await self.ladder.ahead(engine, asked, prefix)

        self._ahead.begin(engine, asyncio.create_task(write()), segment)

    def _manner(self, engine: Engine, wish: CompactRequest) -> Manner:
        return Manner(
            log=str(engine.log.path),
            has_history=any(tool.get("name") == HISTORY for tool in engine.frame.tools),
            is_auto=wish.trigger != "manual",
            is_autonomous=self.around.is_autonomous,
            masked=self.around.masked,
        )

    @asynccontextmanager
    async def _progress(self, engine: Engine) -> AsyncIterator[None]:
        """Say every few seconds that the work goes on."""

        async def tick() -> None:
            began = time.monotonic()
            while True:
                await asyncio.sleep(engine.settings.compact.progress_seconds)
                self.around.progress(f"compacting, {time.monotonic() - began:.0f} s")

        ticking = asyncio.create_task(tick())
        try:
            yield
        finally:
            ticking.cancel()

    def close(self) -> None:
        """Throw away what is being prepared."""
        self._ahead.close()


def is_taken_back(view: View) -> bool:
    """Say whether a compaction of what the view shows was undone: a veto until it must be."""
    if not view.in_force.vetoes:
        return False
    return any(
        isinstance(entry, Compacted)
        and entry.n in view.in_force.dead
        and view.item_of(entry.first) is not None
        and view.item_of(entry.last) is not None
        for entry in view.history
    )


def _segment(engine: Engine, wish: CompactRequest) -> Segment:
    """Choose what to cover; past the line a summary that stands alone may be told again, shorter."""
    if wish.kind != "full":
        return partial_segment(engine.view, wish.kind, wish.pivot)
    segment = whole_segment(engine.view, again=wish.trigger != "manual")
    if segment is None:
        is_done = any(isinstance(i, Spoken) and i.kind == "summary" for i in engine.view.items)
        raise NothingToCompact(
            "all of it is compacted already; nothing was answered since"
            if is_done
            else "there is nothing to compact yet"
        )
    return segment


def _same(frame: Framed, now: Framed) -> bool:
    """Say whether a frame would be sent as it is sent now."""
    plain = {"n": 0, "at": 0.0, "rests_on": (), "measure": now.measure}
    return structs.replace(frame, **plain) == structs.replace(now, **plain)
