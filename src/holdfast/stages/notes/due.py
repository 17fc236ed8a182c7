"""When notes are updated. Pure.

First when there is enough to note, then whenever the context has grown enough and several tools were
called or the model is at rest. Growth is that of the context: after a compaction it counts anew.
"""

from dataclasses import dataclass

from holdfast.settings import NotesSettings
from holdfast.view.window import scaled


@dataclass(frozen=True, slots=True, kw_only=True)
class NotesProgress:
    used_tokens: int
    before_tokens: int | None
    """How full the context was then; None if notes were never updated."""
    calls: int
    is_at_rest: bool


def is_due(progress: NotesProgress, settings: NotesSettings, window_tokens: int) -> bool:
    if progress.before_tokens is None:
        return progress.used_tokens >= scaled(settings.first_tokens, window_tokens)
    grown = progress.used_tokens - progress.before_tokens
    if grown < scaled(settings.growth_tokens, window_tokens):
        return False
    return progress.calls >= settings.tool_calls or progress.is_at_rest
