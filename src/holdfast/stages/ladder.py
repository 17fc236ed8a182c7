"""The rungs on which a summary is written, from the best to the one that cannot fail.

A fork on the conversation's own prefix; a direct call, which may leave out the oldest rounds; a
call for each piece; and then no call at all: the digest is made from the log. A rung that fails
leaves an entry and the next one is tried. After several failures in a row no model is asked any
more, unless a person asks for it; a success makes good for all of them. Forks run no stages, so
nothing that is asked here can come back here.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from holdfast.capabilities import capabilities
from holdfast.compaction.compose import Material
from holdfast.compaction.summary import Written
from holdfast.compaction.writing import NoSummary, Writer, truncated
from holdfast.engine import Engine
from holdfast.entries import Failed
from holdfast.errors import (
    AuthenticationFailed,
    BudgetSpent,
    ModelError,
    ModelUnavailable,
    PromptTooLong,
)
from holdfast.fork import Prefix
from holdfast.settings import CompactSettings

PIECE_CHARS_PER_TOKEN = 2
"""Cautious: a piece of code or of another script than Latin has more tokens than prose."""
PIECE_SHARE = 0.5
"""Of the window for a piece; the rest is for the question, the answer and the doubt."""
NOBODY = (ModelUnavailable, BudgetSpent, AuthenticationFailed)
"""Nobody answers: the other rungs would only wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A summary, or the word that none could be had and the digest has to do."""

    written: Written | None = None
    way: str = "digest"
    """The rung it came from."""


class Ladder:
    """Climbs down the rungs, and remembers how often all of them broke."""

    def __init__(self) -> None:
        self.failures = 0
        """How often in a row no rung of a model's held."""

    def is_broken(self, settings: CompactSettings) -> bool:
        """Say whether models failed so often that none is asked any more by itself."""
        return self.failures >= settings.failures

    async def climb(
        self,
        engine: Engine,
        material: Material,
        asked: str,
        *,
        is_wished: bool = False,
        by_model: bool = True,
        error: PromptTooLong | None = None,
    ) -> Made:
        """Have the summary written by the first rung that holds.

        `is_wished` says that a person asks for it; `error` that the whole conversation is
        known to be too long, and by how much.
        """
        settings = engine.settings.compact
        if engine.ask is None or not settings.model or not by_model:
            return Made()
        if self.is_broken(settings) and not is_wished:
            return Made()
        for name, way in _rungs(engine, _writer(engine, asked), material, error):
            try:
                async with asyncio.timeout(settings.rung_seconds):
                    written = await way()
            except (ModelError, NoSummary, TimeoutError) as failure:
                said = str(failure) or f"nothing came within {settings.rung_seconds:g} seconds"
                engine.record(Failed(what=f"compact: {name}", error=said))
                if isinstance(failure, NOBODY):
                    break
            else:
                self.failures = 0
                return Made(written=written, way=name)
        self.failures += 1
        return Made()

    async def ahead(self, engine: Engine, asked: str, prefix: Prefix) -> Made:
        """Have the summary written on a fork of what is sent now, for later; raise if it fails."""
        written = await _writer(engine, asked).on_fork(prefix)
        self.failures = 0
        return Made(written=written, way="ahead")


def _writer(engine: Engine, asked: str) -> Writer:
    assert engine.ask is not None
    return Writer(
        ask=engine.ask,
        model=engine.model,
        able=capabilities(engine.model),
        asked=asked,
        window_tokens=engine.fullness().window.limit_tokens,
    )


def _rungs(
    engine: Engine, writer: Writer, material: Material, error: PromptTooLong | None
) -> Iterator[tuple[str, Callable[[], Awaitable[Written]]]]:
    items = material.segment.items
    if error is None and material.segment.kind != "up_to":
        yield "fork", writer.on_fork
    window = engine.fullness().window.limit_tokens
    shorter = truncated(items, error) if error is not None and len(items) > 1 else items
    yield "direct", lambda: writer.directly(shorter)
    piece_chars = int(window * PIECE_SHARE * PIECE_CHARS_PER_TOKEN)
    yield "pieces", lambda: writer.in_pieces(items, piece_chars)
