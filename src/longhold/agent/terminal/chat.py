"""A conversation on any screen. Rewinding, clearing and resuming switch sessions."""

import asyncio
import importlib
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from typing import TYPE_CHECKING, TypeAlias

from longhold.agent.agent import Agent
from longhold.agent.permissions import Answer, Question
from longhold.agent.terminal.screen import (
    Screen,
    SessionMove,
    SlashCommand,
    SlashContext,
    unknown_command,
)
from longhold.agent.terminal.spacing import StageLines, last_messages, where_lines
from longhold.core.messages import Text, ToolUse, text_of
from longhold.core.messages.text import clean_document, clean_line, clean_text, quote_lines
from longhold.core.turn.answering import SUGGESTION, own_refusal
from longhold.core.turn.background import DRAIN_SECONDS
from longhold.core.turn.fork.asking import ForkRequest
from longhold.core.turn.status import Status, cache_seconds, make_status
from longhold.errors import LongholdError

if TYPE_CHECKING:
    from longhold.agent.permissions import AskUser


def _choices_for(question: Question, *, is_cut: bool) -> dict[str, str]:
    always = (
        {"a": f"always ({clean_text(str(question.suggestion))})"} if question.suggestion else {}
    )
    view = {"v": "view all of it"} if is_cut else {}
    return {"y": "yes", **always, **view, "n": "no", "r": "no, with a reason"}


def _answer_from(text: str, choices: Mapping[str, str]) -> Answer | None:
    """Read an answer. An empty answer means no. A sentence means no and becomes the reason."""
    text = text.strip()
    first, _, rest = text.partition(" ")
    match first.lower():
        case "y" | "yes" if not rest:
            return Answer(choice="once")
        case "a" | "always" if not rest and "a" in choices:
            return Answer(choice="always")
        case "n" | "no" | "" if not rest:
            return Answer(choice="no")
        case "r" | "n" | "no" if rest:
            return Answer(choice="no", reason=f"the user said: {rest.strip()}")
    is_sentence = rest and not first.startswith("/")
    return Answer(choice="no", reason=f"the user said: {text}") if is_sentence else None


MOST_CHARS = 100
NONE = "NONE"
QUESTION = (
    "The user is about to say something. What will it most likely be? Answer with exactly those "
    "words and nothing else: at most twelve, in the user's language, as they would type them. "
    f"If nothing is likely, answer {NONE}."
)


def _status_of(agent: Agent) -> Status:
    engine = agent.engine
    return make_status(
        engine.view,
        engine.fullness(),
        engine.own,
        session=agent.session.id,
        model=engine.model or agent.model.name,
        lifetime=engine.frame.lifetime,
        mode=agent.gate.mode,
        jobs=len(agent.jobs.running()),
    )


HALF_TYPED_SECONDS = 0.5
"""How often a half-typed line is checked before the model is woken."""
LEAVING = ("/exit", "/quit")
OUTPUT_CHARS = 30_000
RAN = "[The user ran this command before the message above, and saw what it printed.]"

OpenSession: TypeAlias = "Callable[[SessionMove, AskUser], AbstractAsyncContextManager[Agent]]"


class Chat:
    def __init__(
        self, screen: Screen, open_session: OpenSession, commands: Mapping[str, SlashCommand]
    ) -> None:
        self._screen = screen
        self._open = open_session
        self._commands = commands

    async def run(self, first: SessionMove) -> None:
        move: SessionMove | None = first
        while move is not None:
            move = await self._talk(move)

    async def _talk(self, move: SessionMove) -> SessionMove | None:
        await asyncio.to_thread(importlib.import_module, "longhold.agent.build")
        from longhold.core.turn.abort import stop

        async with self._open(move, self._ask) as agent:
            turns = Turns(agent, self._screen, self._commands)
            turns.greet(move)
            reminding = asyncio.create_task(turns.remind(move))
            try:
                return await turns.heard()
            except asyncio.CancelledError:  # Ctrl-C at the prompt
                turns.leave_at_once()
                raise
            finally:
                self._screen.follow(None)
                for task in (reminding, *turns.looking):
                    await stop(task)

    async def _ask(self, question: "Question") -> "Answer":
        screen = self._screen
        choices = _choices_for(question, is_cut=screen.show_question(question))
        while True:
            listed = ", ".join(f"{key} = {what}" for key, what in choices.items())
            text = (await screen.answer(f"Allow? {listed}: ", keys="".join(choices))).strip()
            if text.lower() in ("v", "view") and choices.pop("v", ""):
                screen.show_question(question, whole=True)
                continue
            if text.lower() == "r":
                text = f"r {await screen.answer('Why not? ')}".strip()
                text = "n" if text == "r" else text
            if (answer := _answer_from(text, choices)) is not None:
                return answer
            screen.say(f"{clean_line(text)!r} is not an answer; type one of {listed}.", "notice")


class Turns:
    def __init__(
        self, agent: "Agent", screen: Screen, commands: Mapping[str, SlashCommand]
    ) -> None:
        self.agent = agent
        self.screen = screen
        self.commands = commands
        self._stages = StageLines()
        self._stages.follow(agent.engine.view.history)  # skip earlier entries
        self._suggesting: asyncio.Task[None] | None = None
        self.looking: set[asyncio.Task[None]] = set()
        self._own_output: list[Text] = []

    def greet(self, move: SessionMove) -> None:
        agent, screen = self.agent, self.screen
        agent.notices.listen(lambda line: screen.say(clean_text(line), "notice"))
        agent.notices.listen_to_tools(screen.tool_output)
        screen.follow(lambda: _status_of(agent))
        screen.say(f"session {agent.session.id}, {agent.model.name}. /help lists commands.", "dim")
        for notice in agent.notices.take():
            screen.say(clean_text(notice), "notice")
        if move.draft:
            screen.draft(move.draft)

    async def remind(self, move: SessionMove) -> None:
        if move.resume and not move.draft:  # after a rewind the conversation is still visible
            for text, tone in last_messages(self.agent.session.view.history):
                self.screen.say(clean_document(text), tone)
            lines = await asyncio.to_thread(where_lines, self.agent)
            self.screen.say("\n".join(map(clean_text, lines)), "dim")

    async def heard(self) -> SessionMove | None:
        most = wakes_left = self.agent.engine.settings.agents.wakes
        while True:
            try:
                said = await self._next_words(may_wake=wakes_left > 0)
            except EOFError:
                said = "/exit"
            wakes_left = wakes_left - 1 if said is None else most
            await self._stop_suggesting()
            try:
                if said is not None and said.partition(" ")[0] in LEAVING:
                    await self._leave("prompt_input_exit")
                    return None
                if said and said[0] == "!" and said[1:].strip():
                    await self._shell(said[1:].strip())
                    continue
                if said and said[0] == "#" and "\n" not in said:  # not pasted Markdown
                    said = f"/remember {said[1:].strip()}"
                if said is not None and said.startswith("/"):
                    if (move := await self._command(said)) is not None:
                        await self._leave("resume" if move.resume else "clear")
                        return move
                elif said != "":
                    await self._turn(said or "")
            except LongholdError as error:
                self.screen.say(clean_text(str(error)), "error")

    async def _next_words(self, *, may_wake: bool) -> str | None:
        """Wait for a line. Return None if news came first and the model should answer it.

        While the user types, or if the model was woken too often, news is only shown.
        """
        from longhold.core.turn.abort import stop

        screen = self.screen
        reading = asyncio.create_task(screen.words())
        news = asyncio.create_task(self.agent.until_news())
        try:
            await asyncio.wait({reading, news}, return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                for line in news.result():
                    screen.say(clean_text(line), "notice")
            while not reading.done() and (screen.half_typed() or not may_wake):
                await asyncio.wait({reading}, timeout=HALF_TYPED_SECONDS)
            return reading.result().strip() if reading.done() else None
        finally:
            await stop(reading)
            await stop(news)

    def _run_at_once(self, said: str) -> bool:
        """Run a command that need not wait for the model. Return False for any other command."""
        name, _, rest = said.strip().partition(" ")
        command = self.commands.get(name)
        if command is None or not command.at_once(rest.strip()):
            return False

        async def look() -> None:
            try:
                await self._command(said.strip())
            except LongholdError as error:
                self.screen.say(clean_text(str(error)), "error")

        looking = asyncio.create_task(look())
        self.looking.add(looking)
        looking.add_done_callback(self.looking.discard)
        return True

    async def _command(self, said: str) -> SessionMove | None:
        name, _, rest = said.partition(" ")
        command = self.commands.get(name)
        if command is None:
            self.screen.say(unknown_command(clean_text(name), self.commands), "notice")
            return None
        context = SlashContext(agent=self.agent, screen=self.screen, take_turn=self._turn)
        return await command.run(context, rest.strip())

    async def _shell(self, command: str) -> None:
        """Run the user's own command without a permission prompt. Rules and hooks can deny it."""
        from longhold.agent.permissions import Gate
        from longhold.agent.tools.bash import BASH
        from longhold.core.turn.abort import run_unless_aborted
        from longhold.core.turn.round import Denied

        async def say_yes(question: Question) -> Answer:
            return Answer(choice="once")

        agent = self.agent
        own = Gate(rules=agent.gate.rules, mode=agent.gate.mode, ask=say_yes)
        use = ToolUse(id="user", name=BASH.name, input={"command": command})
        verdict = await agent.parts.guard.check_at(own, use, BASH)
        if isinstance(verdict, Denied):
            self.screen.say(clean_text(verdict.reason), "error")
            return
        agent.abort.clear()
        with self.screen.working(agent.abort.set, what="running"):
            running = BASH.run(verdict.input, agent.tool_context)
            outcome = await run_unless_aborted(agent.abort, running)
        printed = text_of(outcome.content) if outcome else "Stopped."
        self.screen.say(clean_document(printed))
        quoted = quote_lines(f"$ {command}\n{printed[-OUTPUT_CHARS:]}")
        self._own_output.append(Text(text="\n".join((RAN, *quoted))))

    async def _turn(self, said: str) -> None:
        from longhold.agent.terminal.mentions import with_mentions

        mentions = await with_mentions(said, self.agent)
        for line in mentions.said:
            self.screen.say(clean_text(line), "dim")
        with self.screen.working(self.agent.abort.set, at_once=self._run_at_once):
            attached = (*self._own_output, *mentions.attached)
            self._own_output.clear()
            async for event in self.agent.run(mentions.content, attached):
                self.screen.show(event)
                for line in self._stages.follow(self.agent.engine.view.history):
                    self.screen.say(line, "dim")
        self.screen.show_status()
        self._begin_suggesting()

    def _begin_suggesting(self) -> None:
        """Suggest the next message if the prompt is still cached and the budget allows it."""
        engine = self.agent.engine
        is_wanted = self.screen.shows_suggestions and engine.settings.terminal.suggest
        is_done = engine.is_answered() and not self.screen.half_typed()
        is_warm = cache_seconds(engine.view, engine.frame.lifetime, time.time()) > 0
        if is_wanted and is_done and is_warm and not own_refusal(engine, SUGGESTION):
            self._suggesting = asyncio.create_task(self._suggest())

    async def _suggest(self) -> None:
        words = ""
        with suppress(LongholdError):
            reply = await self.agent.ask(
                ForkRequest(say=QUESTION, source=SUGGESTION, is_wanted=False)
            )
            words = clean_line(reply.text.strip().strip('"'), MOST_CHARS + 1)
        self.screen.suggest("" if NONE in words or len(words) > MOST_CHARS else words)

    async def _stop_suggesting(self) -> None:
        from longhold.core.turn.abort import stop

        suggesting, self._suggesting = self._suggesting, None
        if suggesting is not None:
            await stop(suggesting)

    async def _leave(self, reason: str) -> None:
        """Close the agent, and print the pending jobs. Ctrl-C stops the jobs."""
        agent = self.agent
        busy = ", ".join(job.name for job in agent.background.busy)
        with self.screen.working(agent.abort.set, what="leaving"):
            if busy:
                self.screen.say(
                    f"Waiting up to {DRAIN_SECONDS:g} s for: {busy}. Ctrl-C exits immediately.",
                    "dim",
                )
            await agent.close(reason)
        self.say_how_to_resume()

    def leave_at_once(self) -> None:
        from longhold.agent.agent import LEFT

        if self._suggesting is not None:
            self._suggesting.cancel()
        self.agent.background.cancel(LEFT)
        self.say_how_to_resume()

    def say_how_to_resume(self) -> None:
        if self.agent.session.view.items:
            id = self.agent.session.id
            self.screen.say(f"`longhold chat --resume {id}` resumes this session.", "dim")
