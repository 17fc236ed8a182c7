"""An agent's memory: its tool, its place in the prompt, what is recalled, and what is learnt.

An agent comes in and leaves with the memory tool, the index in its prompt, a stage that recalls,
and jobs beside the conversation that begin when a piece of work is done. Their reports reach the
log by the outbox, their news the user. Nothing that goes wrong here ends a turn.
"""

import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from holdfast.agent.agent import Agent
from holdfast.agent.background_permissions import judged_by
from holdfast.agent.dream_jobs import DreamJobs
from holdfast.errors import ConfigError, HoldfastError
from holdfast.log import outbox
from holdfast.log.entries import AnyEntry, Failed, Recalled, Remembered
from holdfast.memory.choosing import choose_with
from holdfast.memory.consent import ConsentedMemories
from holdfast.memory.extract import Extraction
from holdfast.memory.extraction_cursor import ExtractionCursor
from holdfast.memory.lazy_store import LazyStore
from holdfast.memory.paths import TEAM, memory_directory, team_directory
from holdfast.memory.permit import MEMORY, memories_only
from holdfast.memory.provenance import Seal
from holdfast.memory.recall import Recall, Recollection
from holdfast.memory.recall_stage import RecallStage
from holdfast.memory.tool import memory_tool
from holdfast.memory.untrusted_input import UntrustedInput, outside_below
from holdfast.request.prompt.sections import memory_text
from holdfast.turn.engine import Engine
from holdfast.turn.fork import Prefix
from holdfast.view.items import Round

EXTRACT = "memory"
"""What the job, and its failures, go by."""
TROUBLE = (HoldfastError, OSError, sqlite3.Error)
"""What a store that is damaged, locked or full may raise."""


def remember(agent: Agent, source: str) -> "MemoryJobs | None":
    """Give an agent its long-term memory; nothing if that is off or its tools are somebody's own."""
    limits = agent.engine.settings.memory
    if not limits.on or any(tool.name == MEMORY for tool in agent.tools):
        return None
    held = _held(agent, learns=limits.extract in ("always", source))
    held.attach()
    return held


def dreams_of(agent: Agent) -> DreamJobs:
    """Give the dreams of an agent's project, for who wishes one now."""
    if not agent.engine.settings.memory.on:
        raise ConfigError("there is nothing to put in order: memory is off (memory.on)")
    return _held(agent, learns=False).dreams


def _held(agent: Agent, *, learns: bool) -> "MemoryJobs":
    limits, root = agent.engine.settings.memory, agent.tool_context.root
    team = team_directory(root)
    return MemoryJobs(
        agent=agent,
        opened=LazyStore(
            memory_directory(agent.tool_context.home, root, limits.directory), team, limits
        ),
        repository=team.parents[len(TEAM.parts) - 1],
        learns=learns,
    )


@dataclass(slots=True, kw_only=True)
class MemoryJobs:
    """One agent's memory."""

    agent: Agent
    opened: LazyStore
    repository: Path
    learns: bool
    """Memories are extracted, and put in order, beside the conversation."""
    clock: Callable[[], float] = time.time
    dreams: DreamJobs = field(init=False)
    _stage: RecallStage = field(init=False)
    _unread: ExtractionCursor = field(default_factory=ExtractionCursor)
    _outside: UntrustedInput = field(default_factory=UntrustedInput)
    _recall: Recall | None = None
    _rests: int = 0
    """Ends of work since memories were last extracted."""

    def __post_init__(self) -> None:
        self._stage = RecallStage(self.recall)
        self.dreams = DreamJobs(
            agent=self.agent,
            opened=self.opened,
            repository=self.repository,
            is_outside=self.is_outside,
            leave=self.leave,
            clock=self.clock,
        )

    @property
    def engine(self) -> Engine:
        """The session's."""
        return self.agent.engine

    @property
    def directory(self) -> Path:
        """Where the session keeps what is beside its log."""
        return self.engine.log.path.with_suffix("")

    def attach(self) -> None:
        """Put tool, prompt, stage and jobs into the agent."""
        agent, engine = self.agent, self.engine
        pages = ConsentedMemories(
            open=self.opened.store, by="agent", seal=self._seal, is_outside=self.is_outside
        )
        agent.tools = (*agent.tools, memory_tool(pages, self.clock))
        agent.memory = self.section
        agent.background.on_failure = self._failed
        agent.at_close = (*agent.at_close, self.close)
        self._take_reports()
        self._stage.skip(engine.view.history)
        engine.stages = (self._stage, *engine.stages)
        engine.offers = (*engine.offers, self.offered)

    def section(self) -> str:
        """Write the prompt's section on memory, with the index as it is now."""
        try:
            return memory_text(self.opened.index())
        except TROUBLE as error:
            self.agent.notify(f"memories cannot be read: {error}")
            return ""

    async def recall(self, asked: str) -> Recollection | None:
        """Find what bears on a question and was not shown in this session before."""
        if not self.opened.has_any:
            return None
        self._recall = self._recall or self._recalling()
        return await self._recall.recall(asked)

    def _recalling(self) -> Recall:
        """Go on where the log says that this session's recalls were."""
        shown = [entry for entry in self.engine.view.history if isinstance(entry, Recalled)]
        model, ask = self.engine.settings.memory.recall_model, self.engine.ask
        return Recall(
            self.opened.store(),
            repository=self.repository,
            team=self.opened.team,
            choose=choose_with(ask, model) if ask is not None and model else None,
            shown_before=(name for entry in shown for name in entry.names),
            bytes_before=sum(entry.bytes for entry in shown),
            clock=self.clock,
        )

    def is_outside(self) -> bool:
        """Say whether this session, or an agent that worked for it, took in text from outside."""
        by = self._outside.follow(self.engine.view.history)
        return bool(by) or outside_below(self.directory / "agents")

    def offered(self, engine: Engine) -> None:
        """After an answer: take in reports, and begin what is due once the work is done."""
        self._take_reports()
        self._unread.follow(engine.view.history)
        if not self.learns or engine.ask is None or not _is_at_rest(engine):
            return
        try:
            self._offer_extraction(engine)
            self.dreams.offer(engine)
        except TROUBLE as error:
            engine.record(Failed(what=EXTRACT, error=str(error)))

    def _offer_extraction(self, engine: Engine) -> None:
        upto = self._unread.last
        stretch = self._unread.stretch(upto)
        if stretch is None:
            return
        if stretch.own:  # the agent saw to it itself
            self.leave(Remembered(cursor=upto, names=stretch.own, by="agent"))
            return
        self._rests += 1
        if self._rests >= engine.settings.memory.extract_every:
            self._rests = 0
            work = partial(self._extract, upto, engine.prefix())
            self.agent.background.job(EXTRACT).begin(work)

    async def _extract(self, upto: int, prefix: Prefix) -> None:
        """Look through what is unread up to a message, on the conversation as it was there."""
        stretch, ask = self._unread.stretch(upto), self.engine.ask
        if stretch is None or ask is None:
            return
        extraction = Extraction(
            open=self.opened.store,
            session=self.agent.session.id,
            repository=self.repository,
            ask=ask,
            permit=memories_only(judged_by(self.agent)),
            is_outside=self.is_outside,
            leave=self.leave,
            tell=self.agent.notify,
        )
        await extraction.run(stretch, prefix)

    def leave(self, entry: AnyEntry) -> None:
        """Report to the session's log; what was looked at counts from now on."""
        if isinstance(entry, Remembered):
            self._unread.pass_over(entry.cursor)
        outbox.leave(self.directory, entry)

    async def close(self) -> None:
        """Let what is under way finish, for a while; its reports reach the log before that ends."""
        self._stage.stop()
        seconds = self.engine.settings.memory.drain_seconds
        for name in await self.agent.background.drain(seconds):
            self.leave(Failed(what=name, error="it was stopped: the session ended"))
        self._take_reports()
        self.opened.close()

    def _take_reports(self) -> None:
        outbox.take(self.directory, self.engine.view.history, self.engine.record)

    def _failed(self, name: str, error: Exception) -> None:
        self.leave(Failed(what=name, error=f"{type(error).__name__}: {error}"))

    def _seal(self) -> Seal:
        """Say where memories come from that are written now."""
        unread = self._unread.follow(self.engine.view.history)
        stretch = unread.stretch(unread.last)
        asked = stretch.asked if stretch else unread.last
        return Seal(session=self.agent.session.id, message=asked, repository=self.repository)


def _is_at_rest(engine: Engine) -> bool:
    """Say whether the model has come to an end by itself, with nothing left to run."""
    last = engine.view.items[-1] if engine.view.items else None
    return isinstance(last, Round) and last.stop_reason == "end_turn" and engine.is_answered()
