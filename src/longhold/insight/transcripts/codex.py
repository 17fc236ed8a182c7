"""Reads and writes rollouts of the Codex CLI.

Only usage, rollbacks (`Snipped`) and titles are read from events. Other events repeat the response
items. Usage can come before, between or after the items of an answer, so a round is delayed until
the next begins. A compaction's summary consists of its replacement messages before the model's
first message. Written files lack tools and usage.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from longhold.core.log.entries import AnyEntry, Framed, Said, Section, Snipped, Switched, Titled
from longhold.core.messages import Block, Json, JsonObject, Text, Usage, text_of
from longhold.core.messages.usage import WINDOW
from longhold.core.messages.wrapped import strip_wrapped
from longhold.core.view import View
from longhold.core.view.block_roles import to_spoken
from longhold.core.view.items import make_unanswered
from longhold.core.wire.messages import parse_input
from longhold.core.wire.responses import (
    CONTEXT_ITEMS,
    OUTPUT_ITEMS,
    UNSENT_ITEMS,
    decode_item,
    decode_result,
    read_answer,
    write_items,
)
from longhold.session.importing.json_records import (
    count,
    first_record,
    line,
    records,
    seconds,
    timestamp,
)
from longhold.session.importing.transcript_writer import Dialogue, TranscriptWriter

NAME = "codex"

_KINDS = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})


def sniff(first: bytes) -> bool:
    record = first_record(first)
    if not isinstance(record, dict):
        return False
    if "payload" in record:
        return str(record.get("type")) in _KINDS
    return "type" not in record and {"id", "timestamp", "instructions"} <= record.keys()


def read(lines: Iterable[bytes], writer: TranscriptWriter) -> Iterator[AnyEntry]:
    reader = _Reader(writer)
    for number, record in records(lines, writer.account):
        yield from reader.record(record, number)
    yield from reader.flush()


@dataclass(slots=True)
class _Round:
    at: float
    content: list[Block] = field(default_factory=list)
    results: list[tuple[JsonObject, float]] = field(default_factory=list)
    usage: Usage | None = None


class _Reader:
    def __init__(self, writer: TranscriptWriter) -> None:
        self._writer = writer
        self._account = writer.account
        self._dialogue = Dialogue(writer)
        self._model, self._began = "", 0.0
        self._round: _Round | None = None
        self._usage: Usage | None = None
        self._total: Json = None
        self._turns: list[int] = []
        self._is_framed = False

    def record(self, record: JsonObject, number: int) -> Iterator[AnyEntry]:
        at = self._began = seconds(record.get("timestamp")) or self._began
        match record:
            case {"type": "response_item", "payload": dict(item)}:
                yield from self._item(item, at)
            case {"type": "event_msg", "payload": dict(event)}:
                yield from self._event(event, at)
            case {"type": "compacted", "payload": dict(compaction)}:
                yield from self._compact(compaction, at)
            case {"type": "session_meta", "payload": dict(meta)}:
                yield from self._frame(meta, at)
            case {"type": "turn_context", "payload": {"model": str(model)}} if model != self._model:
                yield from self._switch(model, at)
            case {"type": str(kind), "payload": _}:
                self._account.skipped[kind] += 1
            case {"record_type": str(kind)}:
                self._account.skipped[kind] += 1
            case {"type": str()}:
                yield from self._item(record, at)
            case {"instructions": _}:
                yield from self._frame(record, at)
            case _:
                self._account.malformed.append((number, "a record without a type"))

    def flush(self) -> Iterator[AnyEntry]:
        held, self._round = self._round, None
        if held is None:
            return
        yield from self._dialogue.write_answer(
            tuple(held.content), at=held.at, model=self._model, usage=held.usage
        )
        for item, at in held.results:
            yield self._dialogue.ran(decode_result(item), at=at)

    def _frame(self, meta: JsonObject, at: float) -> Iterator[AnyEntry]:
        instructions = meta.get("base_instructions") or meta.get("instructions")
        text = instructions.get("text") if isinstance(instructions, dict) else instructions
        if self._is_framed or not isinstance(text, str):
            self._account.skipped["session_meta"] += 1
            return
        self._is_framed = True
        frame = Framed(sections=(Section(name="instructions", text=text),))
        yield self._writer.write_frame(frame, at)

    def _switch(self, model: str, at: float) -> Iterator[AnyEntry]:
        yield from self.flush()
        self._model = model
        yield self._writer.write(Switched(model=model), at)

    def _item(self, item: JsonObject, at: float) -> Iterator[AnyEntry]:
        kind = str(item.get("type"))
        if kind in UNSENT_ITEMS:
            self._account.skipped[kind] += 1
        elif kind in OUTPUT_ITEMS:
            if self._round is None:
                yield self._dialogue.ran(decode_result(item), at=at)
            else:
                self._round.results.append((item, at))
        elif _is_users(item):
            yield from self.flush()
            yield from self._say(item, at)
        else:
            if self._round is not None and self._round.results:
                yield from self.flush()
            if self._round is None:
                self._round = _Round(at, usage=self._usage)
                self._usage = None
            self._round.content.extend(read_answer(item, parse_input))

    def _say(self, item: JsonObject, at: float) -> Iterator[AnyEntry]:
        _, content = decode_item(item)
        text = text_of(content)
        is_context = bool(text) and not strip_wrapped(text)
        is_asked = item.get("role") == "user" and not is_context
        for entry in self._dialogue.write_message(content, at=at, hidden=not is_asked):
            if is_asked and isinstance(entry, Said):
                self._turns.append(entry.n)
            yield entry

    def _event(self, event: JsonObject, at: float) -> Iterator[AnyEntry]:
        match event:
            case {"type": "token_count"}:
                self._take_usage(event.get("info"))
            case {"type": "thread_rolled_back", "num_turns": int(turns)} if turns > 0:
                yield from self._roll_back(turns, at)
            case {"type": "thread_name_updated", "thread_name": str(title)}:
                yield self._writer.write(Titled(title=title), at)
            case _:
                self._account.skipped[f"event {event.get('type')}"] += 1

    def _take_usage(self, info: Json) -> None:
        """Assign usage to its answer. A repeated count is skipped."""
        last = info.get("last_token_usage") if isinstance(info, dict) else None
        usage = _usage(last, info.get(WINDOW)) if isinstance(last, dict) else None
        if usage is None or info.get("total_token_usage") == self._total:
            self._account.skipped["event token_count"] += 1
            return
        self._total = info.get("total_token_usage")
        held = self._round
        if held is not None and (held.usage is None or not held.results):
            held.usage = usage
        else:
            self._usage = usage

    def _roll_back(self, turns: int, at: float) -> Iterator[AnyEntry]:
        yield from self.flush()
        if turns > len(self._turns):
            self._account.repaired["rollback past the beginning"] += 1
        gone = self._turns[-turns:]
        del self._turns[-turns:]
        if not gone:
            return
        for waiting in self._dialogue.waiting():  # because an open round cannot leave the view
            yield self._dialogue.ran(make_unanswered(waiting), at=at)
        targets = tuple(range(gone[0], self._writer.last + 1))
        yield self._writer.write(Snipped(targets=targets, why="The user went back."), at)

    def _compact(self, compaction: JsonObject, at: float) -> Iterator[AnyEntry]:
        yield from self.flush()
        history = compaction.get("replacement_history")
        items = [i for i in history if isinstance(i, dict)] if isinstance(history, list) else []
        message = str(compaction.get("message") or "")
        lead = next((i for i, item in enumerate(items) if not _is_users(item)), len(items))
        blocks = [block for item in items[:lead] for block in decode_item(item)[1]]
        summary = to_spoken(blocks) or ((Text(text=message),) if message else ())
        self._turns.clear()
        self._usage = None
        yield from self._dialogue.write_summary(summary, at=at)
        for item in items[lead:]:
            yield from self._item(item, at)


def _is_users(item: JsonObject) -> bool:
    kind = str(item.get("type"))
    return kind in CONTEXT_ITEMS or (kind == "message" and item.get("role") != "assistant")


def _usage(raw: JsonObject, window: Json) -> Usage | None:
    """Read token counts. Codex includes cached tokens in the input."""
    names = ("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens")
    whole, cached, written, answer = (count(raw.get(name)) for name in names)
    if not whole + answer:
        return None
    thought = "reasoning_output_tokens"
    extra = {thought: raw.get(thought), WINDOW: window}
    return Usage(
        input_tokens=max(whole - cached - written, 0),
        output_tokens=answer,
        cache_read_tokens=cached,
        cache_write_tokens=written,
        extra={name: value for name, value in extra.items() if value} or None,
    )


def write(view: View, *, session: str = "longhold", directory: str = "") -> Iterator[bytes]:
    at = timestamp(view.history[-1].at if view.history else 0.0)
    yield _record(at, "session_meta", _meta(view, session, directory, at))
    if view.model:
        yield _record(at, "turn_context", {"cwd": directory, "model": view.model})
    if view.title:
        title = {"type": "thread_name_updated", "thread_id": session, "thread_name": view.title}
        yield _record(at, "event_msg", title)
    for message in view.messages():
        for item in write_items(message.role, message.content):
            yield _record(at, "response_item", item)


def _meta(view: View, session: str, directory: str, at: str) -> JsonObject:
    meta: JsonObject = {
        "id": session,
        "timestamp": at,
        "cwd": directory,
        "originator": "longhold",
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
