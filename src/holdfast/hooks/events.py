"""The events at which hooks run, one line each.

Nothing else here knows events by name: a further event is a further line.
"""

from dataclasses import dataclass

TIMEOUT_SECONDS = 600.0
"""Long enough for a test run after an edit; each hook may set its own."""
PROMPT_TIMEOUT_SECONDS = 30.0
"""The user has just pressed return and is waiting."""
END_TOTAL_SECONDS = 1.5
"""All hooks together, once the user has left; a hook that sets its own time raises it."""
END_TOTAL_MAX_SECONDS = 60.0
"""Longer than a user waits for a program to close."""
COMPACT_TIMEOUT_SECONDS = 60.0
"""The window is full, and the work waits until room is made."""
STOP_BLOCKS_MAX = 8
"""In a row; a hook that always blocks would never let the session end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookEvent:
    name: str
    matches_on: str = ""
    """The field of the input that a matcher is held against; nothing means it has none."""
    can_block: bool = False
    text_is_context: bool = False
    """Plain text on standard output is shown to the model."""
    timeout_seconds: float = TIMEOUT_SECONDS
    total_seconds: float | None = None
    """For all hooks of the event together."""


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
