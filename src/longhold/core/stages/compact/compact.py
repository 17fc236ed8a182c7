"""Compact history into a summary, as the table of rules decides. `owner` has the stage.

A plan names one way to get a summary. If that way fails, the table decides again, with the failure
as a fact. The digest comes last and cannot fail. The summary is combined with facts from the log
and shortened to fit (`draft`). It is recorded last, so that cancelling is safe.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial

from msgspec import structs

from longhold.core.log.entries import Compacted, Failed, Framed, SpokenContent
from longhold.core.log.spending import make_failure
from longhold.core.policy.decide import (
    CarryOut,
    Compact,
    HistoryFacts,
    Refuse,
    Situation,
    SpaceDecision,
    Wait,
    Way,
    decide,
)
from longhold.core.policy.threshold import floor, weigh_parts
from longhold.core.stages.collapse import drain
from longhold.core.stages.compact.compose import Manner, Material, compose
from longhold.core.stages.compact.draft import (
    Bounds,
    CompactionDraft,
    check_gain,
    check_helps,
    check_shorter,
    find_bounds,
    fit_draft,
    make_gatherer,
    make_room,
    record_draft,
    trim,
    write_request,
)
from longhold.core.stages.compact.facts_fold import FactsFold
from longhold.core.stages.compact.from_notes import FromNotes
from longhold.core.stages.compact.owner import (
    Before,
    Blocked,
    CompactionHooks,
    CompactRequest,
)
from longhold.core.stages.compact.segment import (
    Segment,
    is_summary,
    partial_segment,
    whole_segment,
)
from longhold.core.stages.compact.summary import (
    NoSummary,
    Summariser,
    SummaryWriter,
    Written,
    ask_plugin,
)
from longhold.core.stages.compact.thrash import (
    STAGE,
    count_streaks,
    is_broken,
    is_thrashing,
    relieve,
    shorten_unread,
)
from longhold.core.stages.notes.notes import Notes
from longhold.core.stages.space import look
from longhold.core.tools.describe import HISTORY
from longhold.core.turn.engine import Engine
from longhold.core.turn.fork.asking import AskFork
from longhold.core.view import View
from longhold.core.view.items import Spoken
from longhold.errors import (
    AuthenticationFailed,
    BudgetSpent,
    ContextOverflow,
    LongholdError,
    ModelError,
    ModelUnavailable,
    PromptTooLong,
    RequestRejected,
)

FAILURES = (OSError, LongholdError, ValueError)
"""Errors that do not prevent the use of a finished summary."""
NO_ANSWER = (ModelUnavailable, BudgetSpent, AuthenticationFailed)
"""Errors that mean that no model answers, so that other ways would only wait."""
MODEL_RULES = ("compact-plugin", "compact-fork", "compact-direct")
PROGRESS_SECONDS = 5.0


class NothingToCompact(RequestRejected):
    """There is no history that a summary could replace."""


@dataclass(slots=True, kw_only=True)
class _Attempt:
    request: CompactRequest
    manner: Manner
    bounds: Bounds
    material: Material | None = None
    before: Before | None = None
    focus: tuple[str, ...] = ()
    since: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    no_answer: str = ""


class Compaction:
    def __init__(
        self,
        *,
        ask: AskFork | None,
        hooks: CompactionHooks,
        notes: Notes,
        summariser: Summariser | None = None,
    ) -> None:
        self._facts = FactsFold()
        self.hooks = hooks
        self._ask, self._summariser = ask, summariser
        self._from_notes = FromNotes(notes, self._facts)
        self._restores = True
        self._refused_in = 0
        self._delay = ""

    def facts(self, engine: Engine, attempt: _Attempt | None = None) -> HistoryFacts:
        """Return the facts for the rules. `attempt` is a compaction in progress."""
        attempt = attempt or self._begin(engine, CompactRequest())
        request, view, settings = attempt.request, engine.view, engine.settings.compact
        past, may_ask = view.history, settings.model and request.by_model
        return HistoryFacts(
            limit_tokens=attempt.bounds.limit,
            is_plain=not request.focus and request.kind == "full" and request.by_model,
            has_overflowed=request.error is not None,
            model=self._ask is not None and may_ask,
            plugin=self._summariser is not None and may_ask,
            failed=attempt.failed,
            no_answer=attempt.no_answer,
            covers=partial(_explain_empty, engine, request),
            floor=cache(lambda: floor(view, engine.make_weigher())),
            parts=lambda: weigh_parts(view, engine.make_weigher()),
            undone_tokens=partial(self._find_undone, view),
            notes=partial(self._from_notes.explain_absence, engine),
            streaks=lambda: count_streaks(past),
            is_thrashing=lambda: is_thrashing(past, view.in_force.dead, engine.fullness()),
            is_broken=lambda: is_broken(past, time.time()),
        )

    async def carry_out(self, engine: Engine, decision: SpaceDecision) -> None:
        plan = decision.plan
        match plan:
            case Wait(until_tokens=until, why=why) if why != self._delay:
                line = engine.fullness().window.auto_tokens  # reported once per delay
                self.hooks.tell(f"past {line:,} tokens; {why}, until {until:,} tokens at most")
            case Refuse(why=why):
                raise ContextOverflow(why)
            case Compact():
                await self._compact_by_itself(engine, decision)
            case CarryOut(subject=subject):
                if decision.step == "shorten":
                    self._shorten(engine, subject)
                else:
                    said, self._restores = relieve(engine, restores=self._restores)
                    self.hooks.tell(said)
        self._delay = plan.why if isinstance(plan, Wait) else ""

    def _shorten(self, engine: Engine, limit: int) -> None:
        if shortened := shorten_unread(engine, limit):
            self.hooks.tell(shortened)

    async def _compact_by_itself(self, engine: Engine, decision: SpaceDecision) -> None:
        try:
            await self.compact(engine, CompactRequest(), decision)
        except Blocked as refusal:
            self._tell_refused(engine, refusal)
        except ContextOverflow:
            # A failed compaction does not end the session as long as the next request fits.
            if engine.fullness().is_blocked:
                raise

    def _tell_refused(self, engine: Engine, refusal: Blocked) -> None:
        asked = (i.id for i in engine.view.items if isinstance(i, Spoken) and i.is_asked())
        turn = max(asked, default=0)
        # The stage runs before every call, but it reports a refusal only once per turn.
        if turn != self._refused_in or not turn:
            self._refused_in = turn
            self.hooks.tell(f"not compacted: {refusal}")

    async def recover(self, engine: Engine, error: PromptTooLong) -> bool:
        limit = find_bounds(engine, error).limit
        if drain(engine) and engine.fullness().used_tokens < limit:
            return True
        request = CompactRequest(trigger="reactive", error=error)
        try:
            self._shorten(engine, limit)
            await self.compact(engine, request)
        except RequestRejected as failure:
            engine.record(Failed(what="compact", error=str(failure)))
            return False
        return True

    async def compact(
        self, engine: Engine, request: CompactRequest, decision: SpaceDecision | None = None
    ) -> Compacted:
        began = time.monotonic()
        draft = await self.draft(engine, request, decision)
        # This is awaited before anything is recorded, so that cancelling changes nothing.
        frame, seconds = await self._renew_frame(engine), time.monotonic() - began
        entry = record_draft(engine, draft, request.trigger, frame=frame, seconds=seconds)
        self.hooks.tell(entry.why)
        await self.hooks.after(entry)
        return entry

    async def draft(
        self, engine: Engine, request: CompactRequest, decision: SpaceDecision | None = None
    ) -> CompactionDraft:
        """Make a summary in the way that was decided, or in the next way if that fails."""
        attempt = self._begin(engine, request)
        lost = list(decision.lost) if decision else []
        while True:
            decision = decision or decide(self._look(engine, attempt), ("compact",))
            lost += [one for one in decision.lost if one not in lost]
            plan, decision = decision.plan, decision._replace(lost=tuple(lost))
            if isinstance(plan, Refuse):
                raise (ContextOverflow if plan.is_overflow else NothingToCompact)(plan.why)
            assert isinstance(plan, Compact)
            draft = await self._make(engine, plan, attempt, decision)
            if draft is not None:
                return replace(draft, decision=decision)
            decision = None

    def _begin(self, engine: Engine, request: CompactRequest) -> _Attempt:
        manner, bounds = self._manner(engine, request), find_bounds(engine, request.error)
        since = len(engine.view.history)
        return _Attempt(request=request, manner=manner, bounds=bounds, since=since)

    def _look(self, engine: Engine, attempt: _Attempt) -> Situation:
        return replace(
            look(engine, ()),
            trigger=attempt.request.trigger,
            is_wanted=True,
            history=cache(partial(self.facts, engine, attempt)),
        )

    async def _make(
        self, engine: Engine, plan: Compact, attempt: _Attempt, decision: SpaceDecision
    ) -> CompactionDraft | None:
        """Make a draft in one way, or return None and record why it failed."""
        if plan.way == "notes":
            return await self._make_from_notes(engine, attempt)
        await self._gather(engine, attempt)
        async with self._progress():
            hinted = (await self._ask_hooks(attempt)).focus
            standing = engine.settings.compact.instructions
            attempt.focus = (standing, attempt.request.focus, *hinted)
            if plan.way == "digest":
                said = [one.why for one in decision.lost if one.rule in MODEL_RULES]
                return await self._fit(engine, plan, attempt, None, "".join(said[-1:]))
            written = await self._ask_model(engine, plan.way, attempt)
        return await self._fit(engine, plan, attempt, written) if written else None

    async def _gather(self, engine: Engine, attempt: _Attempt) -> None:
        if attempt.material is not None:
            return
        request = attempt.request
        segment = _find_segment(engine, request)
        assert segment is not None
        material = await asyncio.to_thread(make_gatherer(engine, segment, self._facts))
        await asyncio.to_thread(check_helps, engine, material, attempt.manner, attempt.bounds)
        facts = self.facts(engine, attempt)
        if request.trigger == "manual" and (facts.model or facts.plugin):
            check_shorter(engine, material)
        attempt.material = material

    async def _ask_model(self, engine: Engine, way: Way, attempt: _Attempt) -> Written | None:
        assert attempt.material is not None
        request, segment = attempt.request, attempt.material.segment
        asked = write_request(engine, attempt.material, attempt.focus)
        is_wanted, seconds = request.trigger == "manual", engine.settings.compact.rung_seconds
        writer = SummaryWriter(engine=engine, ask=self._ask, asked=asked, is_wanted=is_wanted)
        try:
            async with asyncio.timeout(seconds):
                if way == "plugin" and self._summariser is not None:
                    return await ask_plugin(self._summariser, writer.request(segment.items))
                if way == "fork":
                    return await writer.ask_fork(segment)
                return await writer.ask_directly(segment.items, request.error)
        except (ModelError, NoSummary, TimeoutError) as failure:
            said = str(failure) or f"no summary arrived within {seconds:g} seconds"
            engine.record(make_failure(f"{STAGE}{way}", failure, said))
            attempt.failed[way] = said
            attempt.no_answer = said if isinstance(failure, NO_ANSWER) else ""
            return None

    async def _fit(
        self,
        engine: Engine,
        plan: Compact,
        attempt: _Attempt,
        written: Written | None,
        why_not: str = "",
    ) -> CompactionDraft:
        manner, material = attempt.manner, attempt.material
        assert material is not None
        draft = CompactionDraft(
            material=material,
            composed=await asyncio.to_thread(compose, material, written, manner),
            written=written,
            way=plan.way,
            why_not=why_not,
            since=attempt.since,
            focus="\n".join(filter(None, attempt.focus)),
        )
        is_manual = attempt.request.trigger == "manual"
        if is_manual:  # so that hooks do not run needlessly
            check_gain(engine, trim(engine, draft, manner))
        draft = replace(draft, restored=await self._restore(engine, material.segment))
        fit = await asyncio.to_thread(fit_draft, engine, draft, manner, attempt.bounds)
        return trim(engine, fit, manner) if is_manual else fit

    async def _make_from_notes(self, engine: Engine, attempt: _Attempt) -> CompactionDraft | None:
        draft = await self._from_notes.draft(engine, attempt.manner, attempt.bounds)
        if draft is None:
            attempt.failed["notes"] = "the notes are unusable or leave too much"
            return None
        if (await self._ask_hooks(attempt)).focus:
            attempt.failed["notes"] = "a hook has special instructions for the summary"
            return None
        restored = await self._restore(engine, draft.material.segment)
        draft, aim = replace(draft, restored=restored), attempt.bounds.aim
        return await asyncio.to_thread(make_room, engine, draft, attempt.manner, aim)

    async def _ask_hooks(self, attempt: _Attempt) -> Before:
        request, known = attempt.request, attempt.before
        attempt.before = known or await self.hooks.before(request.trigger, request.focus)
        if attempt.before.blocked:
            raise Blocked(attempt.before.blocked)
        return attempt.before

    async def _restore(self, engine: Engine, segment: Segment) -> SpokenContent:
        try:
            content = await self.hooks.restore(segment) if self._restores else ()
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

    def _find_undone(self, view: View) -> int:
        """Return the size before an undone compaction, or 0 if its span is not shown."""
        if not view.in_force.vetoes:
            return 0
        undone = (
            entry.before_tokens
            for entry in view.history
            if isinstance(entry, Compacted)
            and entry.n in view.in_force.dead
            and view.item_of(entry.first) is not None
            and view.item_of(entry.last) is not None
        )
        return max(undone, default=0)

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


def _find_segment(engine: Engine, request: CompactRequest) -> Segment | None:
    """Choose the segment to cover. Automatic compactions may shorten a single summary again."""
    if request.kind != "full":
        return partial_segment(engine.view, request.kind, request.pivot)
    return whole_segment(engine.view, again=request.trigger != "manual")


def _explain_empty(engine: Engine, request: CompactRequest) -> str:
    if _find_segment(engine, request) is not None:
        return ""
    if any(map(is_summary, engine.view.items)):
        return "everything is already compacted, and there is no newer answer"
    return "there is nothing to compact yet"


def _is_same_frame(frame: Framed, now: Framed) -> bool:
    # The number and time always differ. Only the other fields show whether the prompt differs.
    plain = {"n": 0, "at": 0.0, "rests_on": (), "measure": now.measure}
    return structs.replace(frame, **plain) == structs.replace(now, **plain)
