"""Layer 4: past the line, history becomes a summary.

A compaction is planned on the view, written by whoever can (`ladder`), put together with what the
log knows, checked against the line, and only then recorded, all at once: until that moment
nothing has changed, so cancelling leaves the session as it was. The last rung needs no model.
Where not even that helps, because what every request holds is over the line by itself, no call
is made and the error says what weighs how much.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from holdfast.capabilities import capabilities
from holdfast.compaction.compose import Composed, Manner, Material, compose, gathered
from holdfast.compaction.directives import accept, read_claims
from holdfast.compaction.floor import floor, told
from holdfast.compaction.segment import Segment, partial_segment, whole_segment
from holdfast.compaction.summary import Kind, ask_for_summary
from holdfast.compaction.writing import Writer
from holdfast.engine import Engine
from holdfast.entries import (
    AnyEntry,
    Cleared,
    Compacted,
    Failed,
    Forked,
    Restored,
    SpokenContent,
)
from holdfast.errors import (
    ContextOverflow,
    HoldfastError,
    ModelError,
    PromptTooLong,
    RequestRejected,
)
from holdfast.items import Result, Round
from holdfast.measure import NOTHING, Measure, measure_content
from holdfast.messages import Text, Usage
from holdfast.stages.ahead import Ahead
from holdfast.stages.collapse import drain, is_collapsing
from holdfast.stages.ladder import Ladder, Made
from holdfast.stages.surroundings import Before, Blocked, Surroundings, Trigger
from holdfast.stages.thrash import WHAT as THRASH
from holdfast.stages.thrash import find_culprit, is_thrashing
from holdfast.stages.timing import drops_thinking
from holdfast.tokens import default_weights, weigh

HISTORY = "History"
"""The tool that opens what left the view."""
SHARES = (1.0, 0.5, 0.25, 0.1)
"""Of its budget, that a summary is given while what comes of it is over the line."""
LINE_SHARE = 0.3
"""Of the line, that a summary may fill at most: the rest is for the work."""
CLEARED = "This result filled the window again and again, and was cleared."


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to be compacted, and why."""

    trigger: Trigger = "auto"
    focus: str = ""
    kind: Kind = "full"
    pivot: int = 0
    """The message a partial compaction begins or ends at."""
    error: PromptTooLong | None = None
    by_model: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """A compaction that is ready to be recorded."""

    material: Material
    composed: Composed
    restored: SpokenContent
    made: Made


class Compaction:
    """The stage: compacts by itself past the line, and when asked to."""

    def __init__(self, around: Surroundings | None = None) -> None:
        self.around = around or Surroundings()
        self.ladder = Ladder()
        self._ahead = Ahead()
        self._restores = True

    async def __call__(self, engine: Engine) -> None:
        """Compact before the next call if the line is reached; prepare for it before that."""
        settings, full = engine.settings.compact, engine.fullness()
        engine.can_make_room = settings.on
        if not settings.on or settings.reactive_only or is_collapsing(engine.settings):
            return
        if not full.window.auto or full.used_tokens < full.window.auto_tokens:
            self._look_ahead(engine, full.used_tokens, full.window.auto_tokens)
            return
        if self._is_vetoed(engine) and not full.is_blocked:
            return
        if is_thrashing(engine.view.history, settings) and self._stop_refilling(engine):
            return
        try:
            await self.compact(engine, Wish())
        except Blocked as refusal:
            self.around.tell(f"not compacted: {refusal}")

    async def recover(self, engine: Engine, error: ModelError) -> bool:
        """Make room because the provider says there is none; say whether that was possible."""
        if not engine.settings.compact.on or not isinstance(error, PromptTooLong):
            return False
        if drain(engine):
            return True
        try:
            await self.compact(engine, Wish(trigger="reactive", error=error))
        except (RequestRejected, ContextOverflow) as failure:
            engine.record(Failed(what="compact", error=str(failure)))
            return False
        return True

    async def compact(self, engine: Engine, wish: Wish) -> Compacted:
        """Replace history by a summary; raise, with nothing changed, where that cannot be."""
        began, position = time.monotonic(), len(engine.view.history)
        draft = await self.draft(engine, wish)
        usage = _spent(engine.view.history[position:])
        return await self._install(engine, draft, wish, time.monotonic() - began, usage)

    async def draft(self, engine: Engine, wish: Wish) -> _Draft:
        """Do everything but record it."""
        segment = _segment(engine, wish)
        before = await self.around.before(wish.trigger, wish.focus)
        if before.blocked:
            raise Blocked(before.blocked)
        material = _material(engine, segment)
        async with self._progress(engine):
            prepared = None if wish.focus or wish.kind != "full" else await self._ahead.take(engine)
            if prepared is not None and wish.trigger != "reactive":
                material = _material(engine, prepared[0])
                made = Made(written=prepared[1], way="ahead")
            else:
                made = await self._made(engine, material, wish, before)
        restored = await self._restored(engine, material.segment)
        return self._fitting(
            engine,
            _Draft(
                material=material,
                composed=_compose(engine, material, made, wish, self.around),
                restored=restored,
                made=made,
            ),
            wish,
        )

    async def _made(self, engine: Engine, material: Material, wish: Wish, before: Before) -> Made:
        if not wish.by_model:
            return Made()
        asked = _asked(material, (wish.focus, *before.focus))
        is_wished = wish.trigger == "manual"
        return await self.ladder.climb(
            engine, material, asked, is_wished=is_wished, error=wish.error
        )

    def _fitting(self, engine: Engine, draft: _Draft, wish: Wish) -> _Draft:
        """Make a draft smaller until what comes of it is under the line."""
        line = engine.fullness().window.base_tokens
        for share in SHARES:
            if share < 1.0:
                budget = int(draft.material.budget_tokens * share)
                material = replace(draft.material, budget_tokens=budget)
                composed = _compose(engine, material, draft.made, wish, self.around)
                draft = replace(draft, composed=composed)
            for restored in (draft.restored, ()):
                if _after(engine, draft, restored) < line:
                    return replace(draft, restored=restored)
            if draft.made.written is not None and share == SHARES[1]:
                draft = replace(draft, made=Made())  # a digest can be cut further than a summary
        weights = floor(engine.view, _scales(engine))
        raise ContextOverflow(told(weights, line))

    async def _restored(self, engine: Engine, segment: Segment) -> SpokenContent:
        if not self._restores:
            return ()
        try:
            return await self.around.restore(segment)
        except (
            OSError,
            HoldfastError,
            ValueError,
        ) as error:  # whatever went wrong, the summary must not be lost for it
            engine.record(Failed(what="compact: restore", error=str(error)))
            return ()

    async def _install(
        self, engine: Engine, draft: _Draft, wish: Wish, seconds: float, usage: Usage | None
    ) -> Compacted:
        """Record a draft and all that goes with it, then let others know."""
        segment, composed = draft.material.segment, draft.composed
        frame = await self.around.renew()
        before = engine.fullness().used_tokens
        entry = engine.record(
            Compacted(
                first=segment.first,
                last=segment.last,
                summary=(Text(text=composed.text),),
                kind=segment.kind,
                trigger=wish.trigger,
                by="model" if draft.made.written else "digest",
                kept=segment.kept,
                before_tokens=before,
                after_tokens=round(_after(engine, draft, draft.restored)),
                survived=round(composed.survival.share, 4),
                seconds=round(seconds, 3),
                usage=usage,
                drops_thinking=drops_thinking(engine) and segment.kind == "up_to",
                why=_why(draft, before, round(_after(engine, draft, draft.restored))),
            )
        )
        assert isinstance(entry, Compacted)
        if draft.restored:
            engine.record(Restored(compaction=entry.n, content=draft.restored))
        if frame is not None:
            engine.record(frame)
        self._take_states(engine, draft)
        self._ahead.drop()
        await self.around.after(entry)
        self.around.tell(entry.why)
        return entry

    def _take_states(self, engine: Engine, draft: _Draft) -> None:
        """Record what a model says became of the user's requests, where a message shows it."""
        if draft.made.written is None:
            return
        claims = read_claims(draft.made.written.states)
        ledger, items = draft.material.ledger, draft.material.segment.items
        said = {each.message for each in ledger.directives}
        for directed in accept(claims, ledger, said=said, known={item.id for item in items} | said):
            engine.record(directed)

    def _look_ahead(self, engine: Engine, used: int, line: int) -> None:
        """Begin to have a summary written in the background once the lower line is reached."""
        settings = engine.settings.compact
        if not (settings.ahead and settings.model) or engine.ask is None:
            return
        if self._ahead.is_under_way or used < settings.ahead_ratio * line:
            return
        segment = whole_segment(engine.view)
        if segment is None or self.ladder.failures >= settings.failures:
            return
        writer = Writer(
            ask=engine.ask,
            model=engine.model,
            able=capabilities(engine.model),
            asked=_asked(_material(engine, segment), ()),
        )
        self._ahead.begin(engine, asyncio.create_task(writer.on_fork()), segment)

    def _is_vetoed(self, engine: Engine) -> bool:
        """Say whether a compaction of this history was taken back by the user."""
        vetoes = engine.view.fate.vetoes
        return bool(vetoes) and any(item.id in vetoes for item in engine.view.items)

    def _stop_refilling(self, engine: Engine) -> bool:
        """Find what refills the window and act on it; say whether that made room."""
        culprit = find_culprit(engine.view, _called, _scales(engine))
        said = f"{culprit.said} ({culprit.tokens:,} tokens)" if culprit else "nothing in particular"
        why = f"the window was refilled again and again, by {said}"
        engine.record(Failed(what=THRASH, error=why))
        self.around.tell(why)
        if culprit is None:
            return False
        if culprit.is_restored:
            self._restores = False
        if culprit.ids:
            text = f"{CLEARED} It was {culprit.said}."
            drops = drops_thinking(engine)
            engine.record(Cleared(ids=culprit.ids, texts=(text,), why=why, drops_thinking=drops))
        full = engine.fullness()
        return full.used_tokens < full.window.auto_tokens

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
        self._ahead.drop()


def _segment(engine: Engine, wish: Wish) -> Segment:
    """Choose what to cover, having made sure that covering it can help."""
    line, scales = engine.fullness().window.base_tokens, _scales(engine)
    weights = floor(engine.view, scales)
    if sum(weight.tokens for weight in weights) >= line:
        raise ContextOverflow(told(weights, line))
    if wish.kind != "full":
        return partial_segment(engine.view, wish.kind, wish.pivot)
    segment = whole_segment(engine.view)
    if segment is None:
        raise RequestRejected("there is nothing to compact yet")
    return segment


def _material(engine: Engine, segment: Segment) -> Material:
    scales, line = _scales(engine), engine.fullness().window.base_tokens
    tokens = round(sum(scales(item.measure) for item in segment.items))
    return gathered(
        engine.view.history, segment, tokens, most_tokens=max(1, int(LINE_SHARE * line))
    )


def _asked(material: Material, focus: Sequence[str]) -> str:
    segment = material.segment
    directives = material.ledger.directives
    return ask_for_summary(segment.kind, focus=focus, directives=directives, pivot=segment.pivot)


def _compose(
    engine: Engine, material: Material, made: Made, wish: Wish, around: Surroundings
) -> Composed:
    manner = Manner(
        log=str(engine.log.path),
        has_history=any(tool.get("name") == HISTORY for tool in engine.frame.tools),
        is_auto=wish.trigger != "manual",
        is_autonomous=around.is_autonomous,
        masked=around.masked,
    )
    return compose(material, made.written, manner)


def _scales(engine: Engine) -> Callable[[Measure], float]:
    """Weigh parts of the view as the gauge weighs all of it."""
    weights, total = default_weights(engine.model), engine.view.total
    raw = weigh(total, weights)
    scale = engine.fullness().used_tokens / raw if raw else 1.0
    return lambda measure: scale * weigh(measure, weights)


def _after(engine: Engine, draft: _Draft, restored: SpokenContent) -> float:
    """Foretell how full the window is once a draft is recorded."""
    gone = NOTHING
    for item in draft.material.segment.items:
        if not engine.view.is_pinned(item):
            gone = gone + item.measure
    come = measure_content((Text(text=draft.composed.text), *restored))
    return _scales(engine)(engine.view.total - gone + come)


def _spent(entries: Sequence[AnyEntry]) -> Usage | None:
    """Add up what the forks of a compaction used."""
    calls = [entry.usage for entry in entries if isinstance(entry, Forked) and entry.usage]
    if not calls:
        return None
    return Usage(
        input_tokens=sum(call.input_tokens for call in calls),
        output_tokens=sum(call.output_tokens for call in calls),
        cache_read_tokens=sum(call.cache_read_tokens for call in calls),
        cache_write_tokens=sum(call.cache_write_tokens for call in calls),
    )


def _called(item: Round, result: Result) -> str:
    use = next((use for use in item.tool_uses() if use.id == result.tool_use_id), None)
    return use.name if use else result.tool_use_id


def _why(draft: _Draft, before: int, after: int) -> str:
    how = {"digest": "from the log, without a model", "ahead": "prepared in the background"}
    way = how.get(draft.made.way, f"by a model ({draft.made.way})")
    share = draft.composed.survival.share
    return (
        f"compacted {len(draft.material.segment.items)} messages {way}: {before:,} tokens became "
        f"about {after:,}; {share:.0%} of the names in use survive"
    )
