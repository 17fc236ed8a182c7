"""A summary from the notes. It is tried first, because it needs no model call.

Messages that the notes do not cover stay word for word.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from longhold.core.messages import Text
from longhold.core.messages.measure import Measure, measure_content
from longhold.core.messages.secrets import mask_secrets
from longhold.core.messages.text import cut
from longhold.core.stages.compact.compose import Composed, Manner, compose
from longhold.core.stages.compact.draft import (
    FILLED_RATIO,
    Bounds,
    CompactionDraft,
    after_tokens,
    make_gatherer,
)
from longhold.core.stages.compact.facts_fold import FactsFold
from longhold.core.stages.compact.segment import Segment, is_summary, segment_before
from longhold.core.stages.compact.summary import Written
from longhold.core.stages.notes.file import NotesPage
from longhold.core.stages.notes.notes import KEEP_MOST_TOKENS, Notes, last_whole
from longhold.core.stages.notes.update import SECTION_TOKENS
from longhold.core.turn.engine import Engine
from longhold.core.view.items import Item, Spoken
from longhold.core.view.window import scale_tokens
from longhold.errors import LongholdError

WAY = "notes"
SECTION_CHARS_PER_TOKEN = 4
LEFT_RATIO = 0.85
"""Share of the threshold. If notes leave more, another compaction would follow soon."""


def show_notes(page: NotesPage, file: str = "") -> str:
    """Render notes for a summary. Long sections are cut and refer to the file."""
    chars = SECTION_TOKENS * SECTION_CHARS_PER_TOKEN
    cut_here = f"\n[Cut here{f'; all of it is in {file}' if file else ''}]"
    parts = [
        f"## {each.heading}\n{cut(text, chars)}{cut_here if len(text) > chars else ''}"
        for each in page.sections
        if (text := each.get_text())
    ]
    lead = ["Notes taken while the work went on:", *filter(None, (page.lead,))]
    return "\n\n".join((*lead, *parts)) if parts or page.lead else ""


class FromNotes:
    def __init__(self, notes: Notes, facts: FactsFold) -> None:
        self._notes = notes
        self._facts = facts

    def explain_absence(self, engine: Engine, *, can_wait: bool = True) -> str:
        """Return why notes are not tried before a model, or "" if they are."""
        settings = engine.settings.notes
        if engine.settings.compact.instructions:
            return "`compact.instructions` has special instructions for the summary"
        if not settings.on or settings.stand_in == "off":
            return "notes are off"
        has_model = self._notes.ask is not None and engine.settings.compact.model
        if settings.stand_in == "always" or not has_model or (can_wait and self._notes.is_asking):
            return ""
        return "" if self._fresh_cursor(engine) else "no notes by a model cover the history"

    async def draft(self, engine: Engine, manner: Manner, bounds: Bounds) -> CompactionDraft | None:
        """Return a compaction from notes, or None if they are unreadable or leave too much."""
        since = len(engine.view.history)
        await self._notes.wait()
        if self.explain_absence(engine, can_wait=False):
            return None
        try:
            judgement = self._read(engine)
        except LongholdError:
            return None  # unreadable notes count as missing
        last = last_whole(engine.view.items)
        judged_upto = self._fresh_cursor(engine) if judgement else 0
        item = engine.view.item_of(judged_upto or (last.id if last else 0))
        end = engine.view.items.index(item) + 1 if item is not None else 0
        covered = segment_before(engine.view, end) if end else None
        if covered is None:
            return None
        kept = covered.kept or (covered.last, covered.last)  # some message always follows the notes
        gather = make_gatherer(engine, replace(covered, kind="up_to", kept=kept), self._facts)
        material = await asyncio.to_thread(gather)
        written = judgement if judged_upto else None
        composed = await asyncio.to_thread(compose, material, written, manner)
        if judgement is not None and written is None:  # notes that cover nothing are only added
            text = f"{composed.text}\n\n{mask_secrets(judgement.text)}"
            composed = replace(composed, text=text)
        segment = self._segment(engine, covered.last, composed, bounds.aim)
        if segment is None:
            return None
        draft = CompactionDraft(
            material=replace(material, segment=segment),
            composed=composed,
            written=judgement,
            way=WAY,
            since=since,
        )
        return draft if after_tokens(engine, draft, ()) < LEFT_RATIO * bounds.aim else None

    def _fresh_cursor(self, engine: Engine) -> int:
        """Return the last message that a model's notes cover, or 0 if it is not shown."""
        cursor = self._notes.judged_upto(engine)
        item = engine.view.item_of(cursor)
        return cursor if item is not None and item.id == cursor else 0

    def _read(self, engine: Engine) -> Written | None:
        file = self._notes.file(engine)
        where = str(file.path) if engine.shows_paths else ""
        text = show_notes(file.read().page.as_written(), where)
        return Written(text=text) if text else None

    def _segment(
        self, engine: Engine, cursor: int, composed: Composed, line: int
    ) -> Segment | None:
        item, settings = engine.view.item_of(cursor), engine.settings.notes
        if item is None:
            return None
        window, items = engine.fullness().window.limit_tokens, engine.view.items
        weigh = engine.make_weigher()
        taken = measure_content((Text(text=composed.text),)) + engine.frame.measure
        room = int(FILLED_RATIO * line - weigh(taken))
        least = scale_tokens(settings.keep_tokens, window)
        enough = Enough(
            tokens=least,
            messages=settings.keep_messages,
            most_tokens=min(scale_tokens(KEEP_MOST_TOKENS, window), max(least, room)),
        )
        start = find_kept_start(items, items.index(item) + 1, weigh, enough)
        return segment_before(engine.view, start)


class Enough(NamedTuple):
    tokens: int
    messages: int
    most_tokens: int


def find_kept_start(
    items: Sequence[Item], start: int, weigh: Callable[[Measure], float], enough: Enough
) -> int:
    """Return the first item to keep. `start` is the first item that the notes do not cover.

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
    first = max((i + 1 for i, item in enumerate(items) if is_summary(item)), default=0)
    while first < len(items) and _is_restored(items[first]):
        first += 1
    return first


def _skip_restored(items: Sequence[Item]) -> int:
    """Return the first item to keep, after any restored files that are outdated."""
    behind = (i + 1 for i, item in enumerate(items) if is_summary(item) or _is_restored(item))
    return max(behind, default=0)


def _is_restored(item: Item) -> bool:
    return isinstance(item, Spoken) and item.kind == "restored"
