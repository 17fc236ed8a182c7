"""Parses hook output and merges it into one verdict. Pure. Deny takes precedence over ask, and ask
over allow. One block is enough. Other failures stop nothing.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from longhold.agent.hooks.config import HookEvent
from longhold.agent.permissions.decide import Decision
from longhold.core.messages import Json, JsonObject

Permission: TypeAlias = Literal["allow", "ask", "deny"]

BLOCKING_STATUS = 2

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
    """The answer of one hook, or of all hooks of an event, merged."""

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
    if status == BLOCKING_STATUS:
        return _block(event, stderr.strip() or "a hook blocked this and gave no reason")
    said = stdout.strip()
    if said.startswith("{"):
        try:
            return _read_answer(event, json.loads(said))
        except (ValueError, RecursionError):
            if status == 0:
                return HookVerdict(errors=("it printed an object that is not JSON",))
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
    """Merge answers. Their order matters only if two rewrite the same input or output."""
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
