"""How an agent ended whose process is gone, according to its log.

It completed if it gave its last answer since its latest start, and was interrupted otherwise. The
log is only read here; resuming the agent repairs it.
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
"""Stop reasons of incomplete answers."""


def read_back(log: Path, *, since: float) -> Finish:
    """Return how an agent ended that was last started at `since`."""
    try:
        entries = load(log).entries
    except HoldfastError as error:
        return Finish(state="interrupted", detail=f"its log cannot be read: {error}")
    new = [entry for entry in entries if entry.at >= since]
    view = fold(entries)
    is_done = _is_complete(view) and any(isinstance(entry, Replied) for entry in new)
    return Finish(
        state="completed" if is_done else "interrupted",
        text=last_text(view),
        usage=usage_of(new),
    )


def _is_complete(view: View) -> bool:
    last = view.items[-1] if view.items else None
    return isinstance(last, Round) and not last.tool_uses() and last.stop_reason not in _CUT_SHORT


def last_text(view: View) -> str:
    for entry in reversed(view.history):
        if isinstance(entry, Replied) and (said := text_of(entry.content)).strip():
            return said
    return ""
