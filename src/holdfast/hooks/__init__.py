"""The user's own commands that run at certain events and may influence them.

`load_hooks` reads them, `Hooks.fire` runs those of an event, `merge` combines their answers.
"""

from holdfast.hooks.config import Hook, HookPlan, load_hooks
from holdfast.hooks.events import EVENTS, STOP_BLOCKS_MAX, HookEvent
from holdfast.hooks.run import HookContext, Hooks
from holdfast.hooks.verdict import HookVerdict, merge

__all__ = [
    "EVENTS",
    "STOP_BLOCKS_MAX",
    "Hook",
    "HookContext",
    "HookEvent",
    "HookPlan",
    "HookVerdict",
    "Hooks",
    "load_hooks",
    "merge",
]
