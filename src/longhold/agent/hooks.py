"""Reads the user's hooks, runs those of an event in parallel, and merges their answers.

A project's hooks run only once the user has trusted them. A hook that fails or times out does not
raise an exception. The verdict contains the error instead. Deny takes precedence over ask, and ask
over allow. A single hook can block an event.
"""

import asyncio
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from longhold.agent.permissions.decide import Decision, Mode
from longhold.agent.permissions.rules import MODES, Rule, denies_command, is_for_tool, parse_rule
from longhold.agent.permissions.sources import SettingsSection, is_unchanged, read_sections
from longhold.agent.tools import process
from longhold.core.messages import Json, JsonObject
from longhold.core.settings.private_files import write_private
from longhold.core.tools.environment import find_program, shell_variables
from longhold.core.tools.shell_programs import every_command
from longhold.core.tools.shell_reader import read_script
from longhold.errors import ConfigError

TIMEOUT_SECONDS = 600.0
"""Long enough for a test run after an edit. A hook may set its own timeout."""
PROMPT_TIMEOUT_SECONDS = 30.0
"""Short, because the user has just pressed return and is waiting."""
END_TOTAL_SECONDS = 1.5
"""The limit for all hooks together, because the user has left. A hook's timeout can raise it."""
END_TOTAL_MAX_SECONDS = 60.0
COMPACT_TIMEOUT_SECONDS = 60.0
"""Short, because the window is full and the turn waits for the compaction."""
STOP_BLOCKS_MAX = 8
"""The maximum number of blocks in a row, so that a hook cannot keep a session from ending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookEvent:
    name: str
    matches_on: str = ""
    """The input field that matchers apply to, or "" if the event has none."""
    can_block: bool = False
    text_is_context: bool = False
    timeout_seconds: float = TIMEOUT_SECONDS
    total_seconds: float | None = None


EVENTS = {
    event.name: event
    for event in (
        HookEvent(name="SessionStart", matches_on="source", text_is_context=True),
        HookEvent(name="SessionEnd", matches_on="reason", total_seconds=END_TOTAL_SECONDS),
        HookEvent(
            name="UserPromptSubmit",
            can_block=True,
            text_is_context=True,
            timeout_seconds=PROMPT_TIMEOUT_SECONDS,
        ),
        HookEvent(name="PreToolUse", matches_on="tool_name", can_block=True),
        HookEvent(name="PermissionRequest", matches_on="tool_name"),
        HookEvent(name="PostToolUse", matches_on="tool_name", can_block=True),
        HookEvent(name="InstructionsLoaded", matches_on="load_reason"),
        HookEvent(name="Stop", can_block=True),
        HookEvent(name="SubagentStart", matches_on="agent_type", text_is_context=True),
        HookEvent(name="SubagentStop", matches_on="agent_type", can_block=True),
        HookEvent(
            name="PreCompact",
            matches_on="trigger",
            can_block=True,
            text_is_context=True,
            timeout_seconds=COMPACT_TIMEOUT_SECONDS,
        ),
        HookEvent(
            name="PostCompact", matches_on="trigger", timeout_seconds=COMPACT_TIMEOUT_SECONDS
        ),
    )
}


_PLAIN_NAMES = re.compile(r"[\w\-, |]*", re.ASCII)


class _Command(Struct, frozen=True, kw_only=True):
    type: str
    command: str = ""
    args: tuple[str, ...] = ()
    timeout: float | None = None
    once: bool = False
    condition: str = msgspec.field(default="", name="if")


class _Group(Struct, frozen=True, kw_only=True):
    hooks: tuple[_Command, ...]
    matcher: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    event: str
    command: str
    arguments: tuple[str, ...] = ()
    matcher: str = ""
    condition: Rule | None = None
    """The hook is skipped for tool calls that this rule cannot match."""
    timeout_seconds: float | None = None
    is_once: bool = False
    section: SettingsSection | None = field(default=None, compare=False)
    """The source of the hook. It must still be trusted and unchanged when the hook runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookPlan:
    hooks: tuple[Hook, ...] = ()
    untrusted: tuple[SettingsSection, ...] = ()
    skipped: tuple[str, ...] = ()


def load_hooks(project: Path | None, *, at: Path | None = None) -> HookPlan:
    hooks: list[Hook] = []
    untrusted: list[SettingsSection] = []
    skipped: list[str] = []
    for section in read_sections("hooks", project, at=at):
        if not section.is_trusted:
            untrusted.append(section)
            continue
        found, unknown = hooks_in(section)
        hooks += found
        skipped += unknown
    return HookPlan(hooks=tuple(hooks), untrusted=tuple(untrusted), skipped=tuple(skipped))


def hooks_in(section: SettingsSection) -> tuple[list[Hook], list[str]]:
    """Return the hooks of a section, and a line about each skipped hook."""
    hooks: list[Hook] = []
    skipped: list[str] = []
    for event, groups in section.value.items():
        if event not in EVENTS:
            skipped.append(f"{section.file}: no event {event}; there are {', '.join(EVENTS)}")
            continue
        for group in _groups(groups, section, event):
            for one in group.hooks:
                if one.type == "command" and one.command:
                    hooks.append(_hook(event, group.matcher, one, section))
                else:
                    said = f"only hooks of type 'command' are run, not {one.type!r}"
                    skipped.append(f"{section.file}: hooks.{event}: {said}")
    return hooks, skipped


def _groups(value: Json, section: SettingsSection, event: str) -> tuple[_Group, ...]:
    where = f"{section.file}: hooks.{event}"
    try:
        groups = msgspec.convert(value, tuple[_Group, ...])
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: {error}") from error
    for group in groups:
        try:
            matches(group.matcher, "")
        except re.error as error:
            raise ConfigError(f"{where}: matcher {group.matcher!r}: {error}") from error
    return groups


def _hook(event: str, matcher: str, command: _Command, section: SettingsSection) -> Hook:
    return Hook(
        event=event,
        command=command.command,
        arguments=command.args,
        matcher=matcher,
        condition=parse_rule(command.condition) if command.condition else None,
        timeout_seconds=command.timeout,
        is_once=command.once,
        section=section,
    )


def matches(matcher: str, value: str) -> bool:
    if matcher in ("", "*"):
        return True
    if _PLAIN_NAMES.fullmatch(matcher):
        return value in {name.strip() for name in re.split(r"[|,]", matcher)}
    return re.search(matcher, value) is not None


def select_hooks(hooks: tuple[Hook, ...], event: str, fields: JsonObject) -> tuple[Hook, ...]:
    value = str(fields.get(EVENTS[event].matches_on, ""))
    picked: dict[tuple[str, tuple[str, ...]], Hook] = {}
    for hook in hooks:
        if hook.event == event and matches(hook.matcher, value) and _may_apply(hook, fields):
            picked.setdefault((hook.command, hook.arguments), hook)
    return tuple(picked.values())


def _may_apply(hook: Hook, fields: JsonObject) -> bool:
    """Return whether the hook's condition may match a call. In doubt, return True."""
    rule, tool = hook.condition, str(fields.get("tool_name", ""))
    if rule is None:
        return True
    if not is_for_tool(rule, tool):
        return False
    command = fields.get("tool_input", {}).get("command")
    if not rule.content or not isinstance(command, str):
        return True
    script = read_script(command)
    doubtful = "unreadable" in script.doubts
    return doubtful or any(denies_command(rule, each) for each in every_command(script))


Permission: TypeAlias = Literal["allow", "ask", "deny"]

_PERMISSIONS: dict[str, Permission] = {
    "allow": "allow",
    "approve": "allow",
    "ask": "ask",
    "defer": "ask",
    "deny": "deny",
    "block": "deny",
}
_WEIGHT: dict[Permission, int] = {"allow": 0, "ask": 1, "deny": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class HookVerdict:
    is_blocked: bool = False
    reason: str = ""
    permission: Permission | None = None
    updated_input: JsonObject | None = None
    updated_output: Json = None
    context: tuple[str, ...] = ()
    """Text for the model."""
    messages: tuple[str, ...] = ()
    """Text for the user."""
    should_stop: bool = False
    stop_reason: str = ""
    errors: tuple[str, ...] = ()

    def decision(self) -> Decision | None:
        if self.permission is None:
            return None
        return Decision(outcome=self.permission, reason=self.reason or "a hook said so")


def read_verdict(event: HookEvent, status: int, stdout: str, stderr: str) -> HookVerdict:
    if status == 2:
        return _block(event, stderr.strip() or "a hook blocked this and gave no reason")
    said = stdout.strip()
    if said.startswith("{"):
        try:
            return _read_answer(event, json.loads(said))
        except (ValueError, RecursionError):
            if status == 0:
                return HookVerdict(errors=("it printed an object that is not valid JSON",))
    if status != 0:
        return HookVerdict(errors=(f"it ended with status {status}: {stderr.strip() or said}",))
    return HookVerdict(context=(said,) if said and event.text_is_context else ())


def _block(event: HookEvent, reason: str) -> HookVerdict:
    if not event.can_block:
        return HookVerdict(errors=(reason,))
    if event.name == "PreToolUse":
        return HookVerdict(permission="deny", reason=reason)
    return HookVerdict(is_blocked=True, reason=reason)


def _read_answer(event: HookEvent, answer: JsonObject) -> HookVerdict:
    """Read a JSON answer. Fields of the wrong type count as missing."""
    own = answer.get("hookSpecificOutput")
    own = own if isinstance(own, dict) else {}
    if own.get("hookEventName", event.name) != event.name:
        return HookVerdict(errors=(f"it answered for {own['hookEventName']!r}, not {event.name}",))
    if event.name == "PermissionRequest":
        return _read_permission(answer, own.get("decision"))
    decision = _text(answer, "decision")
    permission: Permission | None = None
    if event.name == "PreToolUse":
        permission = _PERMISSIONS.get(_text(own, "permissionDecision") or decision)
    given = own.get("updatedInput")
    return HookVerdict(
        is_blocked=event.can_block and permission is None and decision == "block",
        reason=_text(own, "permissionDecisionReason") or _text(answer, "reason"),
        permission=permission,
        updated_input=given if isinstance(given, dict) else None,
        updated_output=own.get("updatedToolOutput"),
        context=tuple(filter(None, [_text(own, "additionalContext")])),
        messages=tuple(filter(None, [_text(answer, "systemMessage")])),
        should_stop=answer.get("continue") is False,
        stop_reason=_text(answer, "stopReason"),
    )


def _read_permission(answer: JsonObject, decision: Json) -> HookVerdict:
    """Read a permission answer. Without a decision, the user is prompted."""
    said = decision if isinstance(decision, dict) else {}
    given = said.get("updatedInput")
    behavior = _text(said, "behavior")
    return HookVerdict(
        permission=_PERMISSIONS.get(behavior) if behavior in ("allow", "deny") else None,
        reason=_text(said, "message"),
        updated_input=given if isinstance(given, dict) else None,
        messages=tuple(filter(None, [_text(answer, "systemMessage")])),
        should_stop=answer.get("continue") is False or said.get("interrupt") is True,
        stop_reason=_text(answer, "stopReason"),
    )


def _text(value: JsonObject, key: str) -> str:
    found = value.get(key)
    return found if isinstance(found, str) else ""


def merge(verdicts: Iterable[HookVerdict]) -> HookVerdict:
    """Merge answers. Their order matters only if two of them rewrite the same input or output."""
    said = tuple(verdicts)
    permissions = [each.permission for each in said if each.permission]
    permission = max(permissions, key=_WEIGHT.__getitem__, default=None)
    speaks = [o for o in said if o.is_blocked or (permission and o.permission == permission)]
    inputs = [o.updated_input for o in said if o.updated_input is not None]
    outputs = [o.updated_output for o in said if o.updated_output is not None]
    stops = [o.stop_reason for o in said if o.should_stop]
    return HookVerdict(
        is_blocked=any(each.is_blocked for each in said),
        reason="\n".join(o.reason for o in speaks if o.reason),
        permission=permission,
        updated_input=inputs[-1] if inputs and permission != "deny" else None,
        updated_output=outputs[-1] if outputs else None,
        context=tuple(text for o in said for text in o.context),
        messages=tuple(text for o in said for text in o.messages),
        should_stop=bool(stops),
        stop_reason="\n".join(reason for reason in stops if reason),
        errors=tuple(error for o in said for error in o.errors),
    )


TEXT_CHARS = 10_000
PREVIEW_CHARS = 2_000

_MODE_NAMES = {mode: name for name, mode in MODES.items()}
"""The mode names that hooks for other programs expect. They come last in `MODES`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookContext:
    session: str
    transcript: Path
    cwd: Path
    mode: Mode
    scratch: Path
    project: Path | None = None
    variables: Mapping[str, str] = field(default_factory=lambda: shell_variables(os.environ))
    """The environment of hooks, which is the same as that of shell commands."""


@dataclass(slots=True, kw_only=True)
class Hooks:
    hooks: tuple[Hook, ...]
    _spent: set[Hook] = field(default_factory=set)

    async def fire(self, event: str, fields: JsonObject, context: HookContext) -> HookVerdict:
        picked = [h for h in select_hooks(self.hooks, event, fields) if h not in self._spent]
        self._spent.update(hook for hook in picked if hook.is_once)
        if not picked:
            return HookVerdict()
        given: JsonObject = {
            "session_id": context.session,
            "transcript_path": str(context.transcript),
            "cwd": str(context.cwd),
            "permission_mode": _MODE_NAMES[context.mode],
            "hook_event_name": event,
            **fields,
        }
        encoded, described = msgspec.json.encode(given), EVENTS[event]
        limit = _total_seconds(described, picked)
        runs = (_run(hook, described, encoded, context, limit) for hook in picked)
        return merge(await asyncio.gather(*runs))


def _total_seconds(event: HookEvent, hooks: list[Hook]) -> float | None:
    if event.total_seconds is None:
        return None
    asked = (hook.timeout_seconds or 0.0 for hook in hooks)
    return min(max(event.total_seconds, *asked), END_TOTAL_MAX_SECONDS)


async def _run(
    hook: Hook, event: HookEvent, given: bytes, context: HookContext, limit_seconds: float | None
) -> HookVerdict:
    if hook.section is not None and not await asyncio.to_thread(is_unchanged, hook.section):
        said = f"hook {hook.command!r} was not run: files it may run have changed; see `longhold trust`"
        return HookVerdict(errors=(said,))
    timeout_seconds = limit_seconds or hook.timeout_seconds or event.timeout_seconds
    shell = (find_program("bash") or "/bin/sh", "-c")
    project = str(context.project or context.cwd)
    # A project's hook runs in the project, because its relative paths were trusted there.
    owner = hook.section.project if hook.section is not None else None
    try:
        ended = await process.run(
            (hook.command, *hook.arguments) if hook.arguments else (*shell, hook.command),
            given=given,
            cwd=owner or context.cwd,
            variables={
                **context.variables,
                "LONGHOLD_PROJECT_DIR": project,
                "CLAUDE_PROJECT_DIR": project,
            },
            timeout_seconds=timeout_seconds,
        )
    except (OSError, ValueError) as error:
        return HookVerdict(errors=(f"hook {hook.command!r} could not be started: {error}",))
    if ended.is_timed_out:
        said = f"hook {hook.command!r} was stopped after {timeout_seconds:g} s"
        return HookVerdict(errors=(said,))
    stdout, stderr = (text.decode("utf-8", "replace") for text in (ended.stdout, ended.stderr))
    verdict = read_verdict(event, ended.status, stdout, stderr)
    errors = tuple(f"hook {hook.command!r}: {error}" for error in verdict.errors)
    return _shorten(replace(verdict, errors=errors), context.scratch)


def _shorten(verdict: HookVerdict, scratch: Path) -> HookVerdict:
    output = verdict.updated_output
    return replace(
        verdict,
        reason=_move_to_file(verdict.reason, scratch),
        context=tuple(_move_to_file(text, scratch) for text in verdict.context),
        messages=tuple(_move_to_file(text, scratch) for text in verdict.messages),
        stop_reason=_move_to_file(verdict.stop_reason, scratch),
        errors=tuple(_move_to_file(text, scratch) for text in verdict.errors),
        updated_output=_move_to_file(output, scratch) if isinstance(output, str) else output,
    )


def _move_to_file(text: str, scratch: Path) -> str:
    if len(text) <= TEXT_CHARS:
        return text
    name = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
    file = scratch / f"hook-{name}.txt"
    try:
        write_private(file, text, is_synced=False)
        where = f"the full text is in {file}"
    except OSError as error:
        where = f"the rest could not be saved: {error}"
    return f"{text[:PREVIEW_CHARS]}\n[{len(text):,} characters; {where}]"
