"""The fallbacks for writing a summary, from the best to the one that cannot fail.

They are a fork on the conversation's prefix, a direct call, one call per piece, and the digest.
After several failures in a row only manual compactions call a model.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, replace

from longhold.core.log.entries import Failed
from longhold.core.messages import JsonObject, message_to_wire
from longhold.core.models.capabilities import capabilities
from longhold.core.stages.compact.compose import Judged, Material
from longhold.core.stages.compact.owner import CompactRequest
from longhold.core.stages.compact.segment import Segment
from longhold.core.stages.compact.summary import Written
from longhold.core.stages.compact.thrash import STAGE, CompactionOutcomes, is_broken
from longhold.core.stages.compact.writing import NoSummary, SummaryWriter, truncate
from longhold.core.turn.engine import Engine
from longhold.core.turn.fork import AskFork, Prefix
from longhold.core.view.items import render
from longhold.errors import (
    AuthenticationFailed,
    BudgetSpent,
    ModelError,
    ModelUnavailable,
    PromptTooLong,
)

PIECE_CHARS_PER_TOKEN = 2
"""Conservative, because code and non-Latin scripts have more tokens than prose."""
PIECE_SHARE = 0.5
"""Share of the window. The rest is for the question, the answer and a margin."""
NO_ANSWER = (ModelUnavailable, BudgetSpent, AuthenticationFailed)
"""No model answers, so the other fallbacks would only wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeSummary:
    """A summary. If `written` is None, the digest is used."""

    written: Judged | None = None
    way: str = "digest"
    block: JsonObject | None = None
    """A provider's own block that replaces history."""


class Fallbacks:
    def __init__(self, ask: AskFork | None, past: CompactionOutcomes) -> None:
        self.ask = ask
        self._past = past

    async def climb(
        self, engine: Engine, material: Material, asked: str, request: CompactRequest
    ) -> MadeSummary:
        settings = engine.settings.compact
        if self.ask is None or not (settings.model and request.by_model and request.may_ask):
            return MadeSummary()
        past = self._past.follow(engine.view.history)
        if request.trigger != "manual" and is_broken(past, time.time()):
            return MadeSummary()
        writer = replace(self._writer(engine, asked), is_wanted=request.trigger == "manual")
        for name, write in _attempts(engine, writer, material.segment, request.error):
            try:
                async with asyncio.timeout(settings.rung_seconds):
                    made = await write()
            except (ModelError, NoSummary, TimeoutError) as failure:
                said = str(failure) or f"nothing came within {settings.rung_seconds:g} seconds"
                engine.record(Failed(what=f"{STAGE}{name}", error=said))
                if isinstance(failure, NO_ANSWER):
                    break
            else:
                if isinstance(made, Written):
                    return MadeSummary(written=made, way=name)
                return MadeSummary(written=Written(sections={}), way=name, block=made)
        return MadeSummary()

    async def prefetch(self, engine: Engine, asked: str, prefix: Prefix) -> MadeSummary:
        """Write a summary on a fork of the current prefix, for later. Raise if that fails."""
        written = await replace(self._writer(engine, asked), retries=None).ask_fork(prefix)
        return MadeSummary(written=written, way="ahead")

    def _writer(self, engine: Engine, asked: str) -> SummaryWriter:
        assert self.ask is not None
        return SummaryWriter(
            ask=self.ask,
            model=engine.model,
            able=capabilities(engine.model),
            asked=asked,
            window_tokens=engine.fullness().window.limit_tokens,
        )


def _attempts(
    engine: Engine, writer: SummaryWriter, segment: Segment, error: PromptTooLong | None
) -> Iterator[tuple[str, Callable[[], Awaitable[Written | JsonObject]]]]:
    if error is None and _may_provide(engine, segment):
        yield "provider", lambda: writer.by_provider(_prefix_up_to(engine, segment))
    if error is None:
        prefix = _prefix_up_to(engine, segment) if segment.kind == "up_to" else None
        yield "fork", lambda: writer.ask_fork(prefix)
    items = segment.items
    shorter = truncate(items, error) if error is not None and len(items) > 1 else items
    yield "direct", lambda: writer.ask_directly(shorter)
    window = engine.fullness().window.limit_tokens
    piece_chars = int(window * PIECE_SHARE * PIECE_CHARS_PER_TOKEN)
    yield "pieces", lambda: writer.ask_in_pieces(items, piece_chars)


def _may_provide(engine: Engine, segment: Segment) -> bool:
    """True if the provider should compact and its block can be the very first message."""
    return (
        engine.settings.compact.by_provider
        and capabilities(engine.model).compacts_on_demand
        and segment.kind == "full"
        and not engine.frame.instructions
    )


def _prefix_up_to(engine: Engine, segment: Segment) -> Prefix:
    prefix, shown = engine.prefix(), render(segment.items)
    opening = len(prefix.messages) - len(engine.view.messages())
    whole = prefix.messages[: opening + len(shown) - 1]
    cut = prefix.with_messages((*whole, message_to_wire(shown[-1])))
    return replace(cut, before=None)  # a shorter conversation is a different one
