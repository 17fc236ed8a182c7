"""Tries out a compaction on a copy of a history, so that a caller can record or discard it.

The copy is a session on a temporary log. Only `take` changes the original session.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from longhold.core.log import Header, Log, write_log
from longhold.core.log.entries import AnyEntry, Compacted, Forked
from longhold.core.log.shared import SharedRecords
from longhold.core.settings import Settings
from longhold.core.stages.compact.compose import Manner, compose
from longhold.core.stages.compact.draft import CompactionDraft, record_draft
from longhold.core.stages.compact.owner import CompactionHooks, CompactRequest
from longhold.core.turn.engine import Engine
from longhold.session.session import Session

PAPER = "paper"


@contextmanager
def open_scratch(
    history: Sequence[AnyEntry],
    settings: Settings,
    *,
    client: object = None,
    model: str = "",
    shared: SharedRecords | None = None,
    hooks: Callable[[Engine], CompactionHooks] | None = None,
) -> Iterator[Session]:
    """Open a session on a temporary log. `shared` has calibration records that are not in files."""
    quiet = replace(settings, gauge=replace(settings.gauge, calibrate=False))
    with tempfile.TemporaryDirectory(prefix="longhold-") as place:
        path = Path(place) / f"{PAPER}.jsonl"
        write_log(path, Header(session=PAPER), history)
        session = Session._over(Log.open(path, shared=shared), quiet, client=client, hooks=hooks)
        try:
            if model and session.view.model != model:
                session.switch(model, "tried out")
            yield session
        finally:
            session.close()


async def draft_compaction(
    session: Session, request: CompactRequest, manner: Manner
) -> CompactionDraft:
    """Draft a compaction that refers to the original log, not to the temporary one."""
    stage = session._layers.compact
    draft = await stage.load().draft(session._engine, request)
    manual = replace(manner, is_auto=False)
    return replace(draft, composed=compose(draft.material, draft.written, manual))


async def take(
    session: Session, draft: CompactionDraft, request: CompactRequest, *, seconds: float = 0.0
) -> Compacted:
    """Record a draft in a session. It may come from a scratch session of the same history."""
    entry = record_draft(session._engine, draft, request.trigger, seconds=seconds)
    await session._layers.compact.hooks.after(entry)
    return entry


def carry_over(paper: Session, session: Session, draft: CompactionDraft) -> CompactionDraft:
    since = len(session.view.history)
    for entry in paper.view.history[draft.since :]:
        if isinstance(entry, Forked):
            session._engine.record(structs.replace(entry, n=0))
    return replace(draft, since=since)
