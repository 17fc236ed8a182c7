"""Runs one agent: it works, waits for mail, stops and cleans up.

It always ends with a `Finish`: an error ends the agent, never its parent.
"""

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Literal, TypeAlias

from longhold.agent.subagents.order import Finish, Order, Worker
from longhold.agent.subagents.teammates import Teammates
from longhold.agent.subagents.worktree import KeptWorktree, finish
from longhold.core.messages import ToolUse
from longhold.core.messages.text import clean_text, one_line, shorten
from longhold.core.turn.background import JobProgress
from longhold.core.turn.loop import LoopEvent
from longhold.core.turn.round import ToolBegan, ToolRan

THINKING = "Thinking about the task"
WORD_CHARS = 40
ASK = (
    "Say in two to five words, in the present tense, what you are doing just now, naming the file "
    "or function: for example 'Reading the parser in loop.py'. Answer with these words only."
)
WORDS = (2, 5)
_VAGUE = frozenset(
    [
        "a",
        "about",
        "again",
        "all",
        "an",
        "and",
        "around",
        "at",
        "by",
        "code",
        "codebase",
        "changes",
        "details",
        "everything",
        "file",
        "files",
        "for",
        "from",
        "how",
        "in",
        "into",
        "issue",
        "it",
        "its",
        "more",
        "my",
        "new",
        "next",
        "now",
        "of",
        "on",
        "one",
        "our",
        "problem",
        "project",
        "repository",
        "request",
        "result",
        "results",
        "situation",
        "some",
        "something",
        "step",
        "task",
        "that",
        "the",
        "their",
        "them",
        "these",
        "thing",
        "things",
        "this",
        "those",
        "through",
        "to",
        "up",
        "user",
        "various",
        "what",
        "with",
        "work",
        "working",
        "you",
        "your",
    ]
)
"""A line whose verb is followed only by these is too vague."""

_FILES = {
    "Read": "Reading the file",
    "Edit": "Editing the file",
    "Write": "Writing the file",
    "NotebookEdit": "Editing the notebook",
}
MAIL_POLL_SECONDS = 0.5
"""How often an idle teammate or session checks for mail."""


def progress_line(use: ToolUse | None) -> str:
    if use is None:
        return THINKING
    given = use.input
    match use.name:
        case "Read" | "Edit" | "Write" | "NotebookEdit" as tool:
            path = str(given.get("file_path") or given.get("path") or given.get("notebook_path"))
            return f"{_FILES[tool]} {_word(PurePath(path).name)}"
        case "Bash":
            return f"Running the command {_program(str(given.get('command', '')))}"
        case "Grep" | "Glob":
            return f"Searching for matches of {_word(str(given.get('pattern', '')))}"
        case "WebFetch":
            host = re.sub(r"^\w+://([^/]*).*", r"\1", str(given.get("url", "")))
            return f"Fetching a page from {_word(host)}"
        case "Agent":
            return "Waiting for another agent"
        case name:
            return f"Using the tool {_word(name)}"


def accept_line(said: str) -> str:
    line = one_line(said).strip(" .'\"`")
    words = line.split()
    fits = WORDS[0] <= len(words) <= WORDS[1] and line.isprintable()
    is_short = len(line) <= WORDS[1] * WORD_CHARS
    return line if fits and is_short and _is_going_on(words[0]) and _is_specific(words[1:]) else ""


def _is_going_on(verb: str) -> bool:
    return verb.casefold().endswith("ing") and verb.isalpha()


def _is_specific(words: list[str]) -> bool:
    return any(word.casefold().strip(".,:;") not in _VAGUE for word in words)


def _program(command: str) -> str:
    words = [word for word in command.split() if not re.match(r"\w+=", word)]
    return _word(PurePath(words[0]).name if words else "")


def _word(text: str) -> str:
    return shorten(clean_text("_".join(text.split()), instead=""), WORD_CHARS) or "unnamed"


STOP_SECONDS = 5.0
"""After a stop request; then the agent is cancelled."""

AgentEnd: TypeAlias = Literal["stopped", "interrupted"]


@dataclass(slots=True, kw_only=True, eq=False)
class RunningAgent:
    order: Order
    worker: Worker
    teammates: Teammates
    on_news: Callable[[], None]
    life: "asyncio.Task[Finish] | None" = None
    kept: KeptWorktree | None = None
    is_background: bool = False
    is_idle: bool = False
    by_user: bool = False
    sent_back: asyncio.Event = field(default_factory=asyncio.Event)
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
        """Work to the end and clean up; `ended` always records the end."""
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
        self.teammates.report_idle(self.order, done)
        self.is_idle = True
        self.on_news()
        while not self.worker.has_mail():  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(MAIL_POLL_SECONDS)
        self.is_idle = False

    async def _clean_up(self) -> None:
        try:
            await self.worker.close()
        finally:
            if self.order.tree is not None:
                self.kept = await asyncio.to_thread(finish, self.order.tree)
            if self.order.is_teammate:
                self.teammates.leave(self.order.called)

    def see(self, event: LoopEvent) -> None:
        self.progress.see(event)
        match event:
            case ToolBegan(use=use):
                self._last_use = use
            case ToolRan(use=use, outcome=outcome) if not outcome.is_error:
                # An answer is sent only if it was requested.
                self._is_leaving = self._is_leaving or _agrees_to_stop(use)

    async def first(self, seconds: float) -> Finish | None:
        """Wait for the end; None on timeout or if sent to the background."""
        assert self.life is not None, "it has begun"
        asked = asyncio.create_task(self.sent_back.wait())
        try:
            await asyncio.wait(
                {self.life, asked}, timeout=seconds or None, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            asked.cancel()
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
