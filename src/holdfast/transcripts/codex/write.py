"""Write what a model sees as a Codex rollout that can be read back.

The system prompt goes into the first record; tools and usage are not part of what is written.
"""

from collections.abc import Iterator

from holdfast.messages import JsonObject
from holdfast.transcripts.codex.items import items_of
from holdfast.transcripts.records import line, timestamp
from holdfast.view import View


def write(view: View, *, session: str = "holdfast", directory: str = "") -> Iterator[bytes]:
    at = timestamp(view.history[-1].at if view.history else 0.0)
    yield _record(at, "session_meta", _meta(view, session, directory, at))
    if view.model:
        yield _record(at, "turn_context", {"cwd": directory, "model": view.model})
    if view.title:
        title = {"type": "thread_name_updated", "thread_id": session, "thread_name": view.title}
        yield _record(at, "event_msg", title)
    for message in view.messages():
        for item in items_of(message.role, message.content):
            yield _record(at, "response_item", item)


def _meta(view: View, session: str, directory: str, at: str) -> JsonObject:
    meta: JsonObject = {
        "id": session,
        "timestamp": at,
        "cwd": directory,
        "originator": "holdfast",
        "cli_version": "",
        "source": "unknown",
    }
    if view.frame is not None:
        texts = [section.text for section in view.frame.sections]
        texts += [view.frame.instructions] if view.frame.instructions else []
        meta["base_instructions"] = {"text": "\n\n".join(texts)}
    return meta


def _record(at: str, kind: str, payload: JsonObject) -> bytes:
    return line({"timestamp": at, "type": kind, "payload": payload})
