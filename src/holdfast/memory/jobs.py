"""Long-term memory in a session: its tool, its place in the prompt, what is recalled and learnt.

Recall is a stage; extraction and dreams are background jobs that begin when a piece of work is
done. Their reports reach the log through the engine. Nothing that goes wrong here ends a turn.
"""

import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from holdfast.errors import HoldfastError
from holdfast.log.entries import AnyEntry, Failed, Recalled, Remembered
from holdfast.memory.dream_jobs import DREAM, DreamJobs, Unasked
from holdfast.memory.extract import Extraction, ExtractionCursor
from holdfast.memory.inbox import ConsentedMemories
from holdfast.memory.paths import TEAM, memory_directory, team_directory
from holdfast.memory.provenance import Provenance
from holdfast.memory.recall import Recall, RecallStage, Recollection, choose_with
from holdfast.memory.store import MemoryStore
from holdfast.memory.team import TeamMemories
from holdfast.memory.tool import memories_only, memory_tool
from holdfast.memory.untrusted_input import UntrustedInput, outside_below
from holdfast.request.prompt.sections import memory_text
from holdfast.settings import MemorySettings
from holdfast.tools.protocol import Tool
from holdfast.turn.background import Background
from holdfast.turn.engine import Engine
from holdfast.turn.fork import AskFork, Prefix
from holdfast.view.items import Round

EXTRACT = "memory"
"""The job, and the name of its failures in the log."""
TROUBLE = (HoldfastError, OSError, sqlite3.Error)
"""What a store that is damaged, locked or full may raise."""


class LazyStore:
    """The private store, created on first use, and the team's memories if `memory.team` is on.

    A session that neither reads nor writes a memory creates no files.
    """

    def __init__(self, place: Path, team: Path, limits: MemorySettings) -> None:
        self.place = place
        self._limits = limits
        self._store: MemoryStore | None = None
        self.team = TeamMemories(team, limits) if limits.team != "off" else None

    @property
    def exists(self) -> bool:
        return self._store is not None or self.place.is_dir()

    @property
    def has_any(self) -> bool:
        """Whether there may be something to recall."""
        return self.exists or (self.team is not None and self.team.root.is_dir())

    def store(self) -> MemoryStore:
        """Return the store, with edits made by hand adopted."""
        if self._store is None:
            self._store = MemoryStore(self.place, self._limits)
            self._store.adopt()
        return self._store

    def index(self) -> str:
        own = self.store().index().strip() if self.exists else ""
        shared = self.team.index().strip() if self.team is not None and self.has_any else ""
        if not shared:
            return own
        lead = f"The team's, in the repository under `{TEAM.as_posix()}/` (read them with Read):"
        return f"{own}\n\n{lead}\n\n{shared}".strip()

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None


@dataclass(slots=True, kw_only=True)
class MemoryJobs:
    engine: Engine
    root: Path
    """Where the session works."""
    home: Path
    ask: AskFork | None
    unasked: Unasked
    background: Background
    notify: Callable[[str], None]
    learns: bool = False
    """Memories are extracted and consolidated in the background."""
    clock: Callable[[], float] = time.time
    store: LazyStore = field(init=False)
    dreams: DreamJobs = field(init=False)
    stage: RecallStage = field(init=False)
    _repository: Path = field(init=False)
    _cursor: ExtractionCursor = field(default_factory=ExtractionCursor)
    _untrusted: UntrustedInput = field(default_factory=UntrustedInput)
    _recall: Recall | None = None
    _rests: int = 0
    """Ends of work since memories were last extracted."""

    def __post_init__(self) -> None:
        limits, team = self.engine.settings.memory, team_directory(self.root)
        place = memory_directory(self.home, self.root, limits.directory)
        self.store = LazyStore(place, team, limits)
        self._repository = team.parents[len(TEAM.parts) - 1]
        self.stage = RecallStage(self.recall, answered=self.engine.view.history)
        self.dreams = DreamJobs(
            engine=self.engine,
            place=place,
            open=self.store.store,
            repository=self._repository,
            ask=self.ask,
            unasked=self.unasked,
            job=self.background.job(DREAM),
            notify=self.notify,
            is_outside=self.is_outside,
            clock=self.clock,
        )

    def tool(self) -> Tool:
        """Make the memory tool; what the user must consent to passes through the inbox."""
        memories = ConsentedMemories(
            open=self.store.store,
            by="agent",
            provenance=self._provenance,
            is_outside=self.is_outside,
        )
        return memory_tool(memories, self.clock)

    def section(self) -> str:
        """Write the prompt's section on memory, with the index as it is now."""
        try:
            return memory_text(self.store.index())
        except TROUBLE as error:
            self.notify(f"memories cannot be read: {error}")
            return ""

    async def recall(self, asked: str) -> Recollection | None:
        """Find what bears on a question and was not shown in this session before."""
        if not self.store.has_any:
            return None
        self._recall = self._recall or self._recalling()
        return await self._recall.recall(asked)

    def _recalling(self) -> Recall:
        """Continue where the log says that this session's recalls were."""
        shown = [entry for entry in self.engine.view.history if isinstance(entry, Recalled)]
        model = self.engine.settings.memory.recall_model
        return Recall(
            self.store.store(),
            repository=self._repository,
            team=self.store.team,
            choose=choose_with(self.ask, model) if self.ask is not None and model else None,
            shown={name for entry in shown for name in entry.names},
            shown_bytes=sum(entry.bytes for entry in shown),
            clock=self.clock,
        )

    def is_outside(self) -> bool:
        """Whether this session, or an agent that worked for it, took in text from outside."""
        by = self._untrusted.follow(self.engine.view.history)
        return bool(by) or outside_below(self.engine.directory / "agents")

    def after_turn(self, engine: Engine) -> None:
        """Begin what is due once the work is done."""
        self._cursor.follow(engine.view.history)
        if not self.learns or self.ask is None or not _is_at_rest(engine):
            return
        try:
            self._offer_extraction(engine)
            self.dreams.offer(engine)
        except TROUBLE as error:
            engine.record(Failed(what=EXTRACT, error=str(error)))

    def _offer_extraction(self, engine: Engine) -> None:
        upto = self._cursor.last
        new = self._cursor.new_messages(upto)
        if new is None:
            return
        if new.own:  # the agent saw to it itself
            self._report(Remembered(cursor=upto, names=new.own, by="agent"))
            return
        self._rests += 1
        if self._rests >= engine.settings.memory.extract_every:
            self._rests = 0
            work = partial(self._extract, upto, engine.prefix())
            self.background.job(EXTRACT).begin(work)

    async def _extract(self, upto: int, prefix: Prefix) -> None:
        """Look through what is unread up to a message, on the conversation as it was there."""
        new = self._cursor.new_messages(upto)
        if new is None or self.ask is None:
            return
        extraction = Extraction(
            open=self.store.store,
            session=self.engine.log.header.session,
            repository=self._repository,
            ask=self.ask,
            permit=memories_only(self.unasked(())),
            is_outside=self.is_outside,
            leave=self._report,
            tell=self.notify,
        )
        await extraction.run(new, prefix)

    def _report(self, entry: AnyEntry) -> None:
        if isinstance(entry, Remembered):
            self._cursor.pass_over(entry.cursor)
        self.engine.report(entry)

    async def close(self) -> None:
        """Give jobs some time to finish; their reports reach the log before that ends."""
        self.stage.stop()
        seconds = self.engine.settings.memory.drain_seconds
        for name in await self.background.drain(seconds, EXTRACT, DREAM):
            self._report(Failed(what=name, error="it was stopped: the session ended"))
        self.store.close()

    def _provenance(self) -> Provenance:
        cursor = self._cursor.follow(self.engine.view.history)
        new = cursor.new_messages(cursor.last)
        asked = new.asked if new else cursor.last
        session = self.engine.log.header.session
        return Provenance(session=session, message=asked, repository=self._repository)


def _is_at_rest(engine: Engine) -> bool:
    """Whether the model has ended by itself, with nothing left to run."""
    last = engine.view.items[-1] if engine.view.items else None
    return isinstance(last, Round) and last.stop_reason == "end_turn" and engine.is_answered()
