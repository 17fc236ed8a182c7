"""Hooks: the user's commands that run at certain events and may influence them.

`load_hooks` reads them, `Hooks.fire` runs an event's hooks, `merge` combines their answers.
"""

from longhold.agent.hooks.config import (
    EVENTS,
    STOP_BLOCKS_MAX,
    Hook,
    HookEvent,
    HookPlan,
    load_hooks,
)
from longhold.agent.hooks.run import HookContext, Hooks
from longhold.agent.hooks.verdict import HookVerdict, merge

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
