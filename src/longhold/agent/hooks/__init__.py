"""Hooks: the user's commands that run at certain events and may influence them.

`load_hooks` reads them, and `Hooks.fire` runs an event's hooks and merges their answers.
"""

from longhold.agent.hooks.config import EVENTS, Hook, load_hooks
from longhold.agent.hooks.run import HookContext, Hooks, HookVerdict

__all__ = ["EVENTS", "Hook", "HookContext", "HookVerdict", "Hooks", "load_hooks"]
