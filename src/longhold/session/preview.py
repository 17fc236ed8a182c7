"""Previews a compaction: sizes, prices, lost and surviving content, and good places to split.

It changes nothing and calls no model.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from longhold.core.messages import Image, text_of
from longhold.core.messages.measure import NOTHING
from longhold.core.messages.text import one_line
from longhold.core.models.prices import cost
from longhold.core.stages.compact.draft import CompactionDraft, after_tokens
from longhold.core.stages.compact.segment import tokens_of
from longhold.core.stages.compact.summary import OUTPUT_TOKENS
from longhold.core.view import View
from longhold.core.view.items import Item, Round, Spoken
from longhold.session.session import Session

SEAMS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """The content that a compaction removes from the view. All of it stays in the log or the transcript."""

    said: int
    verbatim: int
    answers: int
    results: dict[str, int]
    pictures: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The cost and savings of a compaction, in US dollars."""

    model: str
    call_before: float
    """The cost of reading the current context from the cache."""
    call_after: float
    """The cost of reading the compacted context from the cache."""
    first_after: float
    """The cost of writing the compacted context to the cache."""
    asking: float
    """The maximum cost of having the model write the summary in one call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    covered: int
    first: int
    last: int
    kept: int
    before_tokens: int
    after_tokens: int
    unseen_tokens: int
    """Tokens of the system prompt and tools, if the history lacks them. Both sizes include them."""
    restored_tokens: int
    by: str
    names: int
    """The number of recently used exact names. `survived` is the share that remains."""
    survived: float
    gone: Gone
    price: Price | None
    summary: str


def preview(session: Session, draft: CompactionDraft) -> Preview:
    view, segment = session.view, draft.material.segment
    covered = [item for item in segment.items if not view.is_pinned(item)]
    before = session.fullness().used_tokens
    after = after_tokens(session._engine, draft, draft.restored)
    survival, frame = draft.composed.survival, view.frame
    has_frame = frame is not None and bool(frame.sections or frame.tools)
    return Preview(
        covered=len(covered),
        first=segment.items[0].order,  # for a summary, its first replaced message
        last=segment.last,
        kept=len(view.items) - len(covered),
        before_tokens=before,
        after_tokens=after,
        unseen_tokens=0 if has_frame else max(0, session._engine.size_tokens(NOTHING)),
        restored_tokens=tokens_of(draft.restored) if draft.restored else 0,
        by=draft.by,
        names=survival.names,
        survived=survival.share,
        gone=_count_gone(covered, draft.composed.text),
        price=_price(session._engine.model, before, after),
        summary=draft.composed.text,
    )


def _count_gone(items: Sequence[Item], summary: str) -> Gone:
    asked, line = [item for item in items if _is_asked(item)], one_line(summary)
    rounds = [item for item in items if isinstance(item, Round)]
    results = Counter(use.name for item in rounds for use in item.tool_uses())
    blocks = [block for item in items for block in item.content]
    shown = [
        block
        for item in rounds
        for result in item.results
        if not isinstance(result.content, str)
        for block in result.content
    ]
    return Gone(
        said=len(asked),
        verbatim=sum(one_line(text_of(item.content)) in line for item in asked),
        answers=len(rounds),
        results=dict(results.most_common()),
        pictures=sum(isinstance(block, Image) for block in (*blocks, *shown)),
    )


def _price(model: str, before: int, after: int) -> Price | None:
    asking = cost(model, uncached_tokens=before, output_tokens=OUTPUT_TOKENS)
    reading = cost(model, read_tokens=before)
    shorter = cost(model, read_tokens=after)
    writing = cost(model, write_5m_tokens=after)
    if not (asking and reading and shorter and writing):
        return None
    return Price(
        model=model,
        call_before=reading.total,
        call_after=shorter.total,
        first_after=writing.total,
        asking=asking.total,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Seam:
    up_to: int
    start: int
    pause_seconds: float
    said: str
    covers: int


def natural_seams(view: View, most: int = SEAMS) -> list[Seam]:
    """Find the best places to cut. These are new requests after long pauses or near the middle."""
    end = view.count_compactable()
    at = {entry.n: entry.at for entry in view.history}
    found = [
        _seam(view.items, i, at)
        for i in range(2, end)
        if _is_asked(view.items[i]) and isinstance(view.items[i - 1], Round)
    ]
    ranked = sorted(found, key=lambda seam: (-seam.pause_seconds, abs(seam.covers - end / 2)))
    return sorted(ranked[:most], key=lambda seam: seam.start)


def _is_asked(item: Item) -> bool:
    return isinstance(item, Spoken) and item.is_asked()


def _seam(items: Sequence[Item], i: int, at: dict[int, float]) -> Seam:
    before, item = items[i - 1], items[i]
    results = before.results if isinstance(before, Round) else ()
    last = max((result.id for result in results), default=before.id)
    since, until = at.get(last, 0.0), at.get(item.id, 0.0)
    pause = max(0.0, until - since) if since and until else 0.0
    said = one_line(text_of(item.content))
    return Seam(up_to=before.id, start=item.id, pause_seconds=pause, said=said, covers=i)
