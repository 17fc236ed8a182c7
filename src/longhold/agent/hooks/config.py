"""Reads hooks from the `hooks` sections of the settings files.

A project's hooks run only once the user has trusted them. Unknown events and hook types are skipped
with a notice, because settings files are shared with other programs.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from msgspec import Struct

from longhold.agent.permissions.rules import Rule, denies_command, is_for_tool, parse_rule
from longhold.agent.permissions.sources import SettingsSection, read_sections
from longhold.core.messages import Json, JsonObject
from longhold.core.tools.shell_programs import every_command
from longhold.core.tools.shell_reader import read_script
from longhold.errors import ConfigError

TIMEOUT_SECONDS = 600.0
"""Long enough for a test run after an edit. A hook may set its own timeout."""
PROMPT_TIMEOUT_SECONDS = 30.0
"""Short, because the user has just pressed return and is waiting."""
END_TOTAL_SECONDS = 1.5
"""For all hooks together, because the user has left. A hook's own timeout can raise it."""
END_TOTAL_MAX_SECONDS = 60.0
COMPACT_TIMEOUT_SECONDS = 60.0
"""The window is full and the turn waits for the compaction."""
STOP_BLOCKS_MAX = 8
"""Maximum consecutive blocks, so that a hook cannot keep a session from ending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookEvent:
    name: str
    matches_on: str = ""
    """The input field that matchers apply to, or "" if the event has none."""
    can_block: bool = False
    text_is_context: bool = False
    """Whether plain text on stdout is shown to the model."""
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
    """If given, the command runs without a shell."""
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
    """The project's hooks that are not trusted yet. See `permissions.trust`."""
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
    """Return the hooks of a section, and a line about each that is skipped."""
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
    """Return whether the hook's condition may match a call. True if in doubt."""
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
