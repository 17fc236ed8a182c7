"""When notes are brought up to date. Pure.

The first time once there is something worth noting, then whenever the context has grown enough
and either several tools were called or the model has come to rest. Growth is of the context, not
of what was spent: after a compaction it is counted from what was left.
"""

from dataclasses import dataclass

from holdfast.settings import NotesSettings
from holdfast.view.window import scaled


@dataclass(frozen=True, slots=True, kw_only=True)
class NotesProgress:
    """What happened since the notes were last updated."""

    used_tokens: int
    before_tokens: int | None
    """How full the context was then; None if that never was."""
    calls: int
    """Tools called since."""
    is_at_rest: bool
    """The last answer called no tool."""


def is_due(progress: NotesProgress, settings: NotesSettings, window_tokens: int) -> bool:
    if progress.before_tokens is None:
        return progress.used_tokens >= scaled(settings.first_tokens, window_tokens)
    grown = progress.used_tokens - progress.before_tokens
    if grown < scaled(settings.growth_tokens, window_tokens):
        return False
    return progress.calls >= settings.tool_calls or progress.is_at_rest
