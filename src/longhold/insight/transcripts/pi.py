"""Reads and writes sessions of the pi coding agent.

Newer sessions are trees, and the active branch is read. A compaction covers everything before the
first entry it keeps. pi does not resend a failed or stopped answer, so such an answer becomes
`Failed`. The same view always gives the same file, without system prompt and tools. Usage is
written as zero, because a view has no usage per answer.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from longhold.core.log.cursor import clamp_time
from longhold.core.log.entries import AnyEntry, Failed, Forked, Switched, Titled
from longhold.core.messages import (
    Block,
    Content,
    Image,
    Json,
    JsonObject,
    RedactedThinking,
    ResultContent,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Usage,
    content_from_wire,
)
from longhold.core.models.capabilities import capabilities
from longhold.core.view import View
from longhold.core.view.block_roles import to_spoken
from longhold.core.wire.messages import (
    TEXT_FIELDS,
    extra_of,
    split_results,
    unwrap,
    with_extra,
    wrap,
)
from longhold.session.importing.json_records import (
    Numbered,
    UnreadableRecord,
    check_record,
    count,
    decode_record,
    first_record,
    number_lines,
    objects,
    seconds,
    timestamp,
)
from longhold.session.importing.json_records import line as to_line
from longhold.session.importing.transcript_writer import Dialogue, ImportAccount, TranscriptWriter

OFF_BRANCH = "entry of another branch"
OffBranch: TypeAlias = Callable[[tuple[int, JsonObject]], None]
_BRANCH_USAGE = b'"usage"'


class _Head(Struct):
    id: str
    parentId: str | None = None
    type: str = ""


class _Record(NamedTuple):
    number: int
    parent: str | None
    line: bytes


_decoder = msgspec.json.Decoder(_Head)


def _active_branch(
    lines: Iterable[tuple[int, bytes]], account: ImportAccount, off_branch: OffBranch
) -> Numbered:
    """Yield the active branch. `off_branch` gets the billed answers of other branches."""
    held: dict[str, _Record] = {}
    last: str | None = None
    for number, line in lines:
        account.count()
        head = _head(line)
        if isinstance(head, UnreadableRecord):
            account.malformed.append((number, head.reason))
        elif head.type == "session":
            account.skipped["session"] += 1
        else:
            account.repaired.update(["repeated entry id"] if head.id in held else [])
            held[head.id] = _Record(number, head.parentId, line)
            last = head.id
    path = _path(held, last, account)
    for left in held.values():
        record = decode_record(left.line) if _BRANCH_USAGE in left.line else None
        if isinstance(record, dict):
            off_branch((left.number, record))
    for entry in path:
        yield from check_record(entry.number, decode_record(entry.line, account), account)


def _head(line: bytes) -> _Head | UnreadableRecord:
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = decode_record(line)  # because this decoder is slower but repairs some records
    try:
        return value if isinstance(value, UnreadableRecord) else msgspec.convert(value, _Head)
    except msgspec.ValidationError as error:
        return UnreadableRecord(f"not an entry of a session: {error}")


def _path(held: dict[str, _Record], last: str | None, account: ImportAccount) -> Iterable[_Record]:
    path = []
    while last is not None and last in held:
        entry = held.pop(last)  # remove it, so that a cycle of parents ends
        path.append(entry)
        last = entry.parent
    if last is not None:
        account.repaired["missing parent"] += 1
    if held:
        account.skipped[OFF_BRANCH] += len(held)
    return reversed(path)


NAME = "pi"
_APIS = {"anthropic": "anthropic-messages", "openai": "openai-responses"}

TREE_VERSION = 2  # from this version on, entries have ids and parents

IMAGE_FIELDS = frozenset({"type", "data", "mimeType"})
THINKING_FIELDS = frozenset({"type", "thinking", "thinkingSignature", "redacted"})
CALL_FIELDS = frozenset({"type", "id", "name", "arguments", "partialJson"})
RESULT_FIELDS = frozenset(
    {"role", "toolCallId", "toolName", "content", "details", "isError", "timestamp", "isText"}
)

VERSION = 3

_NO_USAGE = {
    "input": 0,
    "output": 0,
    "cacheRead": 0,
    "cacheWrite": 0,
    "totalTokens": 0,
    "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0},
}

_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "toolUse": "tool_use"}
_BROKEN_OFF = ("error", "aborted")
_USAGE = ("input", "output", "cacheRead", "cacheWrite")


def sniff(first: bytes) -> bool:
    match first_record(first):
        case {"type": "session", "id": str()}:
            return True
    return False


def read(lines: Iterable[bytes], writer: TranscriptWriter) -> Iterator[AnyEntry]:
    reader = _Reader(writer)
    unsent: list[tuple[int, JsonObject]] = []
    for index, (number, record) in enumerate(_entries(lines, writer.account, unsent.append)):
        reader.place(index, record)
        yield from reader.record(record, number)
    for number, record in unsent:
        yield from reader.write_unsent(record, number)


def _entries(lines: Iterable[bytes], account: ImportAccount, off_branch: OffBranch) -> Numbered:
    numbered = number_lines(lines)
    first = next(numbered, None)
    if first is None:
        return
    yield from objects([first], account)
    header = decode_record(first[1])
    version = header.get("version") if isinstance(header, dict) else None
    if isinstance(version, int) and version >= TREE_VERSION:
        yield from _active_branch(numbered, account, off_branch)
    else:
        yield from objects(numbered, account)


class _Reader:
    def __init__(self, writer: TranscriptWriter) -> None:
        self._writer = writer
        self._account = writer.account
        self._dialogue = Dialogue(writer)
        self._model, self._thinking = "", ""
        self._starts: dict[str | int, int] = {}
        """The number of the first log entry made from a record, by the record's id and position."""

    def place(self, index: int, record: JsonObject) -> None:
        self._starts[index] = self._writer.last + 1
        if id := record.get("id"):
            self._starts[str(id)] = self._writer.last + 1

    def record(self, record: JsonObject, number: int) -> Iterator[AnyEntry]:
        at = seconds(record.get("timestamp"))
        match record:
            case {"type": "message", "message": dict(message)}:
                yield from self._message(message, at, str(record.get("id") or f"line-{number}"))
            case {"type": "custom_message", "content": content}:
                yield from self._beside(content, at, is_shown=record.get("display"))
            case {"type": "branch_summary", "summary": str(summary)}:
                yield from self._beside(summary, at)
            case {"type": "compaction", "summary": str(summary)}:
                yield from self._compact(record, summary, at)
            case {"type": "session" | "model_change", "modelId": str(model)}:
                yield from self._switch(model, at)
            case {"type": "thinking_level_change", "thinkingLevel": str(level)}:
                self._thinking = level
            case {"type": "session_info", "name": str(name)}:
                yield self._writer.write(Titled(title=name), at)
            case {"type": str(kind)} if kind not in ("message", "compaction"):
                self._account.skipped[kind] += 1
            case _:
                self._account.malformed.append((number, "an entry without its content"))

    def _compact(self, record: JsonObject, summary: str, at: float) -> Iterator[AnyEntry]:
        first_kept = record.get("firstKeptEntryId", record.get("firstKeptEntryIndex"))
        start = self._starts.get(first_kept) if isinstance(first_kept, str | int) else None
        yield from self._dialogue.write_summary(
            (Text(text=summary),),
            last=start - 1 if start else None,
            before_tokens=count(record.get("tokensBefore")),
            at=at,
            origin=str(record.get("id") or ""),
        )

    def _message(self, message: JsonObject, at: float, origin: str) -> Iterator[AnyEntry]:
        at = at or seconds(message.get("timestamp"))
        match message:
            case {"role": "assistant"}:
                yield from self._reply(message, at, origin)
            case {"role": "toolResult"}:
                yield self._ran(message, at, origin)
            case {"role": "user"}:
                yield from self._dialogue.write_message(
                    _content(message.get("content")), at=at, origin=origin
                )
            case {"role": "bashExecution", "excludeFromContext": True}:
                self._account.skipped["command that the model did not see"] += 1
            case {"role": "bashExecution"}:
                yield from self._beside(_command(message), at)
            case {"role": "branchSummary" | "compactionSummary", "summary": str(summary)}:
                yield from self._beside(summary, at)
            case _:
                content = message.get("content")
                yield from self._beside(content, at, is_shown=message.get("display"))

    def _beside(self, content: Json, at: float, *, is_shown: Json = False) -> Iterator[AnyEntry]:
        yield from self._dialogue.write_message(
            _content(content), at=at, hidden=is_shown is not True
        )

    def _reply(self, message: JsonObject, at: float, origin: str) -> Iterator[AnyEntry]:
        reason = str(message.get("stopReason") or "")
        if reason in _BROKEN_OFF:
            error = str(message.get("errorMessage") or reason)
            yield self._writer.write(Failed(what="answer", error=error, detail=message), at)
            yield from self._write_cost(message, at, origin, "stopped")
            return
        model = str(message.get("model") or "")
        if self._model and model:
            yield from self._switch(model, at)
        yield from self._dialogue.write_answer(
            _content(message.get("content")),
            answer=origin,
            at=at,
            model=model,
            stop_reason=_STOP_REASONS.get(reason, reason),
            usage=_usage(message.get("usage")),
            thinking=self._thinking,
            origin=origin,
        )

    def write_unsent(self, record: JsonObject, number: int) -> Iterator[AnyEntry]:
        message = record.get("message")
        if isinstance(message, dict) and message.get("role") == "assistant":
            at = seconds(record.get("timestamp")) or seconds(message.get("timestamp"))
            yield from self._write_cost(
                message, at, str(record.get("id") or f"line-{number}"), "branch"
            )

    def _write_cost(
        self, message: JsonObject, at: float, origin: str, source: str
    ) -> Iterator[AnyEntry]:
        """Write the cost of an answer that is not part of the conversation."""
        if usage := _usage(message.get("usage")):
            call = Forked(
                source=source,
                model=str(message.get("model") or self._model),
                usage=usage,
                stop_reason="aborted" if message.get("stopReason") in _BROKEN_OFF else "end_turn",
                response_id=origin,
            )
            yield self._writer.write(call, at)

    def _switch(self, model: str, at: float) -> Iterator[AnyEntry]:
        if model != self._model:
            self._model = model
            yield self._writer.write(Switched(model=model), at)

    def _ran(self, message: JsonObject, at: float, origin: str) -> AnyEntry:
        content = _content(message.get("content"))
        is_text = isinstance(message.get("content"), str) or message.get("isText") is True
        match content:
            case (Text(text=text, extra=None),) if is_text:
                shown: ResultContent = text
            case _:
                shown = to_spoken(content)
        result = ToolResult(
            tool_use_id=str(message.get("toolCallId") or ""),
            content=shown,
            is_error=message.get("isError") is True,
            extra=extra_of(message, RESULT_FIELDS),
        )
        return self._dialogue.ran(result, at=at, origin=origin)


def _content(raw: Json) -> Content:
    return content_from_wire(raw, _block)


def _block(part: Json) -> Block:
    match part:
        case {"type": "text", "text": str(text)}:
            return Text(text=text, extra=extra_of(part, TEXT_FIELDS))
        case {"type": "thinking", "redacted": True, "thinkingSignature": str(data)}:
            return RedactedThinking(data=data, extra=extra_of(part, THINKING_FIELDS))
        case {"type": "thinking", "thinking": str(text)}:
            signature = part.get("thinkingSignature")
            return Thinking(
                thinking=text,
                signature=signature if isinstance(signature, str) else "",
                extra=extra_of(part, THINKING_FIELDS),
            )
        case {"type": "toolCall", "id": str(id), "name": str(name), "arguments": dict(arguments)}:
            return ToolUse(id=id, name=name, input=arguments, extra=extra_of(part, CALL_FIELDS))
        case {"type": "image", "data": str(data), "mimeType": str(kind)}:
            source = {"type": "base64", "media_type": kind, "data": data}
            return Image(source=source, extra=extra_of(part, IMAGE_FIELDS))
    return unwrap(part)


def _command(message: JsonObject) -> str:
    lines = [f"The user ran this command: {message.get('command')}"]
    if output := message.get("output"):
        lines.append(f"It printed:\n{output}")
    if message.get("cancelled"):
        lines.append("It was stopped before it ended.")
    elif code := message.get("exitCode"):
        lines.append(f"It ended with exit code {code}.")
    if message.get("truncated") and (path := message.get("fullOutputPath")):
        lines.append(f"Not all of its output is shown; the rest is in {path}.")
    return "\n".join(lines)


def _usage(raw: Json) -> Usage | None:
    counts = [count(raw.get(name)) if isinstance(raw, dict) else 0 for name in _USAGE]
    fresh, answer, cached, written = counts
    if not fresh + answer + cached + written:
        return None
    return Usage(
        input_tokens=fresh,
        output_tokens=answer,
        cache_read_tokens=cached,
        cache_write_tokens=written,
    )


def write(view: View, *, session: str = "longhold", directory: str = "") -> Iterator[bytes]:
    writer = _Writer(view.history[-1].at if view.history else 0.0, view.model)
    yield writer.header(session, directory)
    if view.model:
        yield writer.entry("model_change", {"provider": writer.provider, "modelId": view.model})
    if view.title:
        yield writer.entry("session_info", {"name": view.title})
    for message in view.messages():
        if message.role == "assistant":
            yield writer.answer(message.content)
        else:
            yield from writer.say(message.content)


class _Writer:
    def __init__(self, at: float, model: str) -> None:
        self._at = clamp_time(at)
        self._model = model
        self.provider = capabilities(model).family
        self._parent: str | None = None
        self._ids = itertools.count(1)
        self._tools: dict[str, str] = {}

    def header(self, session: str, directory: str) -> bytes:
        head = {"type": "session", "version": VERSION, "id": session, "cwd": directory}
        return to_line(head | {"timestamp": timestamp(self._at)})

    def entry(self, kind: str, fields: JsonObject) -> bytes:
        id = f"{next(self._ids):08x}"
        head = {"type": kind, "id": id, "parentId": self._parent, "timestamp": timestamp(self._at)}
        self._parent = id
        return to_line(head | fields)

    def answer(self, content: Content) -> bytes:
        uses = [block for block in content if isinstance(block, ToolUse)]
        self._tools.update((use.id, use.name) for use in uses)
        return self._message(
            {
                "role": "assistant",
                "content": [_part(block) for block in content],
                "api": _APIS.get(self.provider, ""),
                "provider": self.provider,
                "model": self._model,
                "usage": _NO_USAGE,
                "stopReason": "toolUse" if uses else "stop",
            }
        )

    def say(self, content: Content) -> Iterator[bytes]:
        results, rest = split_results(content)
        yield from (self._message(self._result(block)) for block in results)
        if rest:
            yield self._message({"role": "user", "content": [_part(block) for block in rest]})

    def _result(self, block: ToolResult) -> JsonObject:
        content, is_text = block.content, isinstance(block.content, str)
        blocks = (Text(text=content),) if isinstance(content, str) else content
        fields: JsonObject = {
            "role": "toolResult",
            "toolCallId": block.tool_use_id,
            "toolName": self._tools.get(block.tool_use_id, ""),
            "content": [_part(inner) for inner in blocks],
            "isError": block.is_error,
        }
        marked = fields | ({"isText": True} if is_text else {})
        return with_extra(marked, block.extra, RESULT_FIELDS)

    def _message(self, message: JsonObject) -> bytes:
        return self.entry("message", {"message": message | {"timestamp": round(self._at * 1000)}})


def _part(block: Block) -> JsonObject:
    match block:
        case Text(text=text, extra=extra):
            return with_extra({"type": "text", "text": text}, extra, TEXT_FIELDS)
        case Thinking(thinking=text, signature=signature, extra=extra):
            thought = {"type": "thinking", "thinking": text}
            signed = thought | ({"thinkingSignature": signature} if signature else {})
            return with_extra(signed, extra, THINKING_FIELDS)
        case RedactedThinking(data=data, extra=extra):
            hidden = {"type": "thinking", "thinking": "", "thinkingSignature": data}
            return with_extra(hidden | {"redacted": True}, extra, THINKING_FIELDS)
        case ToolUse(id=id, name=name, input=data, extra=extra):
            call = {"type": "toolCall", "id": id, "name": name, "arguments": data}
            return with_extra(call, extra, CALL_FIELDS)
        case Image(
            source={"type": "base64", "media_type": str(kind), "data": str(data)}, extra=extra
        ):
            if len(block.source) == 3:
                image = {"type": "image", "data": data, "mimeType": kind}
                return with_extra(image, extra, IMAGE_FIELDS)
    return wrap(block)
