"""Longhold keeps an LLM agent working past its context window without losing anything.

The log is what happened. The view is what the model sees: a fold over the log. These names are the
public API, imported on first use so that `import longhold` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longhold.core.log import Header, Log, load
    from longhold.core.log.store import FileStore
    from longhold.core.messages.rules import violations
    from longhold.core.view import View, fold
    from longhold.core.view.gauge import Follower, replay
    from longhold.core.view.tokens import Gauge
    from longhold.core.view.window import Window, window_for
    from longhold.errors import LongholdError
    from longhold.insight.context import Context, describe
    from longhold.insight.transcripts.formats import open_transcript, read_lines
    from longhold.session.compact_messages import CompactedMessages, compact
    from longhold.session.session import Session
    from longhold.session.sync import sync
    from longhold.session.tool_definitions import Tool

__all__ = [
    "CompactedMessages",
    "Context",
    "FileStore",
    "Follower",
    "Gauge",
    "Header",
    "Log",
    "LongholdError",
    "Session",
    "Tool",
    "View",
    "Window",
    "compact",
    "describe",
    "fold",
    "load",
    "open_transcript",
    "read_lines",
    "replay",
    "sync",
    "violations",
    "window_for",
]

_MODULES = {
    "errors": ("LongholdError",),
    "core.log": ("Header", "Log", "load"),
    "core.log.store": ("FileStore",),
    "core.messages.rules": ("violations",),
    "insight.context": ("Context", "describe"),
    "session.session": ("Session",),
    "session.compact_messages": ("CompactedMessages", "compact"),
    "session.sync": ("sync",),
    "session.tool_definitions": ("Tool",),
    "insight.transcripts.formats": ("open_transcript", "read_lines"),
    "core.view": ("View", "fold"),
    "core.view.gauge": ("Follower", "replay"),
    "core.view.tokens": ("Gauge",),
    "core.view.window": ("Window", "window_for"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}
_PACKAGES = {module.partition(".")[0] for module in _MODULES}

__version__: str


if not TYPE_CHECKING:  # with `__getattr__` a type checker accepts every name

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
