"""Runs the hooks of an event side by side and merges their answers into one verdict.

Hooks never raise into the session: one that cannot be started, fails or takes too long is an
error in the verdict. The loop decides what the verdict means for a turn.
"""

import asyncio
import hashlib
import os
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from holdfast.hooks.config import Hook, chosen
from holdfast.hooks.events import END_TOTAL_MAX_SECONDS, EVENTS, HookEvent
from holdfast.hooks.verdict import HookOutcome, HookVerdict, merge, read_outcome
from holdfast.messages import JsonObject
from holdfast.settings.files import write_private
from holdfast.tools import process
from holdfast.tools.permissions.decide import Mode

TEXT_CHARS = 10_000
"""A longer text goes to a file: hooks are asides, not sources."""
PREVIEW_CHARS = 2_000
"""Enough of it to see what it is."""

_MODE_NAMES: dict[Mode, str] = {
    "ask": "default",
    "accept_edits": "acceptEdits",
    "plan": "plan",
    "bypass": "bypassPermissions",
}
"""As hooks written for other programs expect them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookContext:
    """What every hook receives, and where it runs."""

    session: str
    transcript: Path
    cwd: Path
    mode: Mode
    scratch: Path
    """Where texts too long for a prompt are left."""
    project: Path | None = None


@dataclass(slots=True, kw_only=True)
class Hooks:
    """The hooks of one session; its only state is which one-time hooks have run."""

    hooks: tuple[Hook, ...]
    _spent: set[Hook] = field(default_factory=set)

    async def fire(self, event: str, fields: JsonObject, scene: HookContext) -> HookVerdict:
        """Run every matching hook at once and merge their answers."""
        picked = [h for h in chosen(self.hooks, event, fields) if h not in self._spent]
        self._spent.update(hook for hook in picked if hook.is_once)
        if not picked:
            return HookVerdict()
        given = msgspec.json.encode(hook_input(event, fields, scene))
        moment = EVENTS[event]
        limit = _total_seconds(moment, picked)
        runs = (_run(hook, moment, given, scene, limit) for hook in picked)
        return merge(await asyncio.gather(*runs))


def hook_input(event: str, fields: JsonObject, scene: HookContext) -> JsonObject:
    return {
        "session_id": scene.session,
        "transcript_path": str(scene.transcript),
        "cwd": str(scene.cwd),
        "permission_mode": _MODE_NAMES[scene.mode],
        "hook_event_name": event,
        **fields,
    }


def _total_seconds(event: HookEvent, hooks: list[Hook]) -> float | None:
    if event.total_seconds is None:
        return None
    asked = (hook.timeout_seconds for hook in hooks if hook.timeout_seconds is not None)
    return min(max(event.total_seconds, *asked, 0.0), END_TOTAL_MAX_SECONDS)


async def _run(
    hook: Hook, event: HookEvent, given: bytes, scene: HookContext, limit_seconds: float | None
) -> HookOutcome:
    timeout_seconds = limit_seconds or hook.timeout_seconds or event.timeout_seconds
    try:
        ended = await process.run(
            _arguments(hook),
            given=given,
            cwd=scene.cwd,
            variables=_variables(scene),
            timeout_seconds=timeout_seconds,
        )
    except (OSError, ValueError) as error:
        return HookOutcome(error=f"hook {hook.command!r} could not be started: {error}")
    if ended.is_timed_out:
        return HookOutcome(error=f"hook {hook.command!r} was ended after {timeout_seconds:g} s")
    outcome = read_outcome(event, ended.status, _text(ended.stdout), _text(ended.stderr))
    if outcome.error:
        outcome = replace(outcome, error=f"hook {hook.command!r}: {outcome.error}")
    return shortened(outcome, scene.scratch)


def _text(output: bytes) -> str:
    return output.decode("utf-8", "replace")


def _arguments(hook: Hook) -> tuple[str, ...]:
    if hook.arguments:
        return (hook.command, *hook.arguments)
    return (shutil.which("bash") or "/bin/sh", "-c", hook.command)


def _variables(scene: HookContext) -> dict[str, str]:
    project = str(scene.project or scene.cwd)
    return {**os.environ, "HOLDFAST_PROJECT_DIR": project, "CLAUDE_PROJECT_DIR": project}


def shortened(outcome: HookOutcome, scratch: Path) -> HookOutcome:
    """Move long texts to files, leaving their beginnings."""
    output = outcome.updated_output
    return replace(
        outcome,
        reason=_short(outcome.reason, scratch),
        context=_short(outcome.context, scratch),
        message=_short(outcome.message, scratch),
        stop_reason=_short(outcome.stop_reason, scratch),
        error=_short(outcome.error, scratch),
        updated_output=_short(output, scratch) if isinstance(output, str) else output,
    )


def _short(text: str, scratch: Path) -> str:
    if len(text) <= TEXT_CHARS:
        return text
    name = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
    file = scratch / f"hook-{name}.txt"
    try:
        write_private(file, text, is_synced=False)
        where = f"the whole is in {file}"
    except OSError as error:
        where = f"the rest could not be kept: {error}"
    return f"{text[:PREVIEW_CHARS]}\n[{len(text):,} characters; {where}]"
