"""Drafts of compactions, and how a draft is recorded.

A draft above the compaction threshold gets fewer restored files, and then a shorter summary. The
user's messages are shortened only if the result exceeds the window's limit. If nothing fits,
`ContextOverflow` lists what fills the window. Only `record_draft` writes a compaction.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, NamedTuple

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
from longhold.core.messages import Text, Usage
from longhold.core.messages.measure import NOTHING, Measure, measure_content
from longhold.core.policy.decide import SpaceDecision, Trigger
from longhold.core.policy.threshold import explain_floor, floor
from longhold.core.stages.compact.compose import (
    Composed,
    Manner,
    Material,
    compose,
    gather_material,
)
from longhold.core.stages.compact.directives import accept, read_claims, render_user_messages
from longhold.core.stages.compact.facts_fold import FactsFold
from longhold.core.stages.compact.segment import Segment
from longhold.core.stages.compact.summary import LISTED_MESSAGES, SOURCE, Written, ask_for_summary
from longhold.core.stages.space import drops_thinking
from longhold.core.tools.recovered import is_restored_file
from longhold.core.turn.engine import Engine
from longhold.core.view.tokens import CLAUDE, estimate_tokens
from longhold.core.view.tokens import weigh as tokens_by_weight
from longhold.core.view.window import scale_tokens
from longhold.errors import ContextOverflow, PromptTooLong, RequestRejected

ROOMY = (1.0, 0.5, 0.25)
"""Shares of the budget without the user's messages, tried until enough space is free."""
SHARES = ((0.25, 1.0), (0.1, 1.0), (0.1, 0.5), (0.1, 0.25), (0.1, 0.1))
"""Shares of the budgets for a digest and the user's messages, tried until the result fits."""
LEAST_SHARE = 0.25
"""Share of the space above the fixed part that a summary and restored files may take."""
FIXED_SHARE = 0.1
"""The same share if the fixed part of the summary is not counted."""
ROOM_SHARE = 0.85
"""Share of the limit that restored files may fill, so that the next answers still fit."""
LINE_SHARE = 0.3
"""Share of the threshold that a summary may take."""
HIGH_FLOOR_SHARE = 0.5
"""If the fixed part exceeds this share of the threshold, a digest is tried before a model."""
OVERFLOW_SHARE = 0.8
"""Target size after an overflow of unknown size, as a share of the used tokens."""
FREE_SHARE, FREE_TOKENS = 0.25, 20_000
"""Space that the user's messages must leave: a share, or these tokens up to `FREE_MOST`."""
FREE_MOST, FREE_MOST_OLD = 0.5, 0.8
"""The largest share of free space next to vital messages, and next to other messages.

In a 32K window, old messages that fill half of it would be sent and cached again every few turns.
"""
OPEN_SHARE = 0.25
"""Share of the limit for the calls of the open turn, one line each."""
FILLED_RATIO = 0.42
"""Share of the threshold to fill. In a 32K window, about fifteen ordinary answers then fit."""


SHORT_SUMMARY_TOKENS = 2_000
"""Size of a short summary by a model in a 200K window, including Longhold's additions."""
REASON_CHARS = 16
"""Number of characters by which reasons are compared, because the figures after them differ."""


class NotShorter(RequestRejected):
    """A summary would be as long as the text that it replaces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionDraft:
    material: Material
    composed: Composed
    written: Written | None = None
    """The model's summary or notes, or None for a digest."""
    way: str = "digest"
    why_not: str = ""
    """Why no model wrote the summary although a model was available."""
    restored: SpokenContent = ()
    since: int = 0
    focus: str = ""
    decision: SpaceDecision | None = None

    @property
    def content(self) -> SpokenContent:
        return (Text(text=self.composed.text),)

    @property
    def by(self) -> Literal["model", "notes", "digest"]:
        """The author of the summary. Notes without any text by a model count as a digest."""
        if self.written is None:
            return "digest"
        return "notes" if self.way == "notes" else "model"


class Bounds(NamedTuple):
    aim: int
    """The compaction threshold, from which the target sizes are computed."""
    limit: int
    """The limit. A compaction whose result is larger is impossible."""


def find_bounds(engine: Engine, error: PromptTooLong | None = None) -> Bounds:
    """Return the target sizes in gauge tokens. An overflow error corrects the gauge."""
    full = engine.fullness()
    limit, used = full.window.full_tokens, full.used_tokens
    if error is not None:
        needed, allowed = error.needed_tokens, error.allowed_tokens
        # A provider may report no figures, or figures that contradict its own refusal.
        fits = used * OVERFLOW_SHARE
        if needed and allowed and needed > allowed:
            fits = allowed * limit / full.window.limit_tokens * used / needed
        limit = min(limit, max(1, int(fits)))
    return Bounds(min(full.aim_tokens, limit), limit)


def make_gatherer(engine: Engine, segment: Segment, fold: FactsFold) -> Callable[[], Material]:
    """Prepare `gather_material` for a thread by reading everything from the engine now."""
    weigh, window = engine.make_weigher(), engine.fullness().window
    tokens = round(sum(weigh(item.measure) for item in segment.items))
    free = window.full_tokens - weigh(_measure_rest(engine, segment))
    estimated = tokens_by_weight(engine.view.total, CLAUDE)  # the same units as the budgets
    scale = estimated / max(1, weigh(engine.view.total))
    most_words, most_old_words = (
        max(0, int(scale * (free - max(FREE_SHARE * free, min(share * free, FREE_TOKENS)))))
        for share in (FREE_MOST, FREE_MOST_OLD)
    )
    return partial(
        gather_material,
        # This is a copy, because a thread reads it while the session may append entries.
        engine.view.history.copy(),
        segment,
        tokens,
        most_words_tokens=most_words,
        most_old_words_tokens=most_old_words,
        most_tokens=max(1, int(LINE_SHARE * window.base_tokens)),
        most_open_tokens=int(OPEN_SHARE * window.full_tokens),
        pinned=frozenset(item.id for item in segment.items if engine.view.is_pinned(item)),
        fold=fold,
    )


def write_request(engine: Engine, material: Material, focus: Sequence[str]) -> str:
    """Write the request for a summary. A small window gets a short request."""
    segment = material.segment
    whole = {item.id for item in segment.items}
    return ask_for_summary(
        segment.kind,
        focus=focus,
        directives=material.ledger.directives,
        # An earlier summary shortened the other messages, so the model cannot see them whole.
        shortened=[each for each in material.words().shortened if each.message in whole],
        pivot=segment.pivot,
        most_listed=scale_tokens(LISTED_MESSAGES, engine.fullness().window.limit_tokens),
    )


def check_helps(engine: Engine, material: Material, manner: Manner, bounds: Bounds) -> None:
    """Raise unless the shortest digest would bring the context below the limit."""
    lowest = sum(weight.tokens for weight in floor(engine.view, engine.make_weigher()))
    # If even a digest does not fit, a model's summary would not fit either.
    if lowest >= HIGH_FLOOR_SHARE * bounds.limit:
        composed = compose(material.shrink(*SHARES[-1]), None, manner)
        fit_draft(engine, CompactionDraft(material=material, composed=composed), manner, bounds)


def check_shorter(engine: Engine, material: Material) -> None:
    """Raise if even a short summary would not save space, before paying for a model call."""
    words = render_user_messages(material.ledger, material.trim().words_tokens).text
    least = _measure_rest(engine, material.segment) + measure_content((Text(text=words),))
    full = engine.fullness()
    _check_less(full.used_tokens, engine.size_tokens(least))
    beside = sum((item.measure for item in material.segment.items), NOTHING)
    beside_tokens = max(0, int(tokens_by_weight(beside, CLAUDE)) - estimate_tokens(words))
    short = scale_tokens(SHORT_SUMMARY_TOKENS, full.window.limit_tokens)
    if beside_tokens < short:
        raise NotShorter(
            f"a summary would not be shorter: it takes about {short:,} tokens, and the text"
            f" to replace takes {beside_tokens:,}; nothing was changed"
        )


def check_gain(engine: Engine, draft: CompactionDraft) -> None:
    _check_less(engine.fullness().used_tokens, after_tokens(engine, draft, draft.restored))


def _check_less(before: int, after: int) -> None:
    if after >= before:
        why = f"a summary would not be shorter: {before:,} tokens would become {after:,}"
        raise NotShorter(f"{why}; nothing was changed")


def fit_draft(
    engine: Engine, draft: CompactionDraft, manner: Manner, bounds: Bounds
) -> CompactionDraft:
    """Shrink a draft until the result leaves space to work, or is at least below the limit."""
    fit, line = make_room(engine, draft, manner, bounds.aim), bounds.limit
    if after_tokens(engine, fit, fit.restored) < line:
        return fit
    digest = replace(draft, written=None, way="digest")  # a digest can be cut further
    for shares in SHARES:
        fit = _shrink(digest, draft.material.shrink(*shares), manner)
        if found := _fit_restored(engine, fit, int(ROOM_SHARE * line), line - 1):
            return found
    bare = replace(fit, restored=())
    if engine.make_weigher()(_total_after(engine, bare, ())) < line:
        return bare  # it fits by the weights, and the next answer corrects the gauge
    left = after_tokens(engine, bare, ())
    raise ContextOverflow(explain_floor(floor(engine.view, engine.make_weigher()), line, left))


def make_room(engine: Engine, draft: CompactionDraft, manner: Manner, aim: int) -> CompactionDraft:
    """Restore fewer files and then shorten the text, until enough space is free.

    The user's messages stay, because losing them is worse than less free space.
    """
    fit, target = draft, _target_for(engine, draft, aim)
    for share in ROOMY:
        fit = fit if share == 1 else _shrink(draft, draft.material.shrink(share), manner)
        if found := _fit_restored(engine, fit, target, target):
            return found
    return replace(fit, restored=())


def _fit_restored(
    engine: Engine, draft: CompactionDraft, most: int, most_bare: int
) -> CompactionDraft | None:
    """Restore as many files as fit into `most` tokens, or none if the rest fits `most_bare`."""
    for restored in lighten(draft.restored):
        if after_tokens(engine, draft, restored) <= (most if restored else most_bare):
            return replace(draft, restored=restored)
    return None


def trim(engine: Engine, draft: CompactionDraft, manner: Manner) -> CompactionDraft:
    if after_tokens(engine, draft, draft.restored) < engine.fullness().used_tokens:
        return draft
    return _shrink(draft, draft.material.trim(), manner)


def _target_for(engine: Engine, draft: CompactionDraft, aim: int) -> int:
    """Return the target size, which is larger if the fixed part is large."""
    stays = engine.make_weigher()(_measure_rest(engine, draft.material.segment))
    fixed = stays + draft.material.words_tokens + draft.material.open_tokens
    return int(
        max(
            FILLED_RATIO * aim,
            *(
                kept + share * (aim - kept)
                for kept, share in ((stays, LEAST_SHARE), (fixed, FIXED_SHARE))
            ),
        )
    )


def _shrink(draft: CompactionDraft, material: Material, manner: Manner) -> CompactionDraft:
    composed = compose(material, draft.written, manner)
    return replace(draft, material=material, composed=composed)


def lighten(restored: SpokenContent) -> Iterator[SpokenContent]:
    """Yield the restored content with fewer and fewer files, oldest dropped first, then nothing.

    Todos, plan, skills and hook output go last, because they cannot be read again.
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
        # A compaction keeps pinned items verbatim, so covering them frees nothing.
        if not engine.view.is_pinned(item):
            gone = gone + item.measure
    return engine.view.total - gone


def sum_usage(entries: Sequence[AnyEntry]) -> Usage | None:
    calls = [e.usage for e in entries if isinstance(e, Forked) and e.source == SOURCE]
    return sum(calls, Usage()) if calls else None


def describe(draft: CompactionDraft, before: int, after: int, why_not: str = "") -> str:
    """Describe a compaction in one line, with the reason if no model wrote the summary."""
    how = {
        "digest": "from the log, without a model",
        "notes": "from the notes, without a call",
    }
    way = how.get(draft.way, f"by a model ({draft.way})")
    way = f"{way} ({why_not})" if why_not else way
    return (
        f"compacted {len(draft.material.segment.items)} messages {way}: {before:,} tokens became "
        f"about {after:,}; {draft.composed.survival.share:.0%} of the names in use survive"
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
        # The frame depends on the compaction, so that an undo restores the old frame too.
        engine.record(structs.replace(frame, rests_on=(entry.n,)))
    for directed in _states(draft):
        engine.record(directed)
    return entry


def _make_compacted(
    engine: Engine, draft: CompactionDraft, trigger: Trigger, seconds: float
) -> Compacted:
    segment = draft.material.segment
    if trigger == "manual":
        check_gain(engine, draft)
    before = engine.fullness().used_tokens
    after = after_tokens(engine, draft, draft.restored)
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
        why=describe(draft, before, after, _untold_reason(engine, draft)),
        rule=draft.decision.rule if draft.decision else "",
        lost=tuple(map(str, draft.decision.lost)) if draft.decision else (),
    )


def _untold_reason(engine: Engine, draft: CompactionDraft) -> str:
    """Return why no model wrote the summary, unless an earlier compaction gave the same reason."""
    why_not = draft.why_not
    earlier = (entry.why for entry in engine.view.history if isinstance(entry, Compacted))
    is_told = any(why_not[:REASON_CHARS] in why for why in earlier) if why_not else True
    return "" if is_told else why_not


def _states(draft: CompactionDraft) -> Iterator[Directed]:
    if draft.written is None:
        return
    ledger, items = draft.material.ledger, draft.material.segment.items
    said = {each.message for each in ledger.directives}
    known = {item.id for item in items} | said
    # A claim that a request is done counts only if it cites a message as proof.
    yield from accept(read_claims(draft.written.states), ledger, said=said, known=known)
