"""Hooks and permissions around every tool call, including calls of forks and background work."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from longhold.agent.hooks import HookContext, Hooks, HookVerdict
from longhold.agent.instructions.nearby import Nearby
from longhold.agent.permissions import Decision, Gate, Mode, Places, Question
from longhold.agent.permissions.gate import combine
from longhold.agent.user_notices import Notices
from longhold.core.messages import JsonObject, Text, ToolUse, text_of
from longhold.core.tools.context import ToolContext
from longhold.core.tools.protocol import Outcome, Tool
from longhold.core.turn.abort import run_unless_aborted
from longhold.core.turn.engine import Engine
from longhold.core.turn.fork.asking import Permit
from longhold.core.turn.loop import StopVerdict
from longhold.core.turn.round import Allowed, Denied


@dataclass(slots=True, kw_only=True)
class HookEvents:
    hooks: Hooks
    engine: Engine
    tool_context: ToolContext
    gate: Gate
    notices: Notices
    abort: asyncio.Event
    _asides: list[str] = field(default_factory=list)

    async def ask(self, event: str, fields: JsonObject) -> HookVerdict:
        """Run an event's hooks. An abort stops them and returns an empty verdict."""
        said = await run_unless_aborted(self.abort, self.hooks.fire(event, fields, self._context()))
        verdict = said or HookVerdict()
        self.notices.extend((*verdict.messages, *verdict.errors))
        return verdict

    async def fire(self, event: str, fields: JsonObject) -> HookVerdict:
        """Run an event's hooks, and add their context before the next call."""
        verdict = await self.ask(event, fields)
        self._asides.extend(verdict.context)
        return verdict

    async def stop(self, source: str, text: str, is_active: bool) -> StopVerdict:
        """Run the hooks at the end of a turn of `source`: `main`, or `agent:<kind>`."""
        fields: JsonObject = {"stop_hook_active": is_active, "last_assistant_message": text}
        event = "Stop"
        if source != "main":
            event, kind = "SubagentStop", source.partition(":")[2]
            fields |= {"agent_id": self.engine.log.header.session, "agent_type": kind}
        said = await self.fire(event, fields)
        if said.should_stop:
            return StopVerdict(prevents=said.stop_reason or "a hook ended the turn")
        return StopVerdict(blocks=(said.reason,) if said.is_blocked else ())

    async def end(self, reason: str) -> None:
        """Run the SessionEnd hooks, even after an abort."""
        await self.hooks.fire("SessionEnd", {"reason": reason}, self._context())

    async def say_asides(self, engine: Engine) -> None:
        """A stage that adds the context that hooks returned since the last call."""
        if self._asides:
            engine.say("\n\n".join(self._asides), hidden=True)
            self._asides.clear()

    def _context(self) -> HookContext:
        return HookContext(
            session=self.engine.log.header.session,
            transcript=self.engine.log.path,
            cwd=self.tool_context.directory,
            mode=self.gate.mode,
            scratch=self.tool_context.scratch,
            project=self.tool_context.root,
            variables=self.tool_context.variables,
        )


@dataclass(slots=True, kw_only=True)
class ToolGuard:
    gate: Gate
    hooks: HookEvents
    engine: Engine
    tool_context: ToolContext
    nearby: Nearby
    known: Mapping[str, Tool]
    _mode_before: Mode | None = None

    async def check(self, use: ToolUse, tool: Tool) -> Allowed | Denied:
        self._follow_plan()
        return await self.check_at(self.gate, use, tool)

    async def check_at(self, gate: Gate, use: ToolUse, tool: Tool) -> Allowed | Denied:
        """Decide on a call with this gate, which may be narrower than the agent's."""
        verdict = await self.hooks.fire("PreToolUse", _fields(use))
        if verdict.should_stop:
            return Denied(reason=verdict.stop_reason or "a hook ended the turn", ends_turn=True)
        given = use.input if verdict.updated_input is None else verdict.updated_input
        answered = HookVerdict()

        async def ask_hooks(question: Question) -> Decision | None:
            nonlocal answered
            answered = await self.hooks.fire("PermissionRequest", _describe_question(question))
            return answered.decision()

        decision = await gate.check(
            tool, given, self.places(), hook=verdict.decision(), ask_first=ask_hooks
        )
        if decision.outcome == "allow" and answered.updated_input is not None:
            given = answered.updated_input
            decision = gate.judge(tool, given, self.places())
        if decision.outcome == "deny":
            return Denied(
                reason=f"Not allowed: {decision.reason}.",
                ends_turn=decision.by_user or answered.should_stop,
                refused=decision.words if decision.by_user else None,
            )
        return Allowed(input=given)

    def permit_unasked(self, readable: tuple[Path, ...] = ()) -> Permit:
        """Return a permit for background work, which denies calls that would prompt the user.

        It always uses plan mode, because nobody watches background work even if the user allows the
        agent everything. `readable` paths may be read in addition.
        """

        async def check(use: ToolUse, tool: Tool) -> Allowed | Denied:
            verdict = await self.hooks.ask("PreToolUse", _fields(use))
            if verdict.should_stop:
                return Denied(reason=verdict.stop_reason or "a hook says no")
            given = use.input if verdict.updated_input is None else verdict.updated_input
            gate = Gate(rules=self.gate.rules, mode="plan", above=self.gate)
            places = replace(self.places(readable), writable=())
            decision = combine(gate.judge(tool, given, places), verdict.decision())
            if decision.outcome != "allow":
                return Denied(reason=f"Not allowed here: {decision.reason}.")
            return Allowed(input=given)

        return check

    def may_read(self, tool: Tool, path: Path) -> bool:
        places = Places(roots=self.tool_context.roots, cwd=self.tool_context.directory)
        return self.gate.judge(tool, {"file_path": str(path)}, places).outcome == "allow"

    async def after(self, use: ToolUse, outcome: Outcome, seconds: float) -> Outcome:
        """Let hooks replace a result or object to it."""
        self._touch(use, outcome)
        fields = _fields(use) | {
            "tool_response": text_of(outcome.content),
            "duration_ms": round(seconds * 1_000),
        }
        verdict = await self.hooks.fire("PostToolUse", fields)
        content = outcome.content
        if isinstance(verdict.updated_output, str):
            content = verdict.updated_output
        if verdict.is_blocked:
            said = f"A hook objects: {verdict.reason}"
            is_text = isinstance(content, str)
            content = f"{content}\n{said}" if is_text else (*content, Text(text=said))
        return replace(outcome, content=content)

    def places(self, readable: tuple[Path, ...] = ()) -> Places:
        context, plan = self.tool_context, self.tool_context.plan
        results = self.engine.results.readable(self.engine.view.history)
        return Places(
            roots=context.roots,
            cwd=context.directory,
            readable=(context.scratch, *results, *readable),
            writable=(plan.file,) if plan.file else (),
        )

    def _follow_plan(self) -> None:
        is_planning = self.tool_context.plan.is_on
        if is_planning and self.gate.mode != "plan":
            self._mode_before = self.gate.switch_mode("plan")
        elif not is_planning and self._mode_before is not None:
            self.gate.switch_mode(self._mode_before)
            self._mode_before = None

    def _touch(self, use: ToolUse, outcome: Outcome) -> None:
        """Record a touched file, because instructions may be near it."""
        tool = self.known.get(use.name)
        if tool is None or outcome.is_error or tool.kind not in ("read", "write"):
            return
        for name in tool.path_inputs:
            path = use.input.get(name)
            if isinstance(path, str) and path:
                self.nearby.touch(self.tool_context.resolve(path))


def _describe_question(question: Question) -> JsonObject:
    """Describe a question as PermissionRequest hooks expect it, with the suggested rule."""
    rule = question.suggestion
    named: JsonObject = {"toolName": rule.tool, "ruleContent": rule.content} if rule else {}
    suggested = {"type": "addRules", "behavior": "allow", "destination": "session"}
    return {
        "tool_name": question.tool,
        "tool_input": question.given,
        "permission_suggestions": [{**suggested, "rules": [named]}] if named else [],
    }


def _fields(use: ToolUse) -> JsonObject:
    return {"tool_name": use.name, "tool_input": use.input, "tool_use_id": use.id}
