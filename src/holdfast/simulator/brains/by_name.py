"""Brains by name, for the command line and settings.

Brains that need a model on this machine are not built here but passed to the server as values.
"""

from collections.abc import Callable

from holdfast.simulator.brains import Brain
from holdfast.simulator.brains.digest import DigestBrain
from holdfast.simulator.brains.echo import EchoBrain
from holdfast.simulator.brains.scripted import ScriptedBrain

_PLAIN: dict[str, Callable[[], Brain]] = {"digest": DigestBrain, "echo": EchoBrain}
BRAIN_NAMES = (*sorted(_PLAIN), "scripted")


def brain_by_name(name: str, script: str | None = None) -> Brain:
    """Make a brain; `scripted` needs a script in the line language."""
    if name == "scripted":
        if script is None:
            raise ValueError("the scripted brain wants a script")
        return ScriptedBrain(script)
    if name not in _PLAIN:
        raise ValueError(f"unknown brain {name!r}; one of {', '.join(BRAIN_NAMES)}")
    return _PLAIN[name]()
