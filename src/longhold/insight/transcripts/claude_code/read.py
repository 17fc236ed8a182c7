"""Reads a Claude Code transcript record by record into entries.

Pieces of one reply share `message.id`. A boundary and its summary become `Compacted`, a
microcompaction becomes `Cleared`, and a second child of one parent (a rewind) becomes `Snipped`.
Queued messages become `Said` at the point where the model got them. Records that the model never
sees are only counted. A sub-agent's records at the start are dropped once the main conversation
begins. Memory use grows with the record count.
"""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import msgspec

from longhold.core.log.entries import (
    AnyEntry,
    Cleared,
    Compacted,
    Failed,
    Ran,
    Said,
    Snipped,
    Titled,
    Undone,
)
from longhold.core.messages import (
    Content,
    Json,
    JsonObject,
    Text,
    ToolResult,
    ToolUse,
    content_from_wire,
    text_of,
)
from longhold.core.messages.measure import measure_content
from longhold.core.view.block_roles import to_spoken
from longhold.core.view.items import make_unanswered
from longhold.core.wire.messages import split_results
from longhold.insight.transcripts.claude_code.agents import SideCalls
from longhold.session.importing.json_records import (
    count,
    decode_record,
    number_lines,
    records,
    seconds,
)
from longhold.session.importing.transcript_writer import TranscriptWriter

ABSORBED = "absorbed_mid_turn"
"""Reasons for leaving the queue if the model got the message. Old versions record no reason."""

_NOTIFICATION = re.compile(r"\s*<[a-z]+-notification>")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedWords:
    text: str
    at: float = 0.0
    is_shown: bool = False

    @property
    def is_users(self) -> bool:
        """Return whether the user wrote this. The report of a background task is not the user's."""
        return not _NOTIFICATION.match(self.text)


class MessageQueue:
    def __init__(self) -> None:
        self._waiting: list[QueuedWords] = []
        self._removed: list[QueuedWords] = []

    def take(self, record: JsonObject, at: float) -> None:
        content, text = record.get("content"), str(record.get("content") or "")
        match record.get("operation"):
            case "enqueue" if isinstance(content, str) and content.strip():
                self._waiting.append(QueuedWords(text=content, at=at))
            case "popAll":
                self._pop(text)
            case "remove":
                words = self._pop(text) or QueuedWords(text=text, at=at)
                is_delivered = record.get("reason", ABSORBED) == ABSORBED
                if words.text and is_delivered and not words.is_shown:
                    self._removed.append(words)

    def show(self, content: Content) -> None:
        shown = {block.text.strip() for block in content if isinstance(block, Text)}
        self._removed = [each for each in self._removed if each.text.strip() not in shown]
        self._waiting = [
            QueuedWords(text=each.text, at=each.at, is_shown=True)
            if each.text.strip() in shown
            else each
            for each in self._waiting
        ]

    def take_delivered(self) -> Iterable[QueuedWords]:
        """Return queued messages that the model got meanwhile and that have no record."""
        words, self._removed = self._removed, []
        return words

    def list_undelivered(self) -> Iterable[QueuedWords]:
        """Return the user's unanswered words, without slash commands."""
        return (
            each
            for each in (*self._removed, *self._waiting)
            if each.is_users and not each.is_shown and not each.text.lstrip().startswith("/")
        )

    def _pop(self, text: str) -> QueuedWords | None:
        found = next((each for each in self._waiting if not text or each.text == text), None)
        if found is not None:
            self._waiting.remove(found)
        return found


def _queued_prompt(attachment: Json) -> Json:
    match attachment:
        case {"type": "queued_command", "prompt": str() | list() as prompt}:
            return prompt
    return None


def _is_from_user(attachment: Json, content: Content) -> bool:
    match attachment:
        case {"origin": {"kind": str(kind)}}:
            return kind == "human"
        case {"commandMode": "task-notification"}:
            return False
    texts = (block.text for block in content if isinstance(block, Text))
    return not any(_NOTIFICATION.match(text) for text in texts)


class Cut(NamedTuple):
    covered: list[int]
    kept: list[int]

    @property
    def kind(self) -> Literal["full", "from", "up_to"]:
        if not self.kept:
            return "full"
        return "up_to" if self.covered[0] < self.kept[0] else "from"


class RewoundEntries(NamedTuple):
    compactions: list[int]
    messages: list[int]


class Standing:
    def __init__(self) -> None:
        self._shown: list[int] = []
        self._compactions: dict[int, list[int]] = {}

    def add(self, n: int) -> None:
        self._shown.append(n)

    def cut(self, head: int, tail: int) -> Cut:
        shown = self._shown
        before = [n for n in shown if n < head]
        kept = [n for n in shown if head <= n <= tail]
        if not kept:
            return Cut(shown, [])
        if before:
            return Cut(before, [n for n in shown if n >= head])
        return Cut([n for n in shown if n > tail], kept)

    def rests_on(self, cut: Cut) -> tuple[int, ...]:
        return tuple(n for n in self._compactions if n in cut.covered)

    def compact(self, n: int, cut: Cut) -> None:
        self._compactions[n] = self._shown
        self._shown = [*cut.kept, n] if cut.kind == "from" else [n, *cut.kept]

    def go_back(self, place: int) -> RewoundEntries:
        """Disable everything after a message, and compactions that cover removed messages."""
        undone = [n for n in reversed(self._compactions) if n > place]
        for n in undone:
            self._shown = self._compactions.pop(n) + [m for m in self._shown if m > n]
        left = RewoundEntries(undone, [n for n in self._shown if n > place])
        self._shown = [n for n in self._shown if n <= place]
        return left


_REFUSED = "The user doesn't want to proceed with this tool use"
_SAID = "the user said:"
_STILL_PLANNING = "User chose to stay in plan mode"


_REJECTED = "User rejected tool use"
_SERVER_TOOL = "mcp__"


def refusal(block: ToolResult, record: JsonObject, tool: str) -> str | None:
    """Return the user's reason for refusing a call ("" if none), or None if it was not refused."""
    text = text_of(block.content)
    if not block.is_error or not _is_marked(record, tool):
        return None
    if text.startswith(_REFUSED):
        return text.partition(_SAID)[2].strip()
    return text.strip() if text.startswith(_STILL_PLANNING) else None


def _is_marked(record: JsonObject, tool: str) -> bool:
    """Return whether the record itself shows the refusal. A tool could forge the text."""
    result = record.get("toolUseResult")
    if result == _REJECTED or record.get("toolDenialKind") == "user-rejected":
        return True
    # Older records repeat the result, which an MCP server may have written.
    repeats = (f"Error: {_REFUSED}", f"Error: {_STILL_PLANNING}")
    return isinstance(result, str) and result.startswith(repeats) and _SERVER_TOOL not in tool


CLEARED = "This result was cleared to make room. Run the tool again if it is needed."
"""A placeholder for a cleared result, because the format does not record the original text."""

SYNTHETIC = "<synthetic>"  # the model name on error messages that no model wrote

UNASKED = "No response requested."
"""The client's text for a turn that ends without a request. It is not an error."""

SNIFFED_LINES = 50  # lines at the start that may be unreadable before the format is rejected

_SPOKEN = ("user", "assistant", "attachment")
_TITLES = {"summary": "summary", "custom-title": "customTitle", "ai-title": "aiTitle"}


def sniff(first: bytes) -> bool:
    lines = number_lines(first.split(b"\n")[:SNIFFED_LINES])
    return any(_is_record(decode_record(line)) for _, line in lines)


def _is_record(record: Json) -> bool:
    if not isinstance(record, dict):
        return False
    kind = record.get("type")
    if kind in ("user", "assistant"):
        return "message" in record and ("sessionId" in record or "uuid" in record)
    if kind == "system":  # because it is the only readable record if a very long summary follows
        return record.get("subtype") == "compact_boundary" and "uuid" in record
    return kind == "file-history-snapshot" or (kind == "summary" and "leafUuid" in record)


def read(lines: Iterable[bytes], writer: TranscriptWriter) -> Iterator[AnyEntry]:
    reader = _Reader(writer)
    for number, record in records(lines, writer.account):
        yield from reader.record(record, number)
    yield from reader.end()


class _Reader:
    def __init__(self, writer: TranscriptWriter) -> None:
        self._writer = writer
        self._place: dict[str, int] = {}  # the last entry after each record, by uuid
        self._copies: dict[str, int] = {}
        self._asked_under: set[str] = set()
        self._standing = Standing()
        self._queue = MessageQueue()
        self._side_calls = SideCalls(writer)
        self._uses: dict[str, str] = {}
        self._answer_to, self._thinking = "", ""
        self._last_piece = 0
        self._waiting: list[str] = []
        self._boundary: JsonObject | None = None
        self._titles: list[tuple[str, str]] = []
        self._is_chained = False  # whether records name their parents
        self._is_main = False
        """Whether the main conversation has begun. Until then the file may be a sub-agent's."""

    def record(self, record: JsonObject, number: int) -> Iterator[AnyEntry]:
        kind = str(record.get("type"))
        if self._is_main and record.get("isSidechain") and kind in (*_SPOKEN, "system"):
            self._skip("sidechain")
            self._side_calls.take(record)
        elif kind in _SPOKEN:
            yield from self._read_message(record, kind, number)
        elif kind == "system":
            yield from self._system(record)
        elif kind == "queue-operation":
            self._queue.take(record, _time(record))
        elif kind in _TITLES:
            self._titles.append(
                (str(record.get("leafUuid", "")), str(record.get(_TITLES[kind], "")))
            )
        elif kind == "progress":
            self._skip(kind)
            self._side_calls.take(record)
        elif "type" not in record:
            self._writer.account.malformed.append((number, "a record without a type"))
        else:
            self._skip(kind)
        if uuid := record.get("uuid"):
            self._place[str(uuid)] = self._writer.last

    def end(self) -> Iterator[AnyEntry]:
        """Write entries that are only known at the end: unanswered messages and the title."""
        for words in self._queue.list_undelivered():
            yield self._put(self._writer.write_message((Text(text=words.text),), at=words.at))
        yield from self._side_calls.write(math.inf)
        if self._boundary is not None:
            self._mend("boundaries without a summary")
        titles = [title for leaf, title in self._titles if not leaf or leaf in self._place]
        if titles and titles[-1]:
            yield self._writer.write(Titled(title=titles[-1]))

    def _skip(self, kind: str) -> None:
        self._writer.account.skipped[kind] += 1

    def _mend(self, what: str) -> None:
        self._writer.account.repaired[what] += 1

    def _read_message(self, record: JsonObject, kind: str, number: int) -> Iterator[AnyEntry]:
        message = record.get("message")
        if kind == "attachment":
            message = {"content": _render_attachment(record.get("attachment"))}
        if not isinstance(message, dict) or message.get("content") is None:
            self._writer.account.malformed.append((number, f"a {kind} record without content"))
            return
        if kind != "attachment" and not record.get("isSidechain"):
            yield from self._begin_main(record)
        if self._is_copy(record, message):
            self._mend("repeated records")
            return
        self._is_chained = self._is_chained or str(record.get("parentUuid") or "") in self._place
        content = content_from_wire(message["content"])
        if kind == "assistant":
            yield from self._answer(record, message, content)
            return
        attachment = record.get("attachment")
        is_queued = _queued_prompt(attachment) is not None and _is_from_user(attachment, content)
        yield from self._user(record, content, hidden=kind == "attachment" and not is_queued)

    def _begin_main(self, record: JsonObject) -> Iterator[AnyEntry]:
        if self._is_main:
            return
        self._is_main = True
        self._boundary = None
        self._asked_under.clear()
        for entry in self._leave(0, record, "a sub-agent's, not part of this conversation"):
            if isinstance(entry, Snipped):
                self._mend("side chains before the conversation")
            yield entry

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
            if text_of(content) == UNASKED:
                self._skip("answer without a question")
                return
            yield self._writer.write(Failed(what="model", error=text_of(content)), _time(record))
            return
        response = str(message.get("id") or record.get("requestId") or record.get("uuid") or "")
        if response != self._answer_to:
            yield from self._side_calls.write(_time(record))
            yield from self._write_delivered()
        self._remember_calls(response, {b.id: b.name for b in content if isinstance(b, ToolUse)})
        entry = self._writer.write_answer(
            response,
            content,
            at=_time(record),
            model=model,
            stop_reason=str(message.get("stop_reason") or ""),
            usage=self._writer.account.usage(message.get("usage")),
            thinking=self._thinking,
            origin=str(record.get("uuid") or ""),
        )
        self._last_piece = entry.n
        self._standing.add(entry.n)
        yield entry

    def _remember_calls(self, response: str, names: dict[str, str]) -> None:
        if response != self._answer_to:
            self._answer_to = response
            self._waiting.clear()
        self._waiting += names
        self._uses.update(names)

    def _user(self, record: JsonObject, content: Content, *, hidden: bool) -> Iterator[AnyEntry]:
        if record.get("isCompactSummary"):
            yield from self._summary(record, content)
            return
        if record.get("isVisibleInTranscriptOnly"):
            self._skip("transcript-only")
            return
        self._thinking = _thinking_level(record.get("thinkingMetadata")) or self._thinking
        yield from self._side_calls.write(_time(record))
        results, rest = split_results(content)
        self._queue.show(tuple(rest))
        if not results:
            yield from self._write_delivered()
        if not results and "attachment" not in record:
            yield from self._go_back(record)
        for block in results:
            yield self._ran(block, record)
        if rest:
            yield self._say(record, tuple(rest), hidden=hidden)

    def _ran(self, block: ToolResult, record: JsonObject) -> Ran:
        if block.tool_use_id not in self._uses:
            self._mend("results without a tool use")
        if block.tool_use_id in self._waiting:
            self._waiting.remove(block.tool_use_id)
        return self._writer.ran(
            block,
            at=_time(record),
            origin=str(record.get("uuid") or ""),
            refused=refusal(block, record, self._uses.get(block.tool_use_id, _SERVER_TOOL)),
        )

    def _write_delivered(self) -> Iterator[AnyEntry]:
        for words in self._queue.take_delivered():
            said = self._writer.write_message(
                (Text(text=words.text),), at=words.at, hidden=not words.is_users
            )
            yield self._put(said)

    def _put(self, entry: Said) -> Said:
        self._standing.add(entry.n)
        return entry

    def _say(self, record: JsonObject, content: Content, *, hidden: bool = False) -> Said:
        entry = self._writer.write_message(
            content,
            at=_time(record),
            origin=str(record.get("uuid") or ""),
            hidden=hidden or bool(record.get("isMeta")),
        )
        return self._put(entry)

    def _go_back(self, record: JsonObject) -> Iterator[AnyEntry]:
        parent = str(record.get("parentUuid") or "")
        if parent and parent not in self._place:
            self._mend("dangling parents")
            return
        is_again = self._is_chained and parent in self._asked_under
        self._asked_under.add(parent)
        if is_again and not record.get("isMeta"):
            self._mend("returns to an earlier prompt")
            place = self._place.get(parent, 0)
            yield from self._leave(place, record, "the user went back to an earlier prompt")

    def _leave(self, place: int, record: JsonObject, why: str) -> Iterator[AnyEntry]:
        at, left = _time(record), self._standing.go_back(place)
        for n in left.compactions:
            yield self._writer.write(Undone(target=n), at)
        if self._last_piece in left.messages:
            for id in self._waiting:  # because an open round cannot leave the view
                yield self._writer.ran(make_unanswered(id), at=at)
            self._waiting.clear()
        if left.messages:
            yield self._writer.write(Snipped(targets=tuple(left.messages), why=why), at)

    def _system(self, record: JsonObject) -> Iterator[AnyEntry]:
        subtype = str(record.get("subtype"))
        if subtype == "compact_boundary":
            self._boundary = record
        elif subtype == "microcompact_boundary":
            yield from self._microcompaction(record)
        elif subtype == "api_error":
            failed = Failed(what="api", error=_api_error(record.get("error"))[:2_000])
            yield self._writer.write(failed, _time(record))
        else:
            self._skip(f"system/{subtype}")

    def _microcompaction(self, record: JsonObject) -> Iterator[AnyEntry]:
        found = record.get("microcompactMetadata")
        ids = found.get("compactedToolIds") if isinstance(found, dict) else None
        named = ids if isinstance(ids, list) else []
        known = tuple(str(id) for id in named if str(id) in self._uses)
        if known:
            measure = measure_content(CLEARED)
            yield self._writer.write(
                Cleared(
                    ids=known,
                    texts=(CLEARED,) * len(known),
                    measures=(measure,) * len(known),
                    saved_tokens=count(found.get("tokensSaved")) if isinstance(found, dict) else 0,
                ),
                _time(record),
            )

    def _summary(self, record: JsonObject, content: Content) -> Iterator[AnyEntry]:
        """Write a compaction once its summary is read. If it covers nothing, write a message."""
        yield from self._write_delivered()
        boundary, self._boundary = self._boundary or {}, None
        metadata = boundary.get("compactMetadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        cut = self._standing.cut(*self._segment(metadata.get("preservedSegment")))
        if not cut.covered:
            yield self._say(record, content)
            return
        spoken = to_spoken(content)
        entry = self._writer.write(
            Compacted(
                first=cut.covered[0],
                last=cut.covered[-1],
                summary=spoken,
                kind=cut.kind,
                trigger="manual" if metadata.get("trigger") == "manual" else "auto",
                by="import",
                kept=(cut.kept[0], cut.kept[-1]) if cut.kept else None,
                before_tokens=count(metadata.get("preTokens")),
                measure=measure_content(spoken),
                origin=str(boundary.get("uuid") or record.get("uuid") or ""),
                rests_on=self._standing.rests_on(cut),
            ),
            _time(record),
        )
        self._standing.compact(entry.n, cut)
        yield entry

    def _segment(self, raw: Json) -> tuple[int, int]:
        ends = raw if isinstance(raw, dict) else {}
        head, tail = str(ends.get("headUuid")), str(ends.get("tailUuid"))
        return self._place.get(head, 0), self._place.get(tail, 0)


HIGH_THINKING_TOKENS = 31_999


def _thinking_level(metadata: Json) -> str:
    match metadata:
        case {"disabled": True} | {"maxThinkingTokens": 0}:
            return "off"
        case {"maxThinkingTokens": int(tokens)}:
            # The client's level "high" was this budget before it recorded budgets.
            return "high" if tokens == HIGH_THINKING_TOKENS else f"{tokens} tokens"
        case {"level": str(level)}:
            return "off" if level == "none" else level
    return ""


def _api_error(error: Json) -> str:
    """Return the status and message, without headers and ids, which always differ."""
    inner = error
    while isinstance(inner, dict) and isinstance(inner.get("error"), dict):
        inner = inner["error"]
    said = inner.get("message") if isinstance(inner, dict) else None
    if isinstance(error, dict) and said:
        return f"{error.get('status') or ''} {said}".strip()
    return msgspec.json.encode(error).decode() if error else "unknown"


def _render_attachment(attachment: Json) -> Json:
    if not isinstance(attachment, dict):
        return None
    if (prompt := _queued_prompt(attachment)) is not None:
        return prompt
    content = attachment.get("content")
    return content if isinstance(content, str) else msgspec.json.encode(attachment).decode()


def _time(record: JsonObject) -> float:
    return seconds(record.get("timestamp"))
