"""A compaction tried out on a history: looked at first, perhaps changed by hand, taken or left.

A history comes in, of a session of ours or of somebody else's transcript. On a log that is thrown
away it becomes a session, in which a draft is made as in any other. Nothing here touches what the
history came from; whoever likes the draft has it recorded where it belongs.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from msgspec import structs

from holdfast.compaction.compose import Manner, compose
from holdfast.compaction.directives import accept, read_claims
from holdfast.compaction.reread import tokens_of
from holdfast.entries import AnyEntry, Compacted, Directed, Forked, Restored
from holdfast.log import Header, Log, write_log
from holdfast.messages import Text
from holdfast.session import Session
from holdfast.settings import Settings
from holdfast.stages.compact import Wish
from holdfast.stages.drafting import Draft, after_tokens, spent_in, told_why
from holdfast.stages.timing import drops_thinking

PAPER = "paper"
"""What the log that is thrown away is called."""

By: TypeAlias = Literal["person", "model", "digest"]


@contextmanager
def on_paper(
    history: Sequence[AnyEntry], settings: Settings, *, client: object = None, model: str = ""
) -> Iterator[Session]:
    """Make a session of a history, on a log that is thrown away; nothing is learnt from it."""
    quiet = replace(settings, gauge=replace(settings.gauge, calibrate=False))
    with tempfile.TemporaryDirectory(prefix="holdfast-") as place:
        path = Path(place) / f"{PAPER}.jsonl"
        write_log(path, Header(session=PAPER), history)
        session = Session(Log.open(path), quiet, client=client)
        try:
            if model and session.view.model != model:
                session.switch(model, "tried out")
            yield session
        finally:
            session.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """How a tried-out summary speaks of where everything lies."""

    log: str = ""
    """The session or the transcript it stands for; nothing where there is none to point at."""
    has_history: bool = False


def edited(draft: Draft, text: str) -> Draft:
    """Put a person's words in the place of a summary."""
    weight = tokens_of((Text(text=text),))
    return replace(draft, composed=replace(draft.composed, text=text, tokens=weight))


async def tried(session: Session, wish: Wish, manners: Manners) -> Draft:
    """Draft a compaction and let it point at the original rather than at the paper."""
    stage = session.compaction
    draft = await stage.draft(session.engine, wish)
    manner = Manner(
        log=manners.log,
        has_history=manners.has_history,
        is_auto=False,
        masked=stage.around.masked,
    )
    return replace(draft, composed=compose(draft.material, draft.made.written, manner))


async def take(
    session: Session, draft: Draft, wish: Wish, *, seconds: float = 0.0, is_edited: bool = False
) -> Compacted:
    """Record a draft in a session, with what is restored and what became of the requests.

    Every draft of the same history will do, also one that was made on paper.
    """
    engine = session.engine
    before = engine.fullness().used_tokens
    after = after_tokens(engine, draft, draft.restored)
    by: By = "person" if is_edited else "model" if draft.made.written else "digest"
    segment = draft.material.segment
    entry = engine.record(
        Compacted(
            first=segment.first,
            last=segment.last,
            summary=(Text(text=draft.composed.text),),
            kind=segment.kind,
            trigger=wish.trigger,
            by=by,
            kept=segment.kept,
            before_tokens=before,
            after_tokens=after,
            survived=round(draft.composed.survival.share, 4),
            seconds=round(seconds, 3),
            usage=spent_in(engine.view.history[draft.since :]),
            drops_thinking=drops_thinking(engine),
            why=told_why(draft, before, after),
        )
    )
    assert isinstance(entry, Compacted)
    if draft.restored:
        engine.record(Restored(compaction=entry.n, content=draft.restored))
    for directed in _states(draft):
        engine.record(directed)
    await session.compaction.around.after(entry)
    return entry


def carry_over(paper: Session, session: Session, draft: Draft) -> Draft:
    """Let a session know what was spent on a draft that was made on paper."""
    since = len(session.view.history)
    for entry in paper.view.history[draft.since :]:
        if isinstance(entry, Forked):
            session.engine.record(structs.replace(entry, n=0))
    return replace(draft, since=since)


def _states(draft: Draft) -> Iterator[Directed]:
    """Give what a model says became of the user's requests, where a message shows it."""
    if draft.made.written is None:
        return
    ledger, items = draft.material.ledger, draft.material.segment.items
    said = {each.message for each in ledger.directives}
    known = {item.id for item in items} | said
    yield from accept(read_claims(draft.made.written.states), ledger, said=said, known=known)
