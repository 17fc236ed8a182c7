"""How an agent ended whose process is gone, told from its own log.

A log comes in; a `Finish` goes out: completed if it had given its last answer since it was
started, interrupted otherwise. Its log is only read here: whoever starts it again repairs it.
"""

from pathlib import Path

from holdfast.agent.subagents.order import Finish
from holdfast.errors import HoldfastError
from holdfast.log import load
from holdfast.log.answers import usage_of
from holdfast.log.entries import Replied
from holdfast.messages import text_of
from holdfast.view import View, fold
from holdfast.view.items import Round

_CUT_SHORT = frozenset({"", "aborted", "broken", "max_tokens"})
"""Answers that did not come to their end."""


def read_back(log: Path, *, since: float) -> Finish:
    """Say how an agent ended that was last started at `since`."""
    try:
        entries = load(log).entries
    except HoldfastError as error:
        return Finish(state="interrupted", detail=f"its log cannot be read: {error}")
    new = [entry for entry in entries if entry.at >= since]
    view = fold(entries)
    is_done = _has_last_word(view) and any(isinstance(entry, Replied) for entry in new)
    return Finish(
        state="completed" if is_done else "interrupted",
        text=last_text(view),
        usage=usage_of(new),
    )


def _has_last_word(view: View) -> bool:
    last = view.items[-1] if view.items else None
    return isinstance(last, Round) and not last.tool_uses() and last.stop_reason not in _CUT_SHORT


def last_text(view: View) -> str:
    """Give the last words an agent said."""
    for entry in reversed(view.history):
        if isinstance(entry, Replied) and (said := text_of(entry.content)).strip():
            return said
    return ""
