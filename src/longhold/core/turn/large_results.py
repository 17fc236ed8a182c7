"""Results too large for the log: the body goes to a file, and its head stays."""

from typing import TYPE_CHECKING

from longhold.core.log.entries import AnyEntry, Failed, Ran
from longhold.core.log.results import is_over, truncate_result
from longhold.errors import StoreError

if TYPE_CHECKING:
    from longhold.core.turn.engine import Engine

BODY_FILE_BYTES = 64 << 20
"""A larger body is cut: nobody reads that far."""


def write_result(engine: "Engine", ran: Ran) -> AnyEntry:
    """Record a result, whole or with its body in a file."""
    limit = engine.settings.log.body_limit_bytes
    if not is_over(ran.content, limit):
        return engine.write(ran)
    body = engine.results.body(ran.tool_use_id, ran.content, cap_bytes=BODY_FILE_BYTES)
    try:
        engine.results.keep(body, is_only_copy=True)
    except StoreError as error:
        written = engine.write(ran)
        engine.write(Failed(what="spill", error=f"{error}; the whole result stays in the log"))
        return written
    return engine.write(truncate_result(ran, body, limit))
