"""Read a Claude Code transcript, record by record, into entries.

The order of the file is the order of events. Records of one answer share `message.id` and
become pieces of one reply; a compaction boundary and the summary after it become one
`Compacted`; a microcompaction becomes `Cleared`; going back to an earlier prompt, which the
format shows as a second child of one parent, becomes `Snipped`, so nothing is lost by it.
Records a model never sees (progress, snapshots, hooks) are counted, not kept; so is what a
sub-agent said inside the main file. Memory grows with the number of records, not their size.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Literal

import msgspec

from holdfast.entries import AnyEntry, Cleared, Compacted, Failed, Said, Snipped, Titled, Undone
from holdfast.measure import measure_content
from holdfast.messages import (
    Content,
    Json,
    JsonObject,
    ToolResult,
    ToolUse,
    content_from_wire,
    text_of,
)
from holdfast.transcripts.scribe import Scribe, speakable

CLEARED = "This result was cleared to make room. Run the tool again if it is needed."
"""The format does not record what stood in for a cleared result; this does."""

SYNTHETIC = "<synthetic>"
"""The model's name on error messages that no model wrote."""

_TITLES = {"summary": "summary", "custom-title": "customTitle", "ai-title": "aiTitle"}


def sniff(first: bytes) -> bool:
    """Say whether a file that begins like this is a Claude Code transcript."""
    for line in first.split(b"\n")[:50]:
        try:
            record = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        if isinstance(record, dict) and _is_record(record):
            return True
    return False


def _is_record(record: JsonObject) -> bool:
    kind = record.get("type")
    if kind in ("user", "assistant"):
        return "message" in record and ("sessionId" in record or "uuid" in record)
    return kind == "file-history-snapshot" or (kind == "summary" and "leafUuid" in record)


def read(lines: Iterable[bytes], scribe: Scribe) -> Iterator[AnyEntry]:
    """Turn the lines of a transcript into entries."""
    reader = _Reader(scribe)
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        scribe.account.records += 1
        record = _decoded(line)
        if isinstance(record, str):
            scribe.account.malformed.append((number, record))
        else:
            yield from reader.record(record, number)
    yield from reader.end()


def _decoded(line: bytes) -> JsonObject | str:
    """Decode one line, or say what is wrong with it."""
    try:
        record = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return f"not JSON: {error}"
    return record if isinstance(record, dict) else f"not a record but {type(record).__name__}"


class _Reader:
    """What must be remembered from one record to the next."""

    def __init__(self, scribe: Scribe) -> None:
        self._scribe = scribe
        self._place: dict[str, int] = {}
        """For each record's uuid: the last entry written when it had been read."""
        self._copies: dict[str, int] = {}
        self._asked_under: set[str] = set()
        """Parents under which the user has spoken already."""
        self._shown: list[int] = []
        """Messages in force, in order."""
        self._compactions: dict[int, list[int]] = {}
        """Compactions in force, each with the messages that were in force before it."""
        self._uses: set[str] = set()
        self._boundary: JsonObject | None = None
        self._titles: list[tuple[str, str]] = []
        self._is_chained = False
        self._is_side: bool | None = None

    def record(self, record: JsonObject, number: int) -> Iterator[AnyEntry]:
        """Turn one record into whatever entries it stands for."""
        kind = str(record.get("type"))
        if kind in ("user", "assistant", "attachment"):
            yield from self._spoken(record, kind, number)
        elif kind == "system":
            yield from self._system(record)
        elif kind in _TITLES:
            self._titles.append(
                (str(record.get("leafUuid", "")), str(record.get(_TITLES[kind], "")))
            )
        elif "type" not in record:
            self._scribe.account.malformed.append((number, "a record without a type"))
        else:
            self._skip(kind)
        if uuid := record.get("uuid"):
            self._place[str(uuid)] = self._scribe.last

    def end(self) -> Iterator[AnyEntry]:
        """Write what can be known only now: the title."""
        if self._boundary is not None:
            self._mend("boundaries without a summary")
        titles = [title for leaf, title in self._titles if not leaf or leaf in self._place]
        if titles and titles[-1]:
            yield self._scribe.write(Titled(title=titles[-1]))

    def _skip(self, kind: str) -> None:
        self._scribe.account.skipped[kind] += 1

    def _mend(self, what: str) -> None:
        self._scribe.account.repaired[what] += 1

    def _spoken(self, record: JsonObject, kind: str, number: int) -> Iterator[AnyEntry]:
        message = record.get("message")
        if kind == "attachment":
            message = {"content": _attached(record.get("attachment"))}
        if not isinstance(message, dict) or message.get("content") is None:
            self._scribe.account.malformed.append((number, f"a {kind} record without content"))
            return
        if self._is_side is None:
            self._is_side = bool(record.get("isSidechain"))
        if bool(record.get("isSidechain")) != self._is_side:
            self._skip("sidechain")
            return
        if self._is_copy(record, message):
            self._mend("repeated records")
            return
        content = content_from_wire(message["content"])
        if kind == "assistant":
            yield from self._answer(record, message, content)
        else:
            yield from self._user(record, content, hidden=kind == "attachment")

    def _is_copy(self, record: JsonObject, message: JsonObject) -> bool:
        uuid = str(record.get("uuid") or "")
        digest = hash(msgspec.json.encode(message["content"]))
        known = uuid != "" and self._copies.get(uuid) == digest
        self._copies[uuid] = digest
        return known

    def _answer(
        self, record: JsonObject, message: JsonObject, content: Content
    ) -> Iterator[AnyEntry]:
        model = str(message.get("model") or "")
        if model == SYNTHETIC or record.get("isApiErrorMessage"):
            yield self._scribe.write(Failed(what="model", error=text_of(content)), _time(record))
            return
        self._uses.update(block.id for block in content if isinstance(block, ToolUse))
        entry = self._scribe.replied(
            str(message.get("id") or record.get("requestId") or record.get("uuid") or ""),
            content,
            at=_time(record),
            model=model,
            stop_reason=str(message.get("stop_reason") or ""),
            usage=self._scribe.account.usage(message.get("usage")),
            origin=str(record.get("uuid") or ""),
        )
        self._shown.append(entry.n)
        yield entry

    def _user(self, record: JsonObject, content: Content, *, hidden: bool) -> Iterator[AnyEntry]:
        if record.get("isCompactSummary"):
            yield from self._summary(record, content)
            return
        if record.get("isVisibleInTranscriptOnly"):
            self._skip("transcript-only")
            return
        results = [block for block in content if isinstance(block, ToolResult)]
        if not results:
            yield from self._go_back(record)
        origin = str(record.get("uuid") or "")
        for block in results:
            if block.tool_use_id not in self._uses:
                self._mend("results without a tool use")
            yield self._scribe.ran(
                block.tool_use_id,
                block.content,
                at=_time(record),
                is_error=block.is_error,
                extra=block.extra,
                origin=origin,
            )
        rest = tuple(block for block in content if not isinstance(block, ToolResult))
        if rest:
            yield self._say(record, rest, hidden=hidden)

    def _say(self, record: JsonObject, content: Content, *, hidden: bool = False) -> Said:
        entry = self._scribe.said(
            content,
            at=_time(record),
            origin=str(record.get("uuid") or ""),
            hidden=hidden or bool(record.get("isMeta")),
        )
        self._shown.append(entry.n)
        return entry

    def _go_back(self, record: JsonObject) -> Iterator[AnyEntry]:
        """Notice that the user went back to an earlier place and spoke there again."""
        parent = str(record.get("parentUuid") or "")
        if parent and parent not in self._place:
            self._mend("dangling parents")
            return
        self._is_chained = self._is_chained or bool(parent)
        is_again = parent in self._asked_under and (self._is_chained or bool(parent))
        self._asked_under.add(parent)
        if not is_again or record.get("isMeta"):
            return
        place = self._place.get(parent, 0)
        self._mend("returns to an earlier prompt")
        for n in [n for n in reversed(self._compactions) if n > place]:
            self._shown = self._compactions.pop(n) + [m for m in self._shown if m > n]
            yield self._scribe.write(Undone(target=n), _time(record))
        abandoned = tuple(n for n in self._shown if n > place)
        self._shown = [n for n in self._shown if n <= place]
        if abandoned:
            why = "the user went back to an earlier prompt"
            yield self._scribe.write(Snipped(targets=abandoned, why=why), _time(record))

    def _system(self, record: JsonObject) -> Iterator[AnyEntry]:
        subtype = str(record.get("subtype"))
        if subtype == "compact_boundary":
            self._boundary = record
        elif subtype == "microcompact_boundary":
            yield from self._microcompaction(record)
        elif subtype == "api_error":
            error = record.get("error")
            text = msgspec.json.encode(error).decode() if error else "unknown"
            yield self._scribe.write(Failed(what="api", error=text[:2_000]), _time(record))
        else:
            self._skip(f"system/{subtype}")

    def _microcompaction(self, record: JsonObject) -> Iterator[AnyEntry]:
        found = record.get("microcompactMetadata")
        ids = found.get("compactedToolIds") if isinstance(found, dict) else None
        named = ids if isinstance(ids, list) else []
        known = tuple(str(id) for id in named if str(id) in self._uses)
        if known:
            measure = measure_content(CLEARED)
            yield self._scribe.write(
                Cleared(ids=known, texts=(CLEARED,) * len(known), measures=(measure,) * len(known)),
                _time(record),
            )

    def _summary(self, record: JsonObject, content: Content) -> Iterator[AnyEntry]:
        """Write a compaction once its summary is there; one that covers nothing is just a message."""
        boundary, self._boundary = self._boundary or {}, None
        metadata = boundary.get("compactMetadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        before = metadata.get("preTokens")
        covered, kept = self._divide(metadata.get("preservedSegment"))
        if not covered:
            yield self._say(record, content)
            return
        spoken = speakable(content)
        entry = self._scribe.write(
            Compacted(
                first=covered[0],
                last=covered[-1],
                summary=spoken,
                kind=_kind(covered, kept),
                trigger="manual" if metadata.get("trigger") == "manual" else "auto",
                by="import",
                kept=(kept[0], kept[-1]) if kept else None,
                before_tokens=before if isinstance(before, int) else 0,
                measure=measure_content(spoken),
                origin=str(boundary.get("uuid") or record.get("uuid") or ""),
                rests_on=tuple(n for n in self._compactions if n in covered),
            ),
            _time(record),
        )
        self._compactions[entry.n] = self._shown
        self._shown = [entry.n, *kept] if _kind(covered, kept) != "from" else [*kept, entry.n]
        yield entry

    def _divide(self, segment: Json) -> tuple[list[int], list[int]]:
        """Part the messages in force into what a compaction covered and what it kept."""
        if not isinstance(segment, dict):
            return self._shown, []
        head = self._place.get(str(segment.get("headUuid")), 0)
        tail = self._place.get(str(segment.get("tailUuid")), 0)
        kept = [n for n in self._shown if head <= n <= tail]
        if not kept:
            return self._shown, []
        before = [n for n in self._shown if n < head]
        return (
            (before, [n for n in self._shown if n >= head])
            if before
            else (
                [n for n in self._shown if n > tail],
                kept,
            )
        )


def _kind(covered: list[int], kept: list[int]) -> Literal["full", "from", "up_to"]:
    if not kept:
        return "full"
    return "up_to" if covered[0] < kept[0] else "from"


def _attached(attachment: Json) -> Json:
    """Show an attachment as the text a model would get of it."""
    if not isinstance(attachment, dict):
        return None
    content = attachment.get("content")
    return content if isinstance(content, str) else msgspec.json.encode(attachment).decode()


def _time(record: JsonObject) -> float:
    try:
        return datetime.fromisoformat(str(record.get("timestamp"))).timestamp()
    except (ValueError, OverflowError):
        return 0.0
