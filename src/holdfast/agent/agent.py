"""The whole agent: a session, its model, its tools, and who watches over them.

Puts the parts together and adds nothing of its own: the gate in front of every tool is the
hooks' word and the permissions', the stop is the hooks', the loop is `loop`. A program that
has a loop of its own uses `Session` instead, and loses nothing by it.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from holdfast.agent.subagents.supervisor import Supervisor
from holdfast.hooks import HookContext, Hooks, HookVerdict
from holdfast.log.entries import Compacted, Framed, Said
from holdfast.log.spending import Budget
from holdfast.messages import JsonObject, ResultContent, Text, ToolUse, text_of
from holdfast.models.protocol import Model
from holdfast.request.frame import Framer, reframed, renew_frame
from holdfast.request.instructions import Gathered, LoadReason, Nearby, loaded_fields, said, sources
from holdfast.request.prompt.sections import updated
from holdfast.session import Session
from holdfast.tools.context import ToolContext
from holdfast.tools.describe import Described, declared_by, description_of
from holdfast.tools.mcp import McpTools
from holdfast.tools.permissions import Gate, Mode, Places
from holdfast.tools.protocol import Outcome, Tool
from holdfast.tools.standard import STANDARD
from holdfast.turn.background import Background
from holdfast.turn.engine import Engine, Stage
from holdfast.turn.fork import Forks
from holdfast.turn.loop import (
    Loop,
    LoopEvent,
    Recover,
    Stopped,
    StopVerdict,
    budget_in,
    never_recovers,
    unless,
)
from holdfast.turn.round import Allowed, Denied, Toolbox


@dataclass(slots=True, kw_only=True)
class Agent:
    """A session that works by itself."""

    session: Session
    model: Model
    tool_context: ToolContext
    gate: Gate
    hooks: Hooks
    budget: Budget
    tools: tuple[Tool, ...] = STANDARD
    mcp: McpTools | None = None
    framer: Framer | None = None
    """Makes the frame anew after a compaction."""
    nearby: Nearby | None = None
    """Finds the instructions that lie near what tools touch."""
    fallback: Model | None = None
    recover: Recover = never_recovers
    notices: list[str] = field(default_factory=list)
    """What the user should be told: how the session was set up, what hooks say. Take with `told`."""
    listener: Callable[[str], None] | None = None
    """Told such lines as they come, instead of their being kept."""
    abort: asyncio.Event = field(default_factory=asyncio.Event)
    source: str = "main"
    """Who asks: `main`, or `agent:<kind>` for one that another agent started."""
    supervisor: Supervisor | None = None
    """Those who work for this agent."""
    background: Background = field(default_factory=Background)
    """What is done beside the conversation."""
    memory: Callable[[], str] = str
    """Gives the prompt's section on long-term memory as it is now."""
    at_close: tuple[Callable[[], Awaitable[None]], ...] = ()
    """Lets finish what is under way, before model and tools are let go."""
    inbox_stages: tuple[Stage, ...] = ()
    """Bring in what others say: mail, the reports of agents."""
    _known: dict[str, Tool] = field(default_factory=dict)
    """Every tool that may be called, by name; grows when MCP tools are loaded."""
    _asides: list[str] = field(default_factory=list)
    """What hooks want the model to know, said before the next call."""
    _retired: list[Model] = field(default_factory=list)
    """Models that answered before a fallback did."""
    _events: AsyncGenerator[LoopEvent, None] | None = None
    """The run that is under way."""
    was_refused: bool = False
    _mode_before: Mode | None = None
    """The user's mode while a plan is being made."""

    def __post_init__(self) -> None:
        self.engine.ask = self.forks(self.abort).ask

    def forks(self, abort: asyncio.Event) -> Forks:
        """Give what makes forks of this conversation; `abort` ends them all."""
        return Forks(
            parent=self.engine,
            model=self._answering,
            toolbox=self._toolbox,
            abort=abort,
            budget=self.budget,
        )

    @property
    def engine(self) -> Engine:
        """The session's log, view and path."""
        return self.session.engine

    async def start(self, source: str) -> None:
        """Let hooks know that the session began or goes on."""
        await self._fire("SessionStart", {"source": source})

    def told(self) -> list[str]:
        """Give what the user should be told since the last time."""
        told = list(dict.fromkeys(self.notices))
        self.notices.clear()
        return told

    async def run(self, prompt: str = "") -> AsyncIterator[LoopEvent]:
        """Work on what the user says, or go on where the session stopped, until done."""
        self.abort.clear()
        if prompt:
            verdict = await self._fire("UserPromptSubmit", {"prompt": prompt})
            if verdict.is_blocked or verdict.should_stop:
                yield Stopped(reason="hook_stopped", detail=verdict.reason or verdict.stop_reason)
                return
            self.gate.forget_denials()
            self.session.user(prompt)
        elif self.engine.is_answered() and not await self._hears_something():
            yield Stopped(reason="completed", detail="nothing was left to do; give a new task")
            return
        loop = self._loop(budget_in(prompt))
        self._events = loop.run()
        try:
            async for event in self._events:
                yield event
        finally:
            await self._events.aclose()
            if loop.model is not self.model:  # a fallback has taken over, for good
                self._retired.append(self.model)
                self.model, self.fallback = loop.model, None

    async def work(self, prompt: str = "") -> AsyncIterator[LoopEvent]:
        """Work until nothing is left to do, what agents in the background are doing included."""
        while True:
            end = Stopped(reason="completed")
            async for event in self.run(prompt):
                if isinstance(event, Stopped):
                    end = event
                else:
                    yield event
            prompt = ""
            if end.reason != "completed" or not await self._next_words():
                break
        yield end

    async def _next_words(self) -> bool:
        """Wait until somebody who works for this agent says something; no if nobody will."""
        while not await self._hears_something():
            home = self.supervisor
            if home is None or not await unless(self.abort, home.next_news()):
                return False
        return True

    async def _hears_something(self) -> bool:
        """Take in what others said meanwhile; say whether that is to be answered."""
        for stage in self.inbox_stages:
            await stage(self.engine)
        return not self.engine.is_answered()

    async def ask_hooks(self, event: str, fields: JsonObject) -> HookVerdict:
        """Run an event's hooks; an abort ends them, and they have then said nothing."""
        said = await unless(self.abort, self.hooks.fire(event, fields, self._scene()))
        verdict = said or HookVerdict()
        for line in (*verdict.messages, *verdict.errors):
            self.notify(line)
        return verdict

    async def _fire(self, event: str, fields: JsonObject) -> HookVerdict:
        """Run an event's hooks; the model is told with the next call what they want it to know."""
        verdict = await self.ask_hooks(event, fields)
        self._asides.extend(verdict.context)
        return verdict

    def notify(self, line: str) -> None:
        """Let the user know something, at once where somebody listens."""
        if self.listener is None:
            self.notices.append(line)
        else:
            self.listener(line)

    async def compact(self, focus: str = "") -> Compacted | None:
        """Let history become a summary because the user wants it; nothing if they stop it."""
        self.abort.clear()
        return await unless(self.abort, self.session.compact(focus))

    def _loop(self, budget_tokens: int) -> Loop:
        settings = self.engine.settings
        return Loop(
            engine=self.engine,
            model=self.model,
            toolbox=self._toolbox(),
            settings=settings.loop,
            budget=self.budget,
            fallback=self.fallback,
            recover=self.recover,
            on_stop=self._on_stop,
            budget_tokens=budget_tokens,
            abort=self.abort,
            source=self.source,
        )

    def _toolbox(self) -> Toolbox:
        return Toolbox(
            tools=self._known,
            tool_context=self.tool_context,
            gate=self._pass,
            after=self._after,
            parallel=self.engine.settings.loop.parallel_tools,
        )

    def _answering(self) -> Model:
        """Give the model that answers just now; a fallback may have taken over in mid-run."""
        if self.fallback is not None and self.fallback.name == self.engine.model:
            return self.fallback
        return self.model

    async def _pass(self, use: ToolUse, tool: Tool) -> Allowed | Denied:
        return await self.pass_at(self._gate(), use, tool)

    async def pass_at(self, gate: Gate, use: ToolUse, tool: Tool) -> Allowed | Denied:
        """Ask the hooks, then the permissions: one's own gate, or that of a fork."""
        fields: JsonObject = {"tool_name": use.name, "tool_input": use.input, "tool_use_id": use.id}
        verdict = await self._fire("PreToolUse", fields)
        if verdict.should_stop:
            return Denied(reason=verdict.stop_reason or "a hook ended the turn", ends_turn=True)
        given = use.input if verdict.updated_input is None else verdict.updated_input
        self.was_refused = False
        decision = await gate.check(tool, given, self._places(), hook=verdict.decision())
        if decision.outcome == "deny":
            return Denied(reason=f"Not allowed: {decision.reason}.", ends_turn=self.was_refused)
        return Allowed(input=given)

    def _gate(self) -> Gate:
        """Keep to reading while a plan is being made, and go back to the user's mode after."""
        if self.tool_context.plan.is_on and self.gate.mode != "plan":
            self._mode_before, self.gate.mode = self.gate.mode, "plan"
        elif not self.tool_context.plan.is_on and self._mode_before is not None:
            self.gate.mode, self._mode_before = self._mode_before, None
        return self.gate

    async def _after(self, use: ToolUse, outcome: Outcome, seconds: float) -> Outcome:
        """Let hooks see a result, replace it, or object to it."""
        self._touch(use, outcome)
        fields: JsonObject = {
            "tool_name": use.name,
            "tool_input": use.input,
            "tool_use_id": use.id,
            "tool_response": text_of(outcome.content),
            "duration_ms": round(seconds * 1_000),
        }
        verdict = await self._fire("PostToolUse", fields)
        content = outcome.content
        if isinstance(verdict.updated_output, str):
            content = verdict.updated_output
        if verdict.is_blocked:
            content = _with(content, f"A hook objects: {verdict.reason}")
        return replace(outcome, content=content)

    def _touch(self, use: ToolUse, outcome: Outcome) -> None:
        """Note which file was read or written: instructions may lie near it."""
        tool = self._known.get(use.name)
        if self.nearby is None or tool is None or outcome.is_error:
            return
        if tool.kind in ("read", "write"):
            for name in tool.path_inputs:
                path = use.input.get(name)
                if isinstance(path, str) and path:
                    self.nearby.touch(self.tool_context.resolve(path))

    async def _on_stop(self, text: str, is_active: bool) -> StopVerdict:
        fields: JsonObject = {"stop_hook_active": is_active, "last_assistant_message": text}
        event = "Stop"
        if self.source != "main":
            event, kind = "SubagentStop", self.source.partition(":")[2]
            fields |= {"agent_id": self.session.id, "agent_type": kind}
        said = await self._fire(event, fields)
        if said.should_stop:
            return StopVerdict(prevents=said.stop_reason or "a hook ended the turn")
        return StopVerdict(blocks=(said.reason,) if said.is_blocked else ())

    async def list_tools(self, engine: Engine) -> None:
        """Keep the frame's list of tools true: what MCP loaded since is declared by a new frame."""
        listed = self.definitions()
        changed = updated(engine.frame, self.framer.volatile) if self.framer else None
        if listed != engine.frame.tools or changed is not None:
            engine.record(reframed(engine.frame, listed, changed))

    def definitions(self) -> tuple[JsonObject, ...]:
        """List the tools as requests do, those of MCP that were loaded included."""
        tools = self.tools
        if self.mcp is not None:
            tools = (*tools, self.mcp.search_tool, *self.mcp.loaded)
        self._known.update((tool.name, tool) for tool in tools)
        self.engine.limits_chars.update((tool.name, tool.limit_chars) for tool in tools)
        return tuple(tool.definition() for tool in tools)

    def described(self, name: str) -> Described:
        """Say what a tool is: one of ours by what it declares, any other by its name."""
        tool = self._known.get(name)
        return declared_by(tool) if tool else description_of(name)

    def mark_unread(self, path: str) -> None:
        """Take note that the model no longer has a file's text before it."""
        self.tool_context.files.disarm(self.tool_context.resolve(path))

    async def bring_nearby(self, engine: Engine) -> None:
        """A stage: say the instructions that lie near what was touched since the last call."""
        if self.nearby is None:
            return
        self.nearby.follow(engine.view.history)
        for touched, found in await asyncio.to_thread(self.nearby.due):
            if found.parts:
                text = Text(text=said(found.parts, "nested"))
                engine.record(Said(content=(text,), hidden=True, sources=sources(found.parts)))
            await self.tell_loaded(found, "nested", touched)

    async def renewed_frame(self) -> Framed:
        """Look at prompt and instructions again; for whoever makes the view begin anew."""
        if self.framer is None:
            return self.engine.frame
        made = await renew_frame(self.framer, self.engine.frame)
        await self.tell_loaded(made.gathered, "compact")
        return made.frame

    async def tell_loaded(
        self, found: Gathered, reason: LoadReason, touched: Path | None = None
    ) -> None:
        """Let the user and the hooks know which instructions were read."""
        for notice in found.notices:
            self.notify(notice)
        for part in found.parts:
            await self._fire("InstructionsLoaded", loaded_fields(part, reason, touched))

    async def say_asides(self, engine: Engine) -> None:
        """A stage: tell the model what hooks want it to know."""
        if self._asides:
            engine.say("\n\n".join(self._asides), hidden=True)
            self._asides.clear()

    def _scene(self) -> HookContext:
        return HookContext(
            session=self.session.id,
            transcript=self.engine.log.path,
            cwd=self.tool_context.directory,
            mode=self.gate.mode,
            scratch=self.tool_context.scratch,
            project=self.tool_context.root,
        )

    def _places(self) -> Places:
        """Say where the tools may work just now; planning narrows it."""
        plan = self.tool_context.plan
        return Places(
            roots=self.tool_context.roots,
            cwd=self.tool_context.directory,
            readable=(
                self.tool_context.scratch,
                *self.engine.results.readable(self.engine.view.history),
            ),
            writable=(plan.file,) if plan.file else (),
        )

    async def close(self, reason: str = "other") -> None:
        """End what runs, let hooks know, keep what was learnt; the log is let go whatever happens."""
        try:
            if self._events is not None:
                await self._events.aclose()
            if self.supervisor is not None:
                await self.supervisor.close()
            for finish in self.at_close:
                await finish()
            self.session.stages.notes.close()  # before the model that writes them is let go
            await self.tool_context.close()
            if self.mcp is not None:
                await self.mcp.close()
            await self.hooks.fire("SessionEnd", {"reason": reason}, self._scene())
            for model in (self.model, self.fallback, *self._retired):
                if model is not None:
                    await model.close()
        finally:
            self.session.close()


def _with(content: ResultContent, text: str) -> ResultContent:
    return f"{content}\n{text}" if isinstance(content, str) else (*content, Text(text=text))
