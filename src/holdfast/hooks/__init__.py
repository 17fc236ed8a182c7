"""Commands of the user's that run at given moments and may have a say.

`load_hooks` reads them, `Hooks.fire` runs those of an event, `merge` joins what they said.
"""

from holdfast.hooks.config import Hook, HookPlan, load_hooks
from holdfast.hooks.events import EVENTS, STOP_BLOCKS_MAX, Event
from holdfast.hooks.run import Hooks, Scene
from holdfast.hooks.verdict import HookOutcome, Verdict, merge

__all__ = [
    "EVENTS",
    "STOP_BLOCKS_MAX",
    "Event",
    "Hook",
    "HookOutcome",
    "HookPlan",
    "Hooks",
    "Scene",
    "Verdict",
    "load_hooks",
    "merge",
]
