"""Decide when the cached prefix may change: always between turns, with care in a tool loop.

Some models bind thinking to its exact prefix. A change then drops all later thinking, which a tool
loop still needs, so it waits for the end of the turn unless the window is full.
"""

from itertools import islice

from longhold.core.messages import is_thought
from longhold.core.models.capabilities import capabilities
from longhold.core.turn.engine import Engine
from longhold.core.view import View
from longhold.core.view.items import Round

THOUGHTFUL_ROUNDS = 64
"""Older thinking in the same loop does not matter."""


def drops_thinking(engine: Engine) -> bool:
    """True if changing an earlier message drops the thinking after it."""
    return capabilities(engine.model).binds_thinking


def may_move(engine: Engine) -> bool:
    """True if an entry may change the sent prefix now."""
    if not drops_thinking(engine) or not _is_thinking_in_loop(engine.view):
        return True
    return engine.fullness().is_blocked


def _is_thinking_in_loop(view: View) -> bool:
    for item in islice(reversed(view.items), THOUGHTFUL_ROUNDS):
        if isinstance(item, Round):
            if not item.tool_uses():
                return False
            if not item.drops_thinking and any(map(is_thought, item.content)):
                return True
        elif item.is_asked():
            return False
    return False
