"""Compact history into a summary above the compaction threshold. `owner` has the stage.

The summary is written by the first of `fallbacks` that works, combined with facts from the log and
shortened to fit (`draft`). It is recorded last, so cancelling is safe. If the floor alone exceeds
the threshold, no call is made and the error itemises the floor.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

from msgspec import structs

from longhold.core.log.entries import Compacted, Failed, Framed, SpokenContent
from longhold.core.stages.collapse import drain
from longhold.core.stages.compact.compose import Manner, compose
from longhold.core.stages.compact.draft import (
    CompactionDraft,
    check_floor,
    check_helps,
    check_shorter,
    fit_draft,
    line_for,
    make_gatherer,
    make_room,
    material_of,
    record_draft,
    trim,
    write_request,
)
from longhold.core.stages.compact.facts_fold import FactsFold
from longhold.core.stages.compact.fallbacks import Fallbacks, MadeSummary
from longhold.core.stages.compact.from_notes import FromNotes
from longhold.core.stages.compact.owner import (
    Before,
    Blocked,
    CompactionHooks,
    CompactRequest,
    Trigger,
)
from longhold.core.stages.compact.prefetch import PREFETCH, Prefetch
from longhold.core.stages.compact.segment import Segment, partial_segment, whole_segment
from longhold.core.stages.compact.thrash import (
    CompactionOutcomes,
    Guard,
    is_broken,
    is_thrashing,
    may_ask_models,
)
from longhold.core.stages.notes.notes import Notes
from longhold.core.tools.describe import HISTORY
from longhold.core.turn.background import Background
from longhold.core.turn.engine import Engine, Fullness
from longhold.core.turn.fork import AskFork
from longhold.core.view import View
from longhold.core.view.items import Spoken
from longhold.errors import (
    ContextOverflow,
    LongholdError,
    PromptTooLong,
    RequestRejected,
    StoreError,
)

FAILURES = (OSError, LongholdError, ValueError)
"""Errors around a summary that must not lose the summary."""
AHEAD_RATIO = 0.9
"""Share of the threshold from which a summary is prepared in the background."""
PROGRESS_SECONDS = 5.0


class NothingToCompact(RequestRejected):
    """There is no history yet that a summary could replace."""


class Compaction:
    """The compactions of one session."""

    def __init__(
        self,
        *,
        ask: AskFork | None,
        hooks: CompactionHooks,
        notes: Notes | None,
        background: Background,
    ) -> None:
        self._facts = FactsFold()
        self.hooks = hooks
        self._ask = ask
        self._past = CompactionOutcomes()
        self._fallbacks = Fallbacks(ask, self._past)
        self._from_notes = FromNotes(notes, self._facts) if notes is not None else None
        self._prefetch = Prefetch(background.job(PREFETCH))
        self._guard = Guard(self._past)
        self._refused_in = 0

    async def run(self, engine: Engine, full: Fullness) -> None:
        """Compact above the threshold. Below it, start a background summary if one is due."""
        if full.used_tokens < full.window.auto_tokens:
            self._look_ahead(engine, full)
            return
        # Below the blocking limit the next request still fits, so waiting loses nothing.
        if not full.is_blocked and self._waits(engine):
            return
        past = self._past.follow(engine.view.history)
        may_ask = may_ask_models(past)
        if is_thrashing(past, engine.view.in_force.dead, full):
            stopped = self._guard.stop(engine)
            self.hooks.tell(stopped.said)
            if stopped.has_room:
                return
            may_ask = False
        try:
            await self.compact(engine, CompactRequest(may_ask=may_ask))
        except Blocked as refusal:
            self._tell_refused(engine, refusal)
        except NothingToCompact:
            return
        except ContextOverflow:
            # Otherwise the next request still fits, so a failed compaction does not end the
            # session.
            if full.is_blocked:
                raise

    def _tell_refused(self, engine: Engine, refusal: Blocked) -> None:
        asked = (i.id for i in engine.view.items if isinstance(i, Spoken) and i.is_asked())
        turn = max(asked, default=0)
        # The stage runs before every call; the user needs to hear of a refusal once per turn.
        if turn != self._refused_in or not turn:
            self._refused_in = turn
            self.hooks.tell(f"not compacted: {refusal}")

    def _waits(self, engine: Engine) -> bool:
        return (
            engine.settings.collapse.on
            or self._is_taken_back(engine.view)
            or self._prefetch.waits(engine)
            or (self._from_notes is not None and self._from_notes.waits(engine))
        )

    async def recover(self, engine: Engine, error: PromptTooLong) -> bool:
        line = line_for(engine, error)
        if drain(engine) and engine.fullness().used_tokens < line:
            return True
        try:
            may_ask = may_ask_models(self._past.follow(engine.view.history))
            request = CompactRequest(trigger="reactive", error=error, may_ask=may_ask)
            await self.compact(engine, request)
        except RequestRejected as failure:
            engine.record(Failed(what="compact", error=str(failure)))
            return False
        return True

    async def compact(self, engine: Engine, request: CompactRequest) -> Compacted:
        began = time.monotonic()
        draft = await self.draft(engine, request)
        return await self.commit(engine, draft, request, seconds=time.monotonic() - began)

    async def commit(
        self, engine: Engine, draft: CompactionDraft, request: CompactRequest, *, seconds: float
    ) -> Compacted:
        # Awaited before anything is recorded, so that cancelling leaves the session as it was.
        frame = await self._renew_frame(engine)
        entry = record_draft(engine, draft, request.trigger, frame=frame, seconds=seconds)
        self._prefetch.drop(engine, "history was compacted without it")
        self.hooks.tell(entry.why)
        await self.hooks.after(entry)
        return entry

    async def draft(self, engine: Engine, request: CompactRequest) -> CompactionDraft:
        line, manner = line_for(engine, request.error), self._manner(engine, request)
        lowest = check_floor(engine, line)
        noted, before = await self._noted(engine, request, manner, line)
        if noted is not None:
            return noted
        segment = _segment(engine, request)
        material = await material_of(engine, segment, self._facts)
        await asyncio.to_thread(check_helps, engine, material, manner, line, lowest)
        if request.trigger == "manual":
            check_shorter(engine, material)
        since = len(engine.view.history)
        focus: tuple[str, ...] = ()
        async with self._progress():
            # A prepared summary has no focus and covers everything, so it only serves a plain
            # request.
            is_plain = replace(request, may_ask=True) == CompactRequest()
            prepared = await self._prefetch.take(engine) if is_plain else None
            if prepared is not None:
                material = await material_of(engine, prepared.segment, self._facts)
                # Its calls were made earlier, and they belong on the bill of this compaction.
                since = prepared.since
                made = MadeSummary(written=prepared.written, way="ahead")
            else:
                before = before or await self._ask_hooks(request.trigger, request.focus)
                focus = (request.focus, *before.focus)
                asked = write_request(material, focus)
                made = await self._fallbacks.climb(engine, material, asked, request)
            restored = await self._restored(engine, material.segment)
        composed = await asyncio.to_thread(compose, material, made.written, manner)
        draft = CompactionDraft(
            material=material,
            made=made,
            composed=composed,
            restored=restored,
            since=since,
            focus="\n".join(filter(None, focus)),
        )
        fit = await asyncio.to_thread(fit_draft, engine, draft, manner, line)
        return trim(engine, fit, manner) if request.trigger == "manual" else fit

    async def make_ready(self, engine: Engine) -> None:
        if self._from_notes is not None:
            await self._from_notes.make_ready(engine, self._manner(engine, CompactRequest()))

    async def _noted(
        self, engine: Engine, request: CompactRequest, manner: Manner, line: int
    ) -> tuple[CompactionDraft | None, Before | None]:
        """Return a draft from notes, unless a focus is given, and the hooks' answer if asked."""
        if (
            self._from_notes is None
            or request.focus
            or request.kind != "full"
            or not request.by_model
        ):
            return None, None
        draft = await self._from_notes.draft(
            engine, manner, line, must=request.trigger == "reactive"
        )
        if draft is None:
            return None, None
        before = await self._ask_hooks(request.trigger, request.focus)
        if before.focus:
            return None, before
        restored = await self._restored(engine, draft.material.segment)
        draft = replace(draft, restored=restored)
        return await asyncio.to_thread(make_room, engine, draft, manner, line), before

    async def _ask_hooks(self, trigger: Trigger, focus: str) -> Before:
        before = await self.hooks.before(trigger, focus)
        if before.blocked:
            raise Blocked(before.blocked)
        return before

    async def _restored(self, engine: Engine, segment: Segment) -> SpokenContent:
        try:
            content = await self.hooks.restore(segment) if self._guard.restores else ()
            return (*content, *await self.hooks.greet())
        except FAILURES as error:
            engine.record(Failed(what="compact: restore", error=str(error)))
            return ()

    async def _renew_frame(self, engine: Engine) -> Framed | None:
        try:
            frame = await self.hooks.renew()
        except FAILURES as error:
            engine.record(Failed(what="compact: frame", error=str(error)))
            return None
        return None if frame is None or _is_same_frame(frame, engine.frame) else frame

    def _look_ahead(self, engine: Engine, full: Fullness) -> None:
        settings = engine.settings.compact
        if not (settings.ahead and settings.model) or self._ask is None:
            return
        # A compaction from notes costs no call, so none has to be prepared.
        if self._from_notes is not None and self._from_notes.serves(engine):
            return
        if self._prefetch.is_under_way or engine.settings.collapse.on:
            return
        segment, past = whole_segment(engine.view), self._past.follow(engine.view.history)
        if (
            full.used_tokens < AHEAD_RATIO * full.window.auto_tokens
            or segment is None
            or is_broken(past, time.time())
            or not may_ask_models(past)
            or self._is_taken_back(engine.view)
        ):
            return
        prefix, gather = engine.prefix(), make_gatherer(engine, segment, self._facts)

        async def write() -> MadeSummary:
            material = await asyncio.to_thread(gather)
            before = await self._ask_hooks("auto", "")
            asked = write_request(material, before.focus)
            return await self._fallbacks.prefetch(engine, asked, prefix)

        self._prefetch.begin(engine, write(), segment)

    def _is_taken_back(self, view: View) -> bool:
        """True if the user undid a compaction of what is shown, which vetoes another for now."""
        if not view.in_force.vetoes:
            return False
        return any(
            isinstance(entry, Compacted)
            and entry.n in view.in_force.dead
            and view.item_of(entry.first) is not None
            and view.item_of(entry.last) is not None
            for entry in self._past.follow(view.history)
        )

    def _manner(self, engine: Engine, request: CompactRequest) -> Manner:
        has_history = any(tool.get("name") == HISTORY for tool in engine.frame.tools)
        named = f"session {engine.log.header.session}" if has_history else ""
        return Manner(
            log=str(engine.log.path) if engine.shows_paths else named,
            has_history=has_history,
            is_auto=request.trigger != "manual",
            is_autonomous=self.hooks.is_autonomous,
        )

    @asynccontextmanager
    async def _progress(self) -> AsyncIterator[None]:
        async def tick() -> None:
            began = time.monotonic()
            while True:
                await asyncio.sleep(PROGRESS_SECONDS)
                self.hooks.progress(f"compacting, {time.monotonic() - began:.0f} s")

        ticking = asyncio.create_task(tick())
        try:
            yield
        finally:
            ticking.cancel()

    def close(self, engine: Engine) -> None:
        with suppress(StoreError):  # a failed write must not prevent closing
            dropped = self._prefetch.drop(engine, "the session ended before it was needed")
            if dropped:
                self.hooks.tell(f"a summary prepared ahead was {dropped}")


def _segment(engine: Engine, request: CompactRequest) -> Segment:
    """Choose the segment to cover. Automatic compactions may shorten a lone summary again."""
    if request.kind != "full":
        return partial_segment(engine.view, request.kind, request.pivot)
    segment = whole_segment(engine.view, again=request.trigger != "manual")
    if segment is None:
        is_done = any(isinstance(i, Spoken) and i.kind == "summary" for i in engine.view.items)
        raise NothingToCompact(
            "all of it is compacted already; nothing was answered since"
            if is_done
            else "there is nothing to compact yet"
        )
    return segment


def _is_same_frame(frame: Framed, now: Framed) -> bool:
    # Every reading has its own number and time; only the rest says whether the prompt differs.
    plain = {"n": 0, "at": 0.0, "rests_on": (), "measure": now.measure}
    return structs.replace(frame, **plain) == structs.replace(now, **plain)
