"""Decide when notes are updated, and run updates in the background after answers."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from longhold.core.log.cursor import LogCursor
from longhold.core.log.entries import Asked, Noted, Replied
from longhold.core.log.spending import make_failure
from longhold.core.messages import ToolUse, Usage
from longhold.core.policy.threshold import Fullness
from longhold.core.request.lifetime import lifetime_seconds
from longhold.core.settings import NotesSettings
from longhold.core.settings.private_files import Overtaken
from longhold.core.turn.answering import own_refusal
from longhold.core.turn.background import Background
from longhold.core.turn.engine import Engine
from longhold.core.turn.fork.asking import AskFork
from longhold.core.turn.fork.prefix import Prefix
from longhold.core.view.items import Item, Round, last_round
from longhold.core.view.window import scale_tokens
from longhold.errors import LongholdError, StoreError

NEAR_RATIO = 0.85  # share of the threshold from which a model's notes pay
PAUSED_RATIO = 0.6  # the same share after a pause, which may end the session
TOOL_CALLS = 3  # minimum number of calls since the last update, unless a turn is finished
WAIT_SECONDS = 15.0
STALE_SECONDS = 60.0  # an update that has run this long is assumed to hang
KEEP_MOST_TOKENS = 40_000  # kept when notes replace history, next to messages not yet noted

if TYPE_CHECKING:
    from longhold.core.stages.notes.file import NotesFile
    from longhold.core.stages.notes.update import PageWriter, WrittenPage


def is_due(
    settings: NotesSettings,
    window_tokens: int,
    *,
    used_tokens: int,
    before_tokens: int | None,
    calls: int,
    is_at_rest: bool,
) -> bool:
    """Return whether a first update (`before_tokens` is None) or another one is due."""
    if before_tokens is None:
        return used_tokens >= scale_tokens(settings.first_tokens, window_tokens)
    if used_tokens - before_tokens < scale_tokens(settings.growth_tokens, window_tokens):
        return False
    return calls >= TOOL_CALLS or is_at_rest


def model_pays(full: Fullness, *, judged_tokens: int, is_after_pause: bool) -> bool:
    """Return whether notes by a model pay. Each update reads the whole context."""
    near = PAUSED_RATIO if is_after_pause else NEAR_RATIO
    if full.used_tokens < near * full.window.base_tokens:
        return False
    behind = scale_tokens(KEEP_MOST_TOKENS, full.window.limit_tokens)
    return judged_tokens == 0 or full.used_tokens - judged_tokens >= behind


SOURCE = "notes"
WHAT = "notes"
FAILURES = (LongholdError, OSError, ValueError, Overtaken)
TOOLS = ("Edit", "Write")


class UpdatePoint(NamedTuple):
    cursor: int
    used_tokens: int
    prefix: Prefix | None = None


class Notes:
    def __init__(
        self,
        *,
        ask: AskFork | None = None,
        can_edit: bool = False,
        background: Background | None = None,
    ) -> None:
        """A model writes notes if `ask` is given and `can_edit` lets a fork use the tools."""
        self.ask = ask
        self._can_edit = can_edit
        self._writer: PageWriter | None = None
        self._before: Noted | None = None
        self._baseline_tokens: int | None = None
        self._calls = 0
        self._cursor = LogCursor()
        self._job = (background or Background()).job(WHAT)
        self._began = 0.0
        self._asks = False
        self._judged_tokens = self._judged_upto = 0  # the state when the model last wrote notes
        self._asked_at = 0.0
        self._is_after_pause = False  # the cache expired, so the user is not in a hurry

    def file(self, engine: Engine) -> "NotesFile":
        return self._load(engine).file

    def _load(self, engine: Engine) -> "PageWriter":
        if self._writer is None:
            # This is imported here because short sessions end before there is anything to note.
            from longhold.core.stages.notes.update import PageWriter

            self._writer = PageWriter(engine, self.ask)
        return self._writer

    @property
    def is_running(self) -> bool:
        return self._job.is_busy

    @property
    def is_asking(self) -> bool:
        return self.is_running and self._asks

    def judged_upto(self, engine: Engine) -> int:
        self._follow(engine)
        return self._judged_upto

    def after_turn(self, engine: Engine) -> None:
        asked = engine.view.asked
        if not engine.settings.notes.on or (asked and asked.source != "main"):
            return
        full, last = engine.fullness(), last_round(engine.view.items)
        self._follow(engine)
        if self._baseline_tokens is not None:
            self._baseline_tokens = min(self._baseline_tokens, full.used_tokens)
        self._judged_tokens = min(self._judged_tokens, full.used_tokens)
        due = is_due(
            engine.settings.notes,
            full.window.limit_tokens,
            used_tokens=full.used_tokens,
            before_tokens=self._baseline_tokens,
            calls=self._calls,
            is_at_rest=last is not None and not last.tool_uses(),
        )
        asks = self._asks_model(engine, full, is_due=due)
        if (due or asks) and (point := self._update_point(engine, full.used_tokens, asks=asks)):
            self._begin(engine, point)

    def _asks_model(self, engine: Engine, full: Fullness, *, is_due: bool) -> bool:
        settings = engine.settings.notes
        if not self._can_ask(engine) or (self.is_asking and settings.model_when == "paying"):
            return False
        if settings.model_when == "always":
            wanted = is_due
        else:
            wanted = model_pays(
                full, judged_tokens=self._judged_tokens, is_after_pause=self._is_after_pause
            )
        return wanted and not own_refusal(engine, SOURCE)

    def _can_ask(self, engine: Engine) -> bool:
        if not self._can_edit or self.ask is None or not engine.settings.notes.model:
            return False
        return {str(tool.get("name")) for tool in engine.frame.tools}.issuperset(TOOLS)

    async def wait(self) -> None:
        if self.is_running and time.monotonic() - self._began < STALE_SECONDS:
            await self._job.wait(WAIT_SECONDS)

    async def update(self, engine: Engine) -> None:
        await self.wait()
        self._follow(engine)
        used, asks = engine.fullness().used_tokens, self._can_ask(engine)
        if (point := self._update_point(engine, used, asks=asks)) is not None:
            await self._update_safely(engine, point)

    def close(self, engine: Engine) -> None:
        """Stop an update in progress, but still write the engine's lines."""
        self._job.cancel()
        if self._before is None or not engine.settings.notes.on:
            return
        last = last_whole(engine.view.items)
        if last is None or last.id == self._before.cursor:
            return
        used_tokens = engine.fullness().used_tokens
        try:
            written = self._load(engine).prepare()()
            point = UpdatePoint(cursor=last.id, used_tokens=used_tokens)
            self._note(engine, point, None, written)
        except FAILURES as error:
            tell_failure(engine, error)

    def _follow(self, engine: Engine) -> None:
        lives = lifetime_seconds(engine.model, engine.frame.lifetime)
        for entry in self._cursor.advance(engine.view.history):
            match entry:
                case Noted(by="engine" | "model"):
                    self._before, self._baseline_tokens = entry, entry.context_tokens
                    self._calls = 0
                    if entry.by == "model":
                        self._judged_tokens, self._is_after_pause = entry.context_tokens, False
                        self._judged_upto = entry.cursor
                case Asked(at=at):
                    self._is_after_pause |= 0 < self._asked_at <= at - lives
                    self._asked_at = at
                case Replied(content=content):
                    self._calls += sum(isinstance(block, ToolUse) for block in content)

    def _update_point(self, engine: Engine, used_tokens: int, *, asks: bool) -> UpdatePoint | None:
        item = last_whole(engine.view.items)
        if item is None:
            return None
        prefix = engine.prefix() if asks else None
        return UpdatePoint(cursor=item.id, used_tokens=used_tokens, prefix=prefix)

    def _begin(self, engine: Engine, point: UpdatePoint) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return  # without an event loop it cannot run, but the log keeps the facts
        if not self.is_running:
            self._baseline_tokens, self._calls = point.used_tokens, 0
            self._began, self._asks = time.monotonic(), point.prefix is not None
        self._job.begin(lambda: self._update_safely(engine, point))

    async def _update_safely(self, engine: Engine, point: UpdatePoint) -> None:
        self._began, self._asks = time.monotonic(), point.prefix is not None
        try:
            writer = self._load(engine)
            usage = await writer.ask(point.prefix) if point.prefix is not None else None
            written = await asyncio.to_thread(writer.prepare())
            self._note(engine, point, usage, written)
        except FAILURES as error:
            tell_failure(engine, error)

    def _note(
        self, engine: Engine, point: UpdatePoint, usage: Usage | None, written: "WrittenPage"
    ) -> None:
        noted = Noted(
            cursor=point.cursor,
            by="model" if usage is not None else "engine",
            tokens=written.tokens,
            context_tokens=point.used_tokens,
            sha256=written.sha256,
            usage=usage,
        )
        engine.report(noted)
        self._follow(engine)


def last_whole(items: Sequence[Item]) -> Item | None:
    for item in reversed(items):
        if not (isinstance(item, Round) and item.missing()):
            return item
    return None


def tell_failure(engine: Engine, error: BaseException) -> None:
    """Record a failure. If the log cannot be written, ignore the failure."""
    with suppress(StoreError, OSError):
        engine.report(make_failure(WHAT, error))
