"""A compaction before it is recorded, and its recording.

A draft is shrunk until it is below the compaction threshold: first with fewer restored files, then
with a shorter summary, finally with a digest. Otherwise `ContextOverflow` itemises the weights.
Only `record_draft` writes a compaction.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from msgspec import structs

from longhold.core.log.entries import (
    AnyEntry,
    Compacted,
    Directed,
    Forked,
    Framed,
    Restored,
    SpokenContent,
)
from longhold.core.messages import Opaque, Text, Usage
from longhold.core.messages.measure import NOTHING, Measure, measure_content
from longhold.core.stages.compact.compose import (
    Composed,
    Manner,
    Material,
    compose,
    gather_material,
)
from longhold.core.stages.compact.directives import accept, read_claims
from longhold.core.stages.compact.facts_fold import FactsFold
from longhold.core.stages.compact.fallbacks import MadeSummary
from longhold.core.stages.compact.floor import explain_floor, floor
from longhold.core.stages.compact.owner import Trigger
from longhold.core.stages.compact.segment import Segment
from longhold.core.stages.compact.summary import ask_for_summary
from longhold.core.stages.compact.user_words import render_user_messages
from longhold.core.stages.compact.writing import SOURCE
from longhold.core.stages.prefix_lock import drops_thinking
from longhold.core.tools.recovered import is_restored_file
from longhold.core.turn.engine import Engine
from longhold.core.view.window import scale_tokens
from longhold.errors import ContextOverflow, PromptTooLong, RequestRejected

SHARES = ((1.0, 1.0), (0.5, 1.0), (0.25, 1.0), (0.1, 1.0), (0.1, 0.5), (0.1, 0.25), (0.1, 0.1))
"""Shares of the budgets for a summary and the user's messages, tried until the result fits."""
LESS_ROOMY, LEAST_ROOMY = 0.5, 0.25
"""Shares of the budget without the user's messages, tried while little working space is left."""
ROOMY_WORDS_SHARES = (0.75, 0.5, 0.35)
"""Shares of the budget for the user's messages."""
CROWDED_SHARE = 0.65
"""Share of the threshold up to which the user's messages are not shortened."""
LEAST_SHARE = 0.25
"""Share of the space above the untouched part that a summary and restored files may take."""
ROOM_SHARE = 0.85
"""Share of the threshold that restored files may fill, or the next answers reach it again."""
LINE_SHARE = 0.3
"""Share of the threshold that a summary may take."""
HIGH_FLOOR_SHARE = 0.5
"""Share of the threshold. With a higher floor, a digest is tried before any model call."""
OVERFLOW_SHARE = 0.8
"""Share of the used tokens: the target after an overflow of unknown size."""
WORDS_TOKENS = 60_000
"""The user's messages are kept whole up to this. Beyond it, the oldest are shortened."""
FILLED_RATIO = 0.42
"""Share of the threshold to fill. A 32K window then has space for fifteen ordinary answers."""


class NotShorter(RequestRejected):
    """A summary would be as long as the text it replaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionDraft:
    material: Material
    made: MadeSummary
    composed: Composed
    restored: SpokenContent = ()
    since: int = 0
    focus: str = ""
    is_edited: bool = False

    @property
    def content(self) -> SpokenContent:
        text = Text(text=self.composed.text)
        return (Opaque(raw=self.made.block), text) if self.made.block else (text,)

    @property
    def by(self) -> Literal["model", "notes", "digest", "provider", "person"]:
        """Who wrote it. Notes without any model-written text count as a digest."""
        if self.is_edited:
            return "person"
        if self.made.block is not None:
            return "provider"
        if self.made.written is None:
            return "digest"
        return "notes" if self.made.way == "notes" else "model"


def line_for(engine: Engine, error: PromptTooLong | None = None) -> int:
    """Return the size to get below, in gauge tokens. An overflow error corrects the gauge."""
    full = engine.fullness()
    line, used = full.window.base_tokens, full.used_tokens
    if error is None:
        return line
    needed, allowed = error.needed_tokens, error.allowed_tokens
    # A provider may report no figures, or figures that contradict its own refusal.
    if not needed or not allowed or needed <= allowed:
        return min(line, max(1, int(used * OVERFLOW_SHARE)))
    safe = line / full.window.limit_tokens
    return min(line, max(1, int(allowed * safe * used / needed)))


async def material_of(engine: Engine, segment: Segment, fold: FactsFold) -> Material:
    return await asyncio.to_thread(make_gatherer(engine, segment, fold))


def make_gatherer(engine: Engine, segment: Segment, fold: FactsFold) -> Callable[[], Material]:
    """Prepare `material_of` for a thread: read everything from the engine now."""
    weigh, window = engine.make_weigher(), engine.fullness().window
    tokens = round(sum(weigh(item.measure) for item in segment.items))
    return partial(
        gather_material,
        # A thread reads it while the session may go on appending.
        engine.view.history.copy(),
        segment,
        tokens,
        most_words_tokens=scale_tokens(WORDS_TOKENS, window.limit_tokens),
        most_tokens=max(1, int(LINE_SHARE * window.base_tokens)),
        fold=fold,
    )


def write_request(material: Material, focus: Sequence[str]) -> str:
    segment = material.segment
    return ask_for_summary(
        segment.kind,
        focus=focus,
        directives=material.ledger.directives,
        shortened=material.words().shortened,
        pivot=segment.pivot,
    )


def check_floor(engine: Engine, line: int) -> int:
    weights = floor(engine.view, engine.make_weigher())
    lowest = sum(weight.tokens for weight in weights)
    if lowest >= line:
        raise ContextOverflow(explain_floor(weights, line))
    return lowest


def check_helps(
    engine: Engine, material: Material, manner: Manner, line: int, lowest_tokens: int
) -> None:
    """Raise unless the shortest digest would bring the context below the threshold."""
    # A digest costs no call: if even that does not fit, no model's summary is paid for.
    if lowest_tokens >= HIGH_FLOOR_SHARE * line:
        composed = compose(material.shrink(*SHARES[-1]), None, manner)
        fit_draft(
            engine,
            CompactionDraft(material=material, made=MadeSummary(), composed=composed),
            manner,
            line,
        )


def check_shorter(engine: Engine, material: Material) -> None:
    """Raise if even an empty summary would not be shorter, before a model call is paid for."""
    words = render_user_messages(material.ledger, material.trim().words_tokens).text
    least = _measure_rest(engine, material.segment) + measure_content((Text(text=words),))
    before, after = engine.fullness().used_tokens, engine.size_tokens(least)
    if after >= before:
        raise NotShorter(_explain_no_gain(before, after))


def _explain_no_gain(before: int, after: int) -> str:
    return (
        f"a summary would be no shorter: {before:,} tokens would become {after:,}; "
        "nothing was changed"
    )


def fit_draft(engine: Engine, draft: CompactionDraft, manner: Manner, line: int) -> CompactionDraft:
    """Shrink a draft until the result leaves space to work, or at least is below the threshold."""
    fit = make_room(engine, draft, manner, line)
    if after_tokens(engine, fit, fit.restored) < line:
        return fit
    whole = draft.material
    for share, words_share in SHARES:
        if (share, words_share) != SHARES[0]:
            draft = _shrink(draft, whole.shrink(share, words_share), manner)
        for restored in lighten(draft.restored):
            if after_tokens(engine, draft, restored) < (ROOM_SHARE * line if restored else line):
                return replace(draft, restored=restored)
        if draft.made.written is not None and (share, words_share) == SHARES[1]:
            draft = replace(draft, made=MadeSummary())  # a digest can be cut further than a summary
    bare = replace(draft, restored=())
    if engine.make_weigher()(_total_after(engine, bare, ())) < line:
        return bare  # fits by weight; the gauge is off, and the next answer corrects it
    left = after_tokens(engine, bare, ())
    raise ContextOverflow(explain_floor(floor(engine.view, engine.make_weigher()), line, left))


def make_room(engine: Engine, draft: CompactionDraft, manner: Manner, line: int) -> CompactionDraft:
    """Restore fewer files, then shorten the text, until enough space is free to work in.

    The user's messages shrink only if they exceeded their budget or leave almost no space.
    """
    whole, target = draft.material, _target_for(engine, draft, line)
    if found := _fit_restored(engine, draft, target):
        return found
    least = _shrink(draft, whole.shrink(LEAST_ROOMY), manner)
    if after_tokens(engine, least, ()) <= target:
        less = _shrink(draft, whole.shrink(LESS_ROOMY), manner)
        return _fit_restored(engine, less, target) or _fit_restored(engine, least, target) or least
    draft = replace(least, restored=())
    # The user's messages are still whole, and less free space is better than shortening them.
    if not whole.words().shortened:
        target = _target_for(engine, draft, line, CROWDED_SHARE)
    for words_share in ROOMY_WORDS_SHARES:
        if after_tokens(engine, draft, ()) <= target:
            break
        draft = _shrink(draft, whole.shrink(LEAST_ROOMY, words_share), manner)
    return draft


def _fit_restored(engine: Engine, draft: CompactionDraft, target: int) -> CompactionDraft | None:
    for restored in lighten(draft.restored):
        if after_tokens(engine, draft, restored) <= target:
            return replace(draft, restored=restored)
    return None


def trim(engine: Engine, draft: CompactionDraft, manner: Manner) -> CompactionDraft:
    if after_tokens(engine, draft, draft.restored) < engine.fullness().used_tokens:
        return draft
    return _shrink(draft, draft.material.trim(), manner)


def _target_for(engine: Engine, draft: CompactionDraft, line: int, share: float = 0.0) -> int:
    """Return the target size; larger if the part that a compaction does not touch is heavy."""
    stays = engine.make_weigher()(_measure_rest(engine, draft.material.segment))
    filled = max(FILLED_RATIO, share) * line
    return int(max(filled, stays + LEAST_SHARE * (line - stays)))


def _shrink(draft: CompactionDraft, material: Material, manner: Manner) -> CompactionDraft:
    composed = compose(material, draft.made.written, manner)
    return replace(draft, material=material, composed=composed)


def lighten(restored: SpokenContent) -> Iterator[SpokenContent]:
    """Yield the restored content with fewer and fewer files, oldest dropped first, then nothing.

    Todos, plan, skills and hook output stay longest: they are small and cannot be read again.
    """
    texts = [(i, block.text) for i, block in enumerate(restored) if isinstance(block, Text)]
    starts = [i for i, text in texts if is_restored_file(text)]
    behind = [i for i, _ in texts if i > max(starts, default=-1)]
    rest = restored[behind[0] :] if behind else ()
    yield restored
    for start in reversed(starts):
        yield (*restored[:start], *rest)
    yield ()


def after_tokens(engine: Engine, draft: CompactionDraft, restored: SpokenContent) -> int:
    return engine.size_tokens(_total_after(engine, draft, restored))


def _total_after(engine: Engine, draft: CompactionDraft, restored: SpokenContent) -> Measure:
    come = measure_content((*draft.content, *restored))
    return _measure_rest(engine, draft.material.segment) + come


def _measure_rest(engine: Engine, segment: Segment) -> Measure:
    gone = NOTHING
    for item in segment.items:
        # A compaction keeps pinned items verbatim, so they free nothing.
        if not engine.view.is_pinned(item):
            gone = gone + item.measure
    return engine.view.total - gone


def sum_usage(entries: Sequence[AnyEntry]) -> Usage | None:
    calls = [e.usage for e in entries if isinstance(e, Forked) and e.source == SOURCE]
    return sum(calls, Usage()) if calls else None


def describe(draft: CompactionDraft, before: int, after: int) -> str:
    how = {
        "digest": "from the log, without a model",
        "ahead": "prepared in the background",
        "provider": "by the provider",
        "notes": "from the notes, without a call",
    }
    way = how.get(draft.made.way, f"by a model ({draft.made.way})")
    way = "by hand" if draft.is_edited else way
    share = draft.composed.survival.share
    return (
        f"compacted {len(draft.material.segment.items)} messages {way}: {before:,} tokens became "
        f"about {after:,}; {share:.0%} of the names in use survive"
    )


def record_draft(
    engine: Engine,
    draft: CompactionDraft,
    trigger: Trigger,
    *,
    frame: Framed | None = None,
    seconds: float = 0.0,
) -> Compacted:
    entry = engine.record(_make_compacted(engine, draft, trigger, seconds))
    assert isinstance(entry, Compacted)
    if draft.restored:
        engine.record(Restored(compaction=entry.n, content=draft.restored))
    if frame is not None:
        # It rests on the compaction, so that undo brings the old frame back with the history.
        engine.record(structs.replace(frame, rests_on=(entry.n,)))
    for directed in _states(draft):
        engine.record(directed)
    return entry


def _make_compacted(
    engine: Engine, draft: CompactionDraft, trigger: Trigger, seconds: float
) -> Compacted:
    segment = draft.material.segment
    before = engine.fullness().used_tokens
    after = after_tokens(engine, draft, draft.restored)
    if trigger == "manual" and after >= before:
        raise NotShorter(_explain_no_gain(before, after))
    return Compacted(
        first=segment.first,
        last=segment.last,
        summary=draft.content,
        kind=segment.kind,
        trigger=trigger,
        by=draft.by,
        kept=segment.kept,
        before_tokens=before,
        after_tokens=after,
        focus=draft.focus,
        survived=round(draft.composed.survival.share, 4),
        seconds=round(seconds, 3),
        usage=sum_usage(engine.view.history[draft.since :]),
        drops_thinking=drops_thinking(engine),
        why=describe(draft, before, after),
    )


def _states(draft: CompactionDraft) -> Iterator[Directed]:
    if draft.made.written is None:
        return
    ledger, items = draft.material.ledger, draft.material.segment.items
    said = {each.message for each in ledger.directives}
    known = {item.id for item in items} | said
    # A claim that a request is done counts only if it cites a message that shows it.
    yield from accept(read_claims(draft.made.written.states), ledger, said=said, known=known)
