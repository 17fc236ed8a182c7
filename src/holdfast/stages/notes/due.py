"""When notes are brought up to date: by the engine, which is free, and by a model, which must pay."""

from holdfast.settings import NotesSettings
from holdfast.turn.engine import Fullness
from holdfast.view.window import scaled


def is_due(
    settings: NotesSettings,
    window_tokens: int,
    *,
    used_tokens: int,
    before_tokens: int | None,
    calls: int,
    is_at_rest: bool,
) -> bool:
    """True if there is enough to note for the first time, or enough new since.

    `before_tokens` is how full the context was then, None if notes were never updated. Growth is
    that of the context: after a compaction it counts anew.
    """
    if before_tokens is None:
        return used_tokens >= scaled(settings.first_tokens, window_tokens)
    if used_tokens - before_tokens < scaled(settings.growth_tokens, window_tokens):
        return False
    return calls >= settings.tool_calls or is_at_rest


def model_pays(
    settings: NotesSettings, full: Fullness, *, judged_tokens: int, is_after_pause: bool
) -> bool:
    """True if a model's notes pay: they then stand for history in place of a summary.

    Each update reads the whole context, so one is made for each time that the line is reached: near
    it, or when work goes on after a pause, if the model's last notes have fallen behind.
    """
    near = settings.paused_ratio if is_after_pause else settings.near_ratio
    if full.used_tokens < near * full.window.base_tokens:
        return False
    behind = scaled(settings.keep_most_tokens, full.window.limit_tokens)
    return judged_tokens == 0 or full.used_tokens - judged_tokens >= behind
