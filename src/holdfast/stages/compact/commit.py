"""A draft becomes entries: the one place where a compaction is written down.

A draft comes in, made in the session itself or on paper; the compaction goes out, recorded with
what is restored, the frame that was made anew, and what became of the user's requests. A draft
that is no shorter than what it stands for is refused if a person asked for it: nothing is gained,
and nothing forces it.
"""

from collections.abc import Iterator

from msgspec import structs

from holdfast.errors import RequestRejected
from holdfast.log.entries import Compacted, Directed, Framed, Restored
from holdfast.stages.compact.directives import accept, read_claims
from holdfast.stages.compact.draft import CompactionDraft, after_tokens, spent_in, told_why
from holdfast.stages.compact.hooks import Trigger
from holdfast.stages.prefix_lock import drops_thinking
from holdfast.turn.engine import Engine


class NotShorter(RequestRejected):
    """A summary would be as long as what it replaces."""


def recorded(
    engine: Engine,
    draft: CompactionDraft,
    trigger: Trigger,
    *,
    frame: Framed | None = None,
    seconds: float = 0.0,
) -> Compacted:
    """Record a draft with everything that belongs to it."""
    entry = engine.record(_compacted(engine, draft, trigger, seconds))
    assert isinstance(entry, Compacted)
    if draft.restored:
        engine.record(Restored(compaction=entry.n, content=draft.restored))
    if frame is not None:
        engine.record(structs.replace(frame, rests_on=(entry.n,)))
    for directed in _states(draft):
        engine.record(directed)
    return entry


def _compacted(
    engine: Engine, draft: CompactionDraft, trigger: Trigger, seconds: float
) -> Compacted:
    segment = draft.material.segment
    before = engine.fullness().used_tokens
    after = after_tokens(engine, draft, draft.restored)
    if trigger == "manual" and after >= before:
        raise NotShorter(
            f"a summary would be no shorter: {before:,} tokens would become {after:,}; "
            "nothing was changed"
        )
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
        survived=round(draft.composed.survival.share, 4),
        seconds=round(seconds, 3),
        usage=spent_in(engine.view.history[draft.since :]),
        drops_thinking=drops_thinking(engine),
        why=told_why(draft, before, after),
    )


def _states(draft: CompactionDraft) -> Iterator[Directed]:
    """Yield the states a model claims for the user's requests, where a message supports it."""
    if draft.made.written is None:
        return
    ledger, items = draft.material.ledger, draft.material.segment.items
    said = {each.message for each in ledger.directives}
    known = {item.id for item in items} | said
    yield from accept(read_claims(draft.made.written.states), ledger, said=said, known=known)
