"""Writes the lines of a generated session as a coding agent's transcript has them.

It knows only the format: the common fields, the chain of parents, the time, and the shape of each
kind of record. `turns` decides what happens, and in which order.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from generated_sessions.calls import GeneratedCall, Json
from generated_sessions.chance import Chance
from generated_sessions.corpus import Picture, prose
from generated_sessions.meter import Reported
from generated_sessions.project import ROOT

EPOCH_SECONDS = 1_767_600_000
"""Sessions begin at or after the fifth of January 2026; a fixed date keeps them reproducible."""
START_SPREAD_SECONDS = 60 * 24 * 3600
"""Over the two months in which the recorded ones were made."""
VERSIONS = ("2.0.76", "2.1.5", "2.1.17", "2.1.29", "2.1.39")
HOOK = "scripts/hook.sh"


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """One answer of the model, stored in several pieces."""

    id: str
    request: str
    usage: Reported


class SessionWriter:
    """Builds records one after the other; the last one written is the next one's parent."""

    def __init__(self, chance: Chance, *, model: str, is_sidechain: bool) -> None:
        self.head: str | None = None
        self.written = 0
        self.seconds = EPOCH_SECONDS + chance.random() * START_SPREAD_SECONDS
        self._chance = chance
        self._model = model
        self._lines: list[Json] = []
        self._backups: dict[str, Json] = {}
        self.session = chance.uuid()
        self._common: Json = {
            "isSidechain": is_sidechain,
            "userType": "external",
            "cwd": ROOT,
            "sessionId": self.session,
            "version": chance.pick(VERSIONS),
            "gitBranch": f"{chance.pick(prose().words)}/{chance.pick(prose().verbs)}-{chance.pick(prose().nouns)}",
            "slug": "-".join(
                [*chance.sample(prose().adjectives, 2), chance.pick(prose().entities)]
            ),
        }
        if is_sidechain:
            self._common["agentId"] = f"a{chance.hex(6)}"

    def drain(self) -> Iterator[Json]:
        yield from self._lines
        self._lines.clear()

    def wait(self, seconds: float) -> None:
        self.seconds += seconds

    def timestamp(self) -> str:
        stamp = datetime.fromtimestamp(self.seconds, UTC)
        return stamp.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def user(self, content: object, **fields: object) -> str:
        return self._chained(
            self.head, {"type": "user", "message": {"role": "user", "content": content}} | fields
        )

    def piece(
        self, response: Response, block: Json, output_tokens: int, stop_reason: str | None
    ) -> str:
        """Write one block of a response; all its pieces share id, request and usage."""
        message: Json = {
            "model": self._model,
            "id": response.id,
            "type": "message",
            "role": "assistant",
            "content": [block],
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": _usage(response.usage, output_tokens),
        }
        return self._chained(
            self.head, {"message": message, "requestId": response.request, "type": "assistant"}
        )

    def result(self, call: GeneratedCall, tool_id: str, asked: str, aside: str | None) -> str:
        """Write a tool result under the record that asked for it, with what the user typed meanwhile."""
        block: Json = {
            "tool_use_id": tool_id,
            "type": "tool_result",
            "content": _result_content(call),
        }
        if call.is_error or call.name == "Bash":
            block["is_error"] = call.is_error
        content: list[Json] = [block] if aside is None else [block, {"type": "text", "text": aside}]
        body: Json = {
            "type": "user",
            "message": {"role": "user", "content": content},
            "toolUseResult": call.detail,
            "sourceToolAssistantUUID": asked,
        }
        return self._chained(asked, body)

    def synthetic(self, text: str) -> str:
        message: Json = {
            "id": self._chance.uuid(),
            "container": None,
            "model": "<synthetic>",
            "role": "assistant",
            "stop_reason": "stop_sequence",
            "stop_sequence": "",
            "type": "message",
            "usage": _usage(Reported(uncached=0, created=0, read=0), 0),
            "content": [{"type": "text", "text": text}],
        }
        return self._chained(
            self.head, {"type": "assistant", "message": message, "isApiErrorMessage": True}
        )

    def system(self, subtype: str, **fields: object) -> str:
        """Write a note of the agent that the model never sees."""
        return self._chained(self.head, {"type": "system", "subtype": subtype} | fields)

    def boundary(self, **metadata: object) -> str:
        """Write a compaction boundary: a new chain begins and refers to where the old one ended."""
        body: Json = {
            "logicalParentUuid": self.head,
            "type": "system",
            "subtype": "compact_boundary",
            "content": "Conversation compacted",
            "isMeta": False,
            "level": "info",
            "compactMetadata": metadata,
        }
        return self._chained(None, body)

    def progress(self, data: Json, tool_id: str, *, is_dangling: bool = False) -> str:
        parent = self._chance.uuid() if is_dangling else self.head
        body: Json = {
            "type": "progress",
            "data": data,
            "toolUseID": tool_id,
            "parentToolUseID": tool_id,
        }
        return self._chained(parent, body)

    def hook_progress(self, event: str, tool_id: str, *, is_dangling: bool = False) -> str:
        name = event.split(":", 1)[0]
        data: Json = {
            "type": "hook_progress",
            "hookEvent": name,
            "hookName": event,
            "command": HOOK,
        }
        return self.progress(data, tool_id, is_dangling=is_dangling)

    def stop_hooks(self) -> str:
        return self.system(
            "stop_hook_summary",
            hookCount=1,
            hookInfos=[{"command": HOOK}],
            hookErrors=[],
            preventedContinuation=False,
            stopReason="",
            hasOutput=False,
            level="suggestion",
            toolUseID=self._chance.uuid(),
        )

    def snapshot(self, edited: str | None = None) -> None:
        """Write which file copies could be restored; with an edit, add its file."""
        owner = self.head or self._chance.uuid()
        if edited is not None:
            version = int(str(self._backups.get(edited, {}).get("version", 0))) + 1
            name = f"{self._chance.hex(16)}@v{version}"
            self._backups[edited] = {
                "backupFileName": name,
                "version": version,
                "backupTime": self.timestamp(),
            }
        kept: Json = {
            "messageId": owner,
            "trackedFileBackups": dict(self._backups),
            "timestamp": self.timestamp(),
        }
        self._write(
            {
                "type": "file-history-snapshot",
                "messageId": owner,
                "snapshot": kept,
                "isSnapshotUpdate": edited is not None,
            }
        )

    def queue(self, operation: str, content: str | None = None) -> None:
        line: Json = {
            "type": "queue-operation",
            "operation": operation,
            "timestamp": self.timestamp(),
            "sessionId": self.session,
        }
        self._write(line if content is None else line | {"content": content})

    def resume(self, title: str, leaf: str) -> None:
        self.head = leaf
        self._write({"type": "summary", "summary": title, "leafUuid": leaf})

    def _chained(self, parent: str | None, body: Json) -> str:
        uuid = self._chance.uuid()
        self._write(
            {"parentUuid": parent}
            | self._common
            | body
            | {"uuid": uuid, "timestamp": self.timestamp()}
        )
        self.head = uuid
        return uuid

    def _write(self, line: Json) -> None:
        self._lines.append(line)
        self.written += 1


def picture_block(picture: Picture) -> Json:
    return {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": picture.data},
    }


def _result_content(call: GeneratedCall) -> object:
    if call.picture is not None:
        return [picture_block(call.picture)]
    if call.prompt is not None:
        return [{"type": "text", "text": call.output}]
    return call.output


def _usage(usage: Reported, output_tokens: int) -> Json:
    return {
        "input_tokens": usage.uncached,
        "cache_creation_input_tokens": usage.created,
        "cache_read_input_tokens": usage.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.created,
            "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": output_tokens,
        "service_tier": "standard",
    }
