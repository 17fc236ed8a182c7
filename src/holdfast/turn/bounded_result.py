"""A tool's result on its way into the log, which holds no body over its limit."""

from typing import TYPE_CHECKING

from holdfast.errors import StoreError
from holdfast.log.entries import AnyEntry, Failed, Ran
from holdfast.log.results import headed, is_over

if TYPE_CHECKING:
    from holdfast.turn.engine import Engine


def take_bounded(engine: "Engine", ran: Ran) -> AnyEntry:
    """Record a result; a body too large for the log goes to a file, and its head stays."""
    limit = engine.settings.log.body_limit_bytes
    if not is_over(ran.content, limit):
        return engine.write(ran)
    cap = engine.settings.spill.file_bytes
    body = engine.results.body(ran.tool_use_id, ran.content, cap_bytes=cap)
    try:
        engine.results.keep(body, is_only_copy=True)
    except StoreError as error:
        written = engine.write(ran)
        engine.write(Failed(what="spill", error=f"{error}; the whole result stays in the log"))
        return written
    return engine.write(headed(ran, body, limit))
