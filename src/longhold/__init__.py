"""Longhold keeps an LLM agent working past its context window without losing anything.

The log is what happened. The view is what the model sees: a fold over the log. These names are the
public API, imported on first use so that `import longhold` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longhold.agent.agent import Agent
    from longhold.core.log.store import Store
    from longhold.core.log.stores import open_store
    from longhold.core.models.protocol import Request
    from longhold.core.settings import Settings
    from longhold.errors import ContextOverflow, LongholdError, ModelError, SessionNotFound
    from longhold.session.compact_messages import CompactedMessages, compact
    from longhold.session.session import Session
    from longhold.session.sync import sync
    from longhold.session.tool_definitions import Tool

__all__ = [
    "Agent",
    "CompactedMessages",
    "ContextOverflow",
    "LongholdError",
    "ModelError",
    "Request",
    "Session",
    "SessionNotFound",
    "Settings",
    "Store",
    "Tool",
    "compact",
    "open_store",
    "sync",
]

_MODULES = {
    "errors": (
        "ContextOverflow",
        "LongholdError",
        "ModelError",
        "SessionNotFound",
    ),
    "core.log.store": ("Store",),
    "core.log.stores": ("open_store",),
    "core.models.protocol": ("Request",),
    "core.settings": ("Settings",),
    "session.session": ("Session",),
    "session.compact_messages": (
        "CompactedMessages",
        "compact",
    ),
    "session.sync": ("sync",),
    "session.tool_definitions": ("Tool",),
    "agent.agent": ("Agent",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}
_PACKAGES = {module.partition(".")[0] for module in _MODULES}

__version__: str


if not TYPE_CHECKING:  # because with `__getattr__` a type checker accepts any name

    def __getattr__(name: str) -> object:
        if name in _HOMES:
            value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        elif name == "__version__":
            value = import_module("importlib.metadata").version(__name__)
        elif name in _PACKAGES:  # `longhold.errors` works after `import longhold` alone
            value = import_module(f"{__name__}.{name}")
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__", *(name for name in globals() if name.startswith("__"))})
