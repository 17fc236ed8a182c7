"""Reads calls outside the conversation, made by sub-agents or for the client's summaries.

They are in files next to the transcript, on side chains or in progress records. Each becomes one
`Forked`, so that it is billed but not part of the view.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from longhold.core.log.entries import Forked
from longhold.core.log.spending import answers_of
from longhold.core.messages import Json, JsonObject, content_from_wire
from longhold.core.messages.measure import measure_content
from longhold.errors import LongholdError
from longhold.insight.transcripts.formats import decode_path, open_transcript
from longhold.session.importing.json_records import seconds
from longhold.session.importing.transcript_writer import TranscriptWriter

SUFFIXES = (".jsonl", ".jsonl.gz")
SUMMARY_AGENT = "acompact-"


def session_name(file: str) -> str:
    return next((file[: -len(end)] for end in SUFFIXES if file.endswith(end)), file)


def agent_files(file: Path) -> list[Path]:
    beside = file.parent / session_name(file.name) / "subagents"
    if not beside.is_dir():
        return []  # because most sessions have none
    found = (path for suffix in SUFFIXES for path in beside.glob(f"agent-*{suffix}"))
    return sorted(path for path in found if path.is_file())


def agent_name(file: Path) -> str:
    return session_name(file.name).removeprefix("agent-")


def calls_beside(file: Path) -> list[Forked]:
    """Read the calls of a session's sub-agents. Unreadable files are skipped."""
    found: list[Forked] = []
    for path in agent_files(file):
        try:
            with open_transcript(path) as transcript:
                entries = list(transcript.entries)
        except LongholdError:
            continue
        name = decode_path(agent_name(path))
        source = "compact" if name.startswith(SUMMARY_AGENT) else f"agent:{name}"
        found += [
            Forked(
                at=answer.at,
                source=source,
                model=answer.model,
                usage=answer.usage,
                stop_reason=answer.stop_reason,
                response_id=answer.first.response_id,
                measure=measure_content(answer.content),
            )
            for answer in answers_of(entries).values()
        ]
        found += (entry for entry in entries if isinstance(entry, Forked))
    return found


class SideCalls:
    def __init__(self, writer: TranscriptWriter) -> None:
        self._writer = writer
        self._open: dict[str, Forked] = {}
        self._written: set[str] = set()

    def take(self, record: JsonObject) -> None:
        match record:
            case {"type": "progress", "data": {"agentId": str(agent), "message": dict(inner)}}:
                self._piece(inner.get("message"), agent, seconds(inner.get("timestamp")))
            case {"type": "assistant", "message": dict(message)}:
                agent = str(record.get("agentId") or "side-chain")
                self._piece(message, agent, seconds(record.get("timestamp")))

    def _piece(self, message: Json, agent: str, at: float) -> None:
        if not isinstance(message, dict) or not (id := str(message.get("id") or "")):
            return
        usage = self._writer.account.usage(message.get("usage"))
        if usage is None or id in self._written or self._writer.is_beside(id):
            return
        before = self._open.get(id)
        text = measure_content(content_from_wire(message.get("content") or ()))
        self._open[id] = Forked(
            at=before.at if before else at,
            source=f"agent:{agent}",
            model=str(message.get("model") or ""),
            usage=usage,
            stop_reason=str(message.get("stop_reason") or ""),
            response_id=id,
            measure=before.measure + text if before else text,
        )

    def write(self, until: float) -> Iterator[Forked]:
        done, self._open = self._open, {}
        self._written |= done.keys()
        for call in done.values():
            yield self._writer.write(msgspec.structs.replace(call, at=min(call.at, until)))
        yield from self._writer.beside(until)
