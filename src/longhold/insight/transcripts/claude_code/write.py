"""Writes a view as a Claude Code transcript that Longhold can read back.

Ids derive from the session's id and the entry's number, so the same view always gives the same
file.
"""

import uuid
from collections.abc import Iterator

from longhold.core.log.cursor import clamp_time
from longhold.core.messages import Block, JsonObject, block_to_wire, usage_to_wire
from longhold.core.view import View
from longhold.core.view.items import Round, Spoken
from longhold.session.importing.json_records import line, timestamp

VERSION = "2.1.0"


def write(view: View, *, session: str = "", directory: str = "") -> Iterator[bytes]:
    chain = _Chain(session or str(uuid.UUID(int=0)), directory)
    times = {entry.n: entry.at for entry in view.history}
    for item in view.items:
        chain.reach(times.get(item.id, 0.0))
        yield from chain.spoken(item) if isinstance(item, Spoken) else chain.round(item)


class _Chain:
    def __init__(self, session: str, directory: str) -> None:
        self._session = session
        self._directory = directory
        self._parent: str | None = None
        self._count = 0
        self._at = 0.0
        self._responses: set[str] = set()

    def reach(self, at: float) -> None:
        """Advance to the time of the next item. Records are 1 ms apart and never go back."""
        self._at = max(self._at, clamp_time(at))

    def spoken(self, item: Spoken) -> Iterator[bytes]:
        """Write a message. Only a summary at the beginning gets a compaction boundary."""
        begins_with_summary = item.kind == "summary" and self._parent is None
        if begins_with_summary:
            boundary = {
                "subtype": "compact_boundary",
                "content": "Conversation compacted",
                "compactMetadata": {"trigger": "auto", "preTokens": 0},
            }
            yield self._record("system", boundary)
        marks: JsonObject = {}
        if begins_with_summary:
            marks = {"isCompactSummary": True, "isVisibleInTranscriptOnly": True}
        elif item.hidden or item.kind != "said":
            marks = {"isMeta": True}
        for fragment in item.fragments("sent"):
            yield self._record("user", marks | {"message": _message("user", fragment.content)})

    def round(self, item: Round) -> Iterator[bytes]:
        response = item.response_id or f"msg_{item.id}"
        while response in self._responses:
            response += "+"
        self._responses.add(response)
        answered = {result.tool_use_id for result in item.results}
        for fragment in item.fragments("sent"):
            for block in fragment.content:
                wire = block_to_wire(block)
                if fragment.role == "assistant":
                    yield self._record("assistant", {"message": _answer(item, response, block)})
                elif wire.get("tool_use_id") in answered:
                    yield self._record("user", {"message": _message("user", (block,))})

    def _record(self, kind: str, fields: JsonObject) -> bytes:
        self._count += 1
        self._at += 0.001
        id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self._session}/{self._count}"))
        record = {
            "parentUuid": self._parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": self._directory,
            "sessionId": self._session,
            "version": VERSION,
            "type": kind,
            **fields,
            "uuid": id,
            "timestamp": timestamp(self._at),
        }
        self._parent = id
        return line(record)


def _message(role: str, content: tuple[Block, ...]) -> JsonObject:
    return {"role": role, "content": [block_to_wire(block) for block in content]}


def _answer(item: Round, response: str, block: Block) -> JsonObject:
    usage = usage_to_wire(item.usage) if item.usage else None
    return {
        "model": item.model,
        "id": response,
        "type": "message",
        **_message("assistant", (block,)),
        "stop_reason": item.stop_reason or None,
        "stop_sequence": None,
    } | ({"usage": usage} if usage else {})
