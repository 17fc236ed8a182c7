"""The only place that talks to providers.

`open_model(name)` returns a `Model`, which streams events for a `Request`; `stream_with_retries`
waits, checks and tries again. Importing this imports no SDK.
"""

from holdfast.models.protocol import (
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
from holdfast.models.registry import open_model
from holdfast.models.retry import Retries, stream_with_retries
from holdfast.models.steady import Patience

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
