"""Runs one agent to its `Finish`. The agent works, waits for mail, stops and cleans up."""

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Literal, Protocol, TypeAlias

from longhold.agent.permissions.decide import Mode, pick_narrower
from longhold.agent.subagents.definition import Definition
from longhold.agent.subagents.worktree import KeptWorktree, Worktree, finish
from longhold.core.log.entries import AnyEntry, Replied
from longhold.core.log.protocol import AgentLog
from longhold.core.log.spending import usage_of
from longhold.core.messages import ToolUse, Usage, text_of
from longhold.core.messages.text import clean_text, one_line, shorten
from longhold.core.tools.describe import description_of
from longhold.core.turn.background import JobProgress
from longhold.core.turn.fork.asking import ForkEnd
from longhold.core.turn.loop import End, LoopEvent, Stopped
from longhold.core.turn.round import ToolBegan, ToolRan
from longhold.core.view import fold
from longhold.core.view.items import Round
from longhold.errors import LongholdError

STATES: dict[End | ForkEnd, Literal["completed", "failed", "stopped"]] = {
    "completed": "completed",
    "aborted": "stopped",
    "aborted_streaming": "stopped",
    "aborted_tools": "stopped",
    "denied": "stopped",
    "hook_stopped": "stopped",
    "max_turns": "stopped",
    "budget_spent": "stopped",
}
"""How the end of a loop or fork is reported. Any other end is a failure."""
_CUT_SHORT = frozenset({"", "aborted", "broken", "max_tokens"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReach:
    """An agent's maximum permissions, fixed when it was first started."""

    tools: tuple[str, ...] | None = None
    """Tool names. None means all tools of the parent. The same applies to the mode."""
    mode: Mode | None = None

    def keeps(self, tool: str) -> bool:
        return self.tools is None or tool in self.tools

    def narrow(self, mode: Mode) -> Mode:
        return mode if self.mode is None else pick_narrower(self.mode, mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    id: str
    definition: Definition
    prompt: str
    """The task, or "" for a resumed agent."""
    log: AgentLog
    task: str = ""
    name: str = ""
    depth: int = 1
    is_background: bool = False
    is_fork: bool = False
    is_teammate: bool = False
    tree: Worktree | None = None
    reach: ToolReach = ToolReach()

    @property
    def called(self) -> str:
        return self.name or self.id

    @property
    def kind(self) -> str:
        return "fork" if self.is_fork else self.definition.name

    @property
    def source(self) -> str:
        return f"agent:{self.kind}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    state: Literal["completed", "failed", "stopped", "interrupted"]
    text: str = ""
    detail: str = ""
    usage: Usage | None = None


Seen: TypeAlias = Callable[[LoopEvent], None]


class Worker(Protocol):
    @property
    def reach(self) -> ToolReach: ...
    async def work(self, seen: Seen) -> Finish: ...
    def has_mail(self) -> bool: ...
    def stop(self) -> None: ...
    def approve_plan(self) -> None: ...
    async def progress(self) -> str:
        """Return the current activity in a few words, or ""."""
        return ""

    async def close(self) -> None: ...


def make_finish(end: Stopped, history: Sequence[AnyEntry], *, since: int) -> Finish:
    """Convert the end of a loop into a `Finish`. The loop began at index `since`."""
    reason = "" if end.reason == "completed" else end.reason.replace("_", " ")
    detail = f"{reason}: {end.detail}" if reason and end.detail else reason
    return Finish(
        state=STATES.get(end.reason, "failed"),
        text=end.text or _last_text(history),
        detail=detail,
        usage=usage_of(history[since:]),
    )


def read_back(log: AgentLog, *, since: float) -> Finish:
    """Return how an agent that was last started at `since` ended.

    An agent completed if its last answer is newer than `since`. Otherwise it was interrupted.
    """
    try:
        entries = log.load().entries
    except LongholdError as error:
        return Finish(state="interrupted", detail=f"its log cannot be read: {error}")
    new = [entry for entry in entries if entry.at >= since]
    is_done = any(isinstance(entry, Replied) for entry in new)
    match fold(entries).items[-1:]:
        case [Round(stop_reason=reason) as last] if is_done and not last.tool_uses():
            is_done = reason not in _CUT_SHORT
        case _:
            is_done = False
    return Finish(
        state="completed" if is_done else "interrupted",
        text=_last_text(entries),
        usage=usage_of(new),
    )


def _last_text(history: Sequence[AnyEntry]) -> str:
    texts = (text_of(entry.content) for entry in reversed(history) if isinstance(entry, Replied))
    return next((text for text in texts if text.strip()), "")


THINKING = "Thinking about the task"
WORD_CHARS = 40
ASK = (
    "Say in two to five words, in the present tense, what you are doing just now, naming the file "
    "or function: for example 'Reading the parser in loop.py'. Answer with these words only."
)
WORDS = (2, 5)
MAIL_POLL_SECONDS = 0.5
"""How often an idle teammate or session checks for mail."""


def progress_line(use: ToolUse | None) -> str:
    if use is None:
        return THINKING
    described = description_of(use.name)
    path = next(iter(described.paths_in(use.input)), "")
    if path and described.kind in ("read", "write"):
        verb = "Reading" if described.kind == "read" else "Changing"
        return f"{verb} the file {_word(PurePath(path).name)}"
    words = str(use.input.get(described.command_input, "")).split()
    if program := next((word for word in words if not re.match(r"\w+=", word)), ""):
        return f"Running the command {_word(PurePath(program).name)}"
    return f"Using the tool {_word(use.name)}"


def accept_line(said: str) -> str:
    line = one_line(said).strip(" .'\"`")
    words = line.split()
    fits = WORDS[0] <= len(words) <= WORDS[1] and line.isprintable()
    is_short = len(line) <= WORDS[1] * WORD_CHARS
    return line if fits and is_short and words[0].casefold().endswith("ing") else ""


def _word(text: str) -> str:
    return shorten(clean_text("_".join(text.split()), instead=""), WORD_CHARS) or "unnamed"


STOP_SECONDS = 5.0
"""How long an agent may take after a stop request before it is cancelled."""

AgentEnd: TypeAlias = Literal["stopped", "interrupted"]


@dataclass(slots=True, kw_only=True, eq=False)
class RunningAgent:
    order: Order
    worker: Worker
    on_idle: Callable[[Order, Finish], None]
    life: "asyncio.Task[Finish] | None" = None
    kept: KeptWorktree | None = None
    is_background: bool = False
    is_idle: bool = False
    by_user: bool = False
    doing: str = ""
    progress: JobProgress = field(default_factory=JobProgress)
    _last_use: ToolUse | None = None
    _stops_as: AgentEnd | None = None
    _is_leaving: bool = False

    def start(self, ended: Callable[["RunningAgent", Finish], Finish]) -> None:
        self.life = asyncio.create_task(self.live(ended), name=f"agent {self.order.id}")

    def send_to_background(self) -> None:
        self.is_background = True

    async def live(self, ended: Callable[["RunningAgent", Finish], Finish]) -> Finish:
        """Work to the end and clean up. `ended` always records the end."""
        try:
            done = await self._work()
        except asyncio.CancelledError:
            done = Finish(state="stopped", detail="it was stopped")
        except Exception as error:  # noqa: BLE001 - an error ends the agent, never its parent
            done = Finish(state="failed", detail=f"{type(error).__name__}: {error}")
        try:
            await self._clean_up()
        except Exception as error:  # noqa: BLE001 - likewise
            done = replace(done, detail=f"{done.detail} cleaning up failed: {error}".strip())
        finally:
            if self._stops_as is not None and done.state != "completed":
                done = replace(done, state=self._stops_as)
            done = ended(self, done)
        return done

    async def _work(self) -> Finish:
        while True:
            done = await self.worker.work(self.see)
            if self._stops_as is not None or done.state != "completed":
                return done
            if self.worker.has_mail():
                continue
            if not self.order.is_teammate or self._is_leaving:
                return done
            await self._wait_for_mail(done)

    async def _wait_for_mail(self, done: Finish) -> None:
        self.is_idle = True
        self.on_idle(self.order, done)
        while not self.worker.has_mail():  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(MAIL_POLL_SECONDS)
        self.is_idle = False

    async def _clean_up(self) -> None:
        try:
            await self.worker.close()
        finally:
            if self.order.tree is not None:
                self.kept = await asyncio.to_thread(finish, self.order.tree)

    def see(self, event: LoopEvent) -> None:
        self.progress.see(event)
        match event:
            case ToolBegan(use=use):
                self._last_use = use
            case ToolRan(use=use, outcome=outcome) if not outcome.is_error:
                # An answer is sent only if it was requested.
                self._is_leaving = self._is_leaving or _agrees_to_stop(use)

    async def first(self, seconds: float) -> Finish | None:
        assert self.life is not None, "it has begun"
        await asyncio.wait({self.life}, timeout=seconds or None)
        return self.life.result() if self.life.done() else None

    async def stop(self, how: AgentEnd = "stopped", *, by_user: bool = False) -> None:
        assert self.life is not None, "it has begun"
        self.by_user = self.by_user or by_user
        self._stops_as = how
        self.worker.stop()
        if self.is_idle:
            self.life.cancel()
        done, _ = await asyncio.wait({self.life}, timeout=STOP_SECONDS)
        if not done:
            self.life.cancel()
            await asyncio.wait({self.life})

    async def look(self, asks_model: bool) -> str:
        line = await self.worker.progress() if asks_model else ""
        self.doing = line or progress_line(self._last_use)
        return self.doing


def _agrees_to_stop(use: ToolUse) -> bool:
    match use.input.get("message"):
        case {"type": "shutdown_answer", "approve": True}:
            return use.name == "SendMessage"
        case _:
            return False
