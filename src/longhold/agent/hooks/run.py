"""Runs an event's hooks in parallel and merges their answers into one verdict.

Hooks never raise into the session: a failure or timeout becomes an error in the verdict.
"""

import asyncio
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from longhold.agent.hooks.config import END_TOTAL_MAX_SECONDS, EVENTS, Hook, HookEvent, select_hooks
from longhold.agent.hooks.verdict import HookVerdict, merge, read_verdict
from longhold.agent.permissions.decide import Mode
from longhold.agent.permissions.rules import MODES
from longhold.agent.permissions.sources import is_unchanged
from longhold.agent.tools import process
from longhold.core.messages import JsonObject
from longhold.core.settings.private_files import write_private
from longhold.core.tools.environment import find_program, shell_variables

TEXT_CHARS = 10_000
"""Longer output is moved to a file."""
PREVIEW_CHARS = 2_000

_MODE_NAMES = {mode: name for name, mode in MODES.items()}
"""The names that hooks written for other programs expect, which come last in `MODES`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookContext:
    session: str
    transcript: Path
    cwd: Path
    mode: Mode
    scratch: Path
    project: Path | None = None
    variables: Mapping[str, str] = field(default_factory=lambda: shell_variables(os.environ))
    """The environment of hooks, the same as that of shell commands."""


@dataclass(slots=True, kw_only=True)
class Hooks:
    hooks: tuple[Hook, ...]
    _spent: set[Hook] = field(default_factory=set)

    async def fire(self, event: str, fields: JsonObject, context: HookContext) -> HookVerdict:
        picked = [h for h in select_hooks(self.hooks, event, fields) if h not in self._spent]
        self._spent.update(hook for hook in picked if hook.is_once)
        if not picked:
            return HookVerdict()
        given = msgspec.json.encode(_hook_input(event, fields, context))
        described = EVENTS[event]
        limit = _total_seconds(described, picked)
        runs = (_run(hook, described, given, context, limit) for hook in picked)
        return merge(await asyncio.gather(*runs))


def _hook_input(event: str, fields: JsonObject, context: HookContext) -> JsonObject:
    return {
        "session_id": context.session,
        "transcript_path": str(context.transcript),
        "cwd": str(context.cwd),
        "permission_mode": _MODE_NAMES[context.mode],
        "hook_event_name": event,
        **fields,
    }


def _total_seconds(event: HookEvent, hooks: list[Hook]) -> float | None:
    if event.total_seconds is None:
        return None
    asked = (hook.timeout_seconds for hook in hooks if hook.timeout_seconds is not None)
    return min(max(event.total_seconds, *asked, 0.0), END_TOTAL_MAX_SECONDS)


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
        where = f"the rest could not be kept: {error}"
    return f"{text[:PREVIEW_CHARS]}\n[{len(text):,} characters; {where}]"
