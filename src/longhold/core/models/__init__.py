"""Model clients: the only package that talks to providers.

`open_model(name)` returns a `Model`, which streams events for a `Request`. `stream_with_retries`
checks the answer and retries. Names are imported on first use, so reading a log needs no SDK.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from longhold.core.models.protocol import (
        BlockFinished,
        Finished,
        Model,
        Reply,
        Request,
        Restarted,
        Started,
        TextDelta,
        ThinkingDelta,
        collect,
    )
    from longhold.core.models.registry import open_model
    from longhold.core.models.retry import Retries, stream_with_retries
    from longhold.core.models.steady import Patience

__all__ = [
    "BlockFinished",
    "Finished",
    "Model",
    "Patience",
    "Reply",
    "Request",
    "Restarted",
    "Retries",
    "Started",
    "TextDelta",
    "ThinkingDelta",
    "collect",
    "open_model",
    "stream_with_retries",
]

_ELSEWHERE = {
    "open_model": "registry",
    "Retries": "retry",
    "stream_with_retries": "retry",
    "Patience": "steady",
}


if not TYPE_CHECKING:  # because with `__getattr__` a type checker accepts every name

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_ELSEWHERE.get(name, 'protocol')}"), name)
