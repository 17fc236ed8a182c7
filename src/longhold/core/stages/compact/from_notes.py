"""Use the notes as the summary. This is tried first because it needs no model call.

Messages the notes do not cover stay word for word. The text is prepared with each update near the
compaction threshold.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from longhold.core.messages import Text
from longhold.core.messages.measure import Measure, measure_content
from longhold.core.messages.secrets import mask_secrets
from longhold.core.messages.text import cut
from longhold.core.stages.compact.compose import Composed, Manner, Material, compose
from longhold.core.stages.compact.draft import (
    FILLED_RATIO,
    CompactionDraft,
    after_tokens,
    make_gatherer,
)
from longhold.core.stages.compact.facts_fold import FactsFold
from longhold.core.stages.compact.fallbacks import MadeSummary
from longhold.core.stages.compact.segment import Segment, segment_before
from longhold.core.stages.notes.notes import KEEP_MOST_TOKENS, Notes, last_whole
from longhold.core.stages.notes.page import NotesPage
from longhold.core.stages.notes.update import SECTION_TOKENS
from longhold.core.stages.prefix_lock import may_move
from longhold.core.turn.engine import Engine
from longhold.core.view.items import Item, Spoken
from longhold.core.view.window import scale_tokens
from longhold.errors import LongholdError

WAY = "notes"
SECTION_CHARS_PER_TOKEN = 4
LEFT_RATIO = 0.85
"""Share of the threshold. Notes that leave more would soon need another compaction."""
READY_RATIO = 0.6
"""Share of the threshold from which each update prepares the text, so that nobody waits later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    page: NotesPage
    file: str
    states: str = ""

    def text(self) -> str:
        sections = ((each.heading, each.written()) for each in self.page.sections)
        parts = [f"## {heading}\n{self._cut(text)}" for heading, text in sections if text]
        lead = ["Notes taken while the work went on:", *filter(None, (self.page.lead,))]
        return "\n\n".join((*lead, *parts)) if parts or self.page.lead else ""

    def _cut(self, text: str) -> str:
        chars = SECTION_TOKENS * SECTION_CHARS_PER_TOKEN
        if len(text) <= chars:
            return text
        where = f"; all of it is in {self.file}" if self.file else ""
        return f"{cut(text, chars)}\n[Cut here{where}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    cursor: int
    judgement: Judgement | None = None
    is_covering: bool = False
    """True if it covers history up to the cursor; otherwise it only adds to the digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    basis: Basis
    manner: Manner
    material: Material
    composed: Composed

    def holds(self, basis: Basis, manner: Manner) -> bool:
        same = replace(basis, cursor=self.basis.cursor)
        return manner == self.manner and same == self.basis


class FromNotes:
    def __init__(self, notes: Notes, facts: FactsFold) -> None:
        self._notes = notes
        self._facts = facts
        self._ready: Ready | None = None

    def serves(self, engine: Engine) -> bool:
        """True if notes are tried before a model is asked for a summary."""
        settings = engine.settings.notes
        if not settings.on or settings.stand_in == "off":
            return False
        has_model = self._notes.ask is not None and engine.settings.compact.model
        return settings.stand_in == "always" or not has_model or self._fresh_cursor(engine) > 0

    def waits(self, engine: Engine) -> bool:
        """True if notes could be used and only the turn's thinking prevents it."""
        return self._ready is not None and self.serves(engine) and not may_move(engine)

    async def make_ready(self, engine: Engine, manner: Manner) -> None:
        full = engine.fullness()
        near = READY_RATIO * full.window.auto_tokens
        if full.used_tokens >= near and self.serves(engine):
            self._ready = await self._made(engine, self._basis(engine), manner)

    async def draft(
        self, engine: Engine, manner: Manner, line: int, *, must: bool = False
    ) -> CompactionDraft | None:
        """Return a compaction from notes, or None. `must` (a full window) overrides thinking."""
        settings, since = engine.settings.notes, len(engine.view.history)
        may_serve_soon = settings.on and settings.stand_in != "off" and self._notes.is_asking
        if not (self.serves(engine) or may_serve_soon):
            return None
        await self._notes.wait()
        if not self.serves(engine) or not (must or may_move(engine)):
            return None
        try:
            ready = await self._fresh(engine, manner)
        except LongholdError:
            return None  # an unreadable page counts as no notes
        segment = self._segment(engine, ready, line) if ready else None
        if ready is None or segment is None:
            return None
        draft = CompactionDraft(
            material=replace(ready.material, segment=segment),
            made=MadeSummary(written=ready.basis.judgement, way=WAY),
            composed=ready.composed,
            since=since,
        )
        return draft if after_tokens(engine, draft, ()) < LEFT_RATIO * line else None

    async def _fresh(self, engine: Engine, manner: Manner) -> Ready | None:
        ready, basis = self._ready, self._basis(engine)
        if ready is not None and ready.holds(basis, manner) and _shows(engine, ready.basis.cursor):
            return ready
        self._ready = None
        return await self._made(engine, basis, manner)

    def _fresh_cursor(self, engine: Engine) -> int:
        cursor = self._notes.judged_upto(engine)
        return cursor if cursor and _shows(engine, cursor) else 0

    def _basis(self, engine: Engine) -> Basis:
        file = self._notes.file(engine)
        page, last = file.read().page, last_whole(engine.view.items)
        judgement = Judgement(
            page=page.as_written(),
            file=str(file.path) if engine.shows_paths else "",
        )
        if not judgement.text():
            return Basis(cursor=last.id if last else 0)
        cursor = self._fresh_cursor(engine)
        if cursor:
            return Basis(cursor=cursor, judgement=judgement, is_covering=True)
        return Basis(cursor=last.id if last else 0, judgement=judgement)

    async def _made(self, engine: Engine, basis: Basis, manner: Manner) -> Ready | None:
        item = engine.view.item_of(basis.cursor)
        if item is None:
            return None
        segment = segment_before(engine.view, engine.view.items.index(item) + 1)
        if segment is None:
            return None
        basis = replace(basis, cursor=segment.last)  # unanswered messages are not covered yet
        kept = segment.kept or (segment.last, segment.last)
        covered = replace(segment, kind="up_to", kept=kept)  # something always follows it
        return await asyncio.to_thread(
            _compose_ready, make_gatherer(engine, covered, self._facts), basis, manner
        )

    def _segment(self, engine: Engine, ready: Ready, line: int) -> Segment | None:
        item, settings = engine.view.item_of(ready.basis.cursor), engine.settings.notes
        if item is None:
            return None
        window, items = engine.fullness().window.limit_tokens, engine.view.items
        weigh = engine.make_weigher()
        taken = measure_content((Text(text=ready.composed.text),)) + engine.frame.measure
        room = int(FILLED_RATIO * line - weigh(taken))
        least = scale_tokens(settings.keep_tokens, window)
        enough = Enough(
            tokens=least,
            messages=settings.keep_messages,
            most_tokens=min(scale_tokens(KEEP_MOST_TOKENS, window), max(least, room)),
        )
        start = find_kept_start(items, items.index(item) + 1, weigh, enough)
        return segment_before(engine.view, start)


@dataclass(frozen=True, slots=True, kw_only=True)
class Enough:
    tokens: int
    messages: int
    most_tokens: int


def find_kept_start(
    items: Sequence[Item], start: int, weigh: Callable[[Measure], float], enough: Enough
) -> int:
    """Return the first item to keep; `start` is the first that the notes do not cover.

    The upper limit of `enough` applies only to items before `start`.
    """
    first, start = _skip_restored(items), max(start, _skip_summary(items))
    tokens = sum(weigh(item.measure) for item in items[start:])
    texts = sum(has_text(item) for item in items[start:])
    while start > first:
        if tokens >= enough.most_tokens:
            break
        if tokens >= enough.tokens and texts >= enough.messages:
            break
        start -= 1
        tokens += weigh(items[start].measure)
        texts += has_text(items[start])
    return start


def has_text(item: Item) -> bool:
    if isinstance(item, Spoken):
        return item.kind == "said" and not item.hidden
    return any(isinstance(block, Text) and block.text.strip() for block in item.content)


def _skip_summary(items: Sequence[Item]) -> int:
    summaries = [i for i, item in enumerate(items) if _is_spoken(item, "summary")]
    first = summaries[-1] + 1 if summaries else 0
    while first < len(items) and _is_spoken(items[first], "restored"):
        first += 1
    return first


def _skip_restored(items: Sequence[Item]) -> int:
    """Return where to start keeping: earlier messages precede outdated restored files."""
    behind = (i + 1 for i, item in enumerate(items) if _is_spoken(item, "summary", "restored"))
    return max(behind, default=0)


def _is_spoken(item: Item, *kinds: str) -> bool:
    return isinstance(item, Spoken) and item.kind in kinds


def _shows(engine: Engine, n: int) -> bool:
    item = engine.view.item_of(n)
    return item is not None and item.id == n


def _compose_ready(gather: Callable[[], Material], basis: Basis, manner: Manner) -> Ready:
    """Compose the text. Pure, because it runs in a thread."""
    material, judgement = gather(), basis.judgement
    composed = compose(material, judgement if basis.is_covering else None, manner)
    if judgement is not None and not basis.is_covering:
        composed = replace(composed, text=f"{composed.text}\n\n{mask_secrets(judgement.text())}")
    return Ready(basis=basis, manner=manner, material=material, composed=composed)
