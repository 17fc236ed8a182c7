"""One client conversation: its log, the decisions about it, and its requests."""

import asyncio
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
from msgspec import structs

from longhold.core.log import OpenLog
from longhold.core.log.cursor import LogCursor
from longhold.core.log.entries import Cleared, Failed, Switched
from longhold.core.messages import Json, JsonObject, ResultContent, block_to_wire, text_of
from longhold.core.models.clients import DialectName
from longhold.core.models.protocol import Reply, Request
from longhold.core.request.cache.fingerprint import blocks_of
from longhold.core.request.frame import frame
from longhold.core.request.lifetime import Lifetime
from longhold.core.request.markers import SLOTS, MarkerPlace, add_markers, last_place
from longhold.core.settings import Settings
from longhold.core.stages.layers import build_layers
from longhold.core.stages.spill.spill import Spill
from longhold.core.turn.engine import Engine, Stage
from longhold.core.turn.telemetry import Telemetry
from longhold.core.view import View
from longhold.core.view.items import Result, Round, Spoken
from longhold.core.wire.responses import CONTEXT_ITEMS, OUTPUT_ITEMS
from longhold.gateway.decisions import Decisions, PricedDecision
from longhold.gateway.endpoints import Call
from longhold.session.following import FollowedList
from longhold.session.program import Program, Wishes, system_head
from longhold.session.tool_definitions import ToolRegistry

THINKING = ("thinking", "redacted_thinking")


def project(
    messages: Sequence[JsonObject], head: int, view: View, known: FollowedList, dialect: DialectName
) -> list[JsonObject] | None:
    """Return the messages to send after `head` leading system messages, or None for no change."""
    if len(known.ends) != len(messages) - head:
        raise ValueError("the list differs from the one that the session follows")
    put = [
        item
        for item in view.items
        if isinstance(item, Spoken) and item.kind not in ("said", "late")
    ]
    hides = any(item.kind in ("summary", "line") for item in put)
    patch = _Patch(view, dialect, hides)
    sent, waiting = list(messages[:head]), iter([*put, None])
    following = next(waiting)
    is_changed = bool(put)
    for message, end in zip(messages[head:], known.ends, strict=True):
        while following is not None and following.order <= end:
            sent.append(_render_item(following, dialect))
            following = next(waiting)
        shown = patch.apply(message, end)
        # Unchanged messages are the same objects, so comparing identities is enough.
        is_changed = is_changed or shown is not message
        if shown is not None:
            sent.append(shown)
    while following is not None:
        sent.append(_render_item(following, dialect))
        following = next(waiting)
    return sent if is_changed else None


class _Patch:
    """Walks the messages in order, because a result belongs to the answer before it."""

    def __init__(self, view: View, dialect: DialectName, hides: bool) -> None:
        self._view, self._dialect, self._hides = view, dialect, hides
        self._round: Round | None = None
        self._results: dict[str, Result] = {}
        """Results of the round by the ids that the client knows."""

    def apply(self, message: JsonObject, end: int) -> JsonObject | None:
        """Return the message to send, or None if it is dropped."""
        if self._is_answer(message):
            item = self._view.item_of(end)
            self._begin(item if isinstance(item, Round) else None)
            if self._round is None:
                return None if self._hides else message
            return self._answer(message, self._round)
        match self._dialect:
            case "anthropic":
                return self._blocks(message, end)
            case "openai" if message.get("role") == "tool":
                return self._result(message, message.get("tool_call_id"), "content")
            case "responses" if message.get("type") in OUTPUT_ITEMS:
                return self._result(message, message.get("call_id"), "output")
        return message if self._is_said(end) else None

    def _begin(self, owner: Round | None) -> None:
        self._round, self._results = owner, {}
        if owner is not None:
            for result in reversed(owner.results):  # the first of several results counts
                self._results[owner.renamed.get(result.tool_use_id, result.tool_use_id)] = result

    def _is_answer(self, message: JsonObject) -> bool:
        if self._dialect == "responses" and (kind := message.get("type") or "message") != "message":
            return kind not in OUTPUT_ITEMS | CONTEXT_ITEMS
        return message.get("role") == "assistant"

    def _is_said(self, end: int) -> bool:
        return not self._hides or isinstance(self._view.item_of(end), Spoken)

    def _answer(self, message: JsonObject, owner: Round) -> JsonObject:
        content = message.get("content")
        is_touched = owner.drops_thinking or owner.inputs
        if self._dialect != "anthropic" or not is_touched or not isinstance(content, list):
            return message
        # The log renames duplicate ids, but the client still uses the original ids.
        given = {given: own for own, given in owner.renamed.items()}
        blocks: list[Json] = []
        for block in content:
            kind = block.get("type") if isinstance(block, dict) else ""
            if kind in THINKING and owner.drops_thinking:
                continue
            own = given.get(block.get("id"), block.get("id")) if kind == "tool_use" else ""
            blocks.append({**block, "input": owner.inputs[own]} if own in owner.inputs else block)
        return {**message, "content": blocks} if blocks and blocks != content else message

    def _blocks(self, message: JsonObject, end: int) -> JsonObject | None:
        content = message.get("content")
        if not isinstance(content, list) or not any(map(_is_result, content)):
            return message if self._is_said(end) else None
        shown = list(self._select_shown(content, end))
        if not shown:
            return None
        is_same = len(shown) == len(content) and all(map(lambda a, b: a is b, shown, content))
        return message if is_same else {**message, "content": shown}

    def _select_shown(self, content: Sequence[Json], end: int) -> Iterator[Json]:
        for block in content:
            if not _is_result(block):
                if self._round is not None or self._is_said(end):
                    yield block
            elif self._round is None:
                if not self._hides:
                    yield block
            else:
                result = self._result_of(block.get("tool_use_id"))
                yield block if result is None else _with_content(block, result, "content")

    def _result(self, message: JsonObject, id: Json, field: str) -> JsonObject | None:
        if self._round is None:
            return None if self._hides else message
        result = self._result_of(id)
        if result is None:
            return message
        text = result.block("sent").content
        return {**message, field: text if isinstance(text, str) else text_of(text)}

    def _result_of(self, id: Json) -> Result | None:
        result = self._results.get(id) if isinstance(id, str) else None
        return result if result and result.placeholder("sent") is not None else None


def _is_result(block: Json) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_result"


def _with_content(block: JsonObject, result: Result, field: str) -> JsonObject:
    content: ResultContent = result.block("sent").content
    wire = content if isinstance(content, str) else [block_to_wire(one) for one in content]
    return {**block, field: wire}


def _render_item(item: Spoken, dialect: DialectName) -> JsonObject:
    match dialect:
        case "anthropic":
            return {"role": "user", "content": [block_to_wire(block) for block in item.content]}
        case "openai":
            return {"role": "user", "content": text_of(item.content)}
    text = {"type": "input_text", "text": text_of(item.content)}
    return {"type": "message", "role": "user", "content": [text]}


BILLING = "x-anthropic-billing-header:"
"""Prefix of a system block that carries billing data and is not for the model."""

NOT_IN_PREFIX = ("instructions", "input", "prompt_cache_key", "stream_options", "client_metadata")
"""Fields that are read elsewhere or do not affect a cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    body: bytes | None
    """The changed body, or None if the client's bytes are sent unchanged."""
    asked: int
    """The number of this request's log entry."""
    decisions: tuple[PricedDecision, ...] = ()


class Conversation:
    def __init__(
        self, log: OpenLog, settings: Settings, *, clock: Callable[[], float] = time.time
    ) -> None:
        spill = Spill()
        self._engine = Engine(log, settings, on_result=spill.arrive, clock=clock)
        before = self._engine.view.configured
        registry = ToolRegistry(before.tools if before else {})
        # Without `ask`, summaries are digests, because the credential belongs to the client.
        self._layers = build_layers(
            spill, describe=registry.describe, telemetry=Telemetry(self._engine)
        )
        self._program = Program(self._engine, registry)
        self._decisions = Decisions()
        self._clock = clock
        self.used_at = clock()
        self._last: list[JsonObject] = []
        """Messages of the last request, reused so that equal messages are not hashed again."""
        self._answered: list[JsonObject] = []
        """Messages of the last answered request."""
        self._is_moved = False
        """Whether something was cleared since the last answered request."""
        self._adds, self._ended = settings.gateway.breakpoints == "add", 0
        self._cursor, self._has_cleared = LogCursor(), False
        self._in_flight = 0
        """Prepared requests whose answer has not ended."""

    @property
    def id(self) -> str:
        return self._engine.log.header.session

    @property
    def path(self) -> Path:
        return self._engine.log.path

    @property
    def is_wanted(self) -> bool:
        """Return whether another process waits for this session. The check takes time."""
        return self._engine.log.is_wanted

    @property
    def is_busy(self) -> bool:
        return self._in_flight > 0

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Return the stages before a call. Compaction comes last, because clients compact too."""
        return (self._layers.spill, self._layers.clear, self._compact_if_blocked)

    def begin(self, call: Call, client: str, *, opens_files: bool) -> None:
        wishes = Wishes(dialect=call.endpoint.dialect, paths=opens_files, client=client)
        self._program.configure(wishes, "by the gateway")
        self._engine.record(Switched(model=call.model, reason="opened"))
        self._frame(call)

    def _frame(self, call: Call) -> None:
        """Record whether the client caches the conversation. Record it again if caching begins."""
        marks = list(_marks(call.body))
        lasting = bool(marks) and marks[-1].get("ttl") == "1h"
        # The other dialects have no breakpoints, because their providers cache automatically.
        is_cached = call.endpoint.dialect != "anthropic" or self._adds or _caches(call.body)
        if self._engine.view.frame is None or is_cached > self._engine.frame.cached:
            lifetime: Lifetime = "1h" if lasting else "5m"
            made = structs.replace(frame((), (), {}), cached=is_cached, lifetime=lifetime)
            self._engine.record(made)

    def resume(self) -> None:
        self._program.take_up(Wishes(), None, None)

    def count_known(self, call: Call) -> tuple[int, int]:
        """Return how many leading messages are known, and the size of the known list."""
        return self._program.recognise(call.messages), len(self._program.followed.keys)

    def prepare(self, call: Call) -> Prepared:
        """Follow the new messages, run the stages, log everything and build the request.

        This takes time, so it runs in a thread that holds the conversation's lock.
        """
        self.used_at = self._clock()
        self._frame(call)
        self._program.follow(call.messages, _system_of(call), call.tools)
        sent: list[JsonObject] = []

        # Runs after the stages, because only they decide what changes in the request.
        def build() -> Request:
            head = system_head(call.messages)
            messages = self._project(call.messages, head, call) or call.messages
            is_held = False
            if call.endpoint.dialect == "anthropic":
                before, held, is_held = self._hold(call)
                messages = self._mark_cached(call, messages, [before, held])
                if self._adds and not _caches(call.body):
                    messages = self._mark_ends(call, messages)
            body = call.body
            if messages is not call.messages:
                body = {**body, call.endpoint.list_field: messages}
            sent.append(_lengthen(body, held) if is_held else body)
            return self._as_sent(call, sent[-1])

        limit = call.output_limit or self._engine.output_limit()
        asyncio.run(self._engine.prepare(self.stages, max_output_tokens=limit, build=build))
        view = self._engine.view
        decisions = self._decisions.in_force(view, call.model)
        # A conversation in flight must not be closed before its answer is recorded.
        self._in_flight += 1
        body = None if sent[-1] is call.body else msgspec.json.encode(sent[-1])
        asked = view.asked.n if view.asked else 0
        return Prepared(body=body, asked=asked, decisions=decisions)

    def prepare_count(self, call: Call) -> bytes | None:
        """Build a token-counting request in the form last sent, or None to send it unchanged."""
        kept, size = self.count_known(call)
        head = system_head(call.messages)
        if kept < size or kept == 0:
            return None
        known = [*call.messages[:head], *call.messages[head : head + kept]]
        shown = self._project(known, head, call)
        if shown is None:
            return None
        rest = call.messages[head + kept :]
        return msgspec.json.encode({**call.body, call.endpoint.list_field: [*shown, *rest]})

    def record_reply(self, reply: Reply, asked: int, *, is_simulated: bool = False) -> None:
        """Record an answer, unless a later request was prepared in the meantime."""
        latest = self._engine.view.asked
        if latest is not None and latest.n == asked:
            self._engine.record_reply(reply)
            self._answered, self._is_moved = self._last, False
            if is_simulated and not self._program.configuration.simulated:
                self._program.configure(Wishes(simulated=True), "the simulator answers")

    def release(self) -> None:
        """End a prepared request, even if its answer failed."""
        self._in_flight -= 1
        self.used_at = self._clock()

    def fail(self, what: str, error: str) -> None:
        self._engine.record(Failed(what=what, error=error))
        if self._engine.frame.held:  # because the provider may have refused the longer lifetime
            self._engine.record(structs.replace(self._engine.frame, n=0, at=0.0, held=0))

    def close(self) -> None:
        self._layers.close(self._engine)
        self._engine.close()

    def _project(
        self, messages: list[JsonObject], head: int, call: Call
    ) -> list[JsonObject] | None:
        view, known = self._engine.view, self._program.followed
        return project(messages, head, view, known, call.endpoint.dialect)

    def _hold(self, call: Call) -> tuple[int, int, bool]:
        """Return how many messages were and will be cached for an hour, and whether the frame is."""
        marks = [*_marks(call.body)]
        if not 0 < len(marks) < SLOTS or marks[-1].get("ttl") == "1h":
            return 0, 0, False
        head, ends = system_head(call.messages), self._program.followed.ends
        before, now = self._layers.clear.hold(self._engine)
        return head + bisect_left(ends, before), head + bisect_left(ends, now), now > 0

    def _mark_cached(
        self, call: Call, messages: list[JsonObject], held: list[int]
    ) -> list[JsonObject]:
        """Add cache breakpoints at the ends of cached parts, if the client uses fewer than four.

        A provider looks back only a few blocks from a breakpoint. After a clearing, one breakpoint
        goes to the last unchanged message. Others go to the end of the part that is cached for an
        hour, and after the last cleared result.
        """
        marks, end = [*_marks(call.body)], self._cleared_end()
        if not 0 < len(marks) < SLOTS or not (end or any(held)):
            return messages
        shown, ends = to_blocks(messages), held
        if end:
            ends.append(system_head(messages) + end)
        if self._is_moved:
            ends.insert(0, len(_find_unchanged(shown, self._answered)))
        places = dict.fromkeys(place for one in ends if (place := last_place(shown[:one])))
        sent = list(messages)
        for at, block in list(places)[: SLOTS - len(marks)]:
            [sent[at]] = add_markers(
                to_blocks(sent[at : at + 1]), [MarkerPlace(0, block)], marks[-1]
            )
        return sent

    def _mark_ends(self, call: Call, messages: list[JsonObject]) -> list[JsonObject]:
        """Add cache breakpoints at the end and where the last request ended, four in all."""
        shown, before = to_blocks(messages), self._ended
        self._ended = len(messages)
        ends = {last_place(shown): None, last_place(shown[:before]): None}
        free = SLOTS - len([*_marks({**call.body, "messages": messages})])
        places = [place for place in ends if place is not None][: max(0, free)]
        return add_markers(shown, places, {"type": "ephemeral"})

    def _cleared_end(self) -> int:
        view, ends = self._engine.view, self._program.followed.ends
        new = self._cursor.advance(view.history)
        if any(isinstance(one, Cleared) for one in new):
            self._has_cleared = self._is_moved = True
        # Return early, because most sessions never clear and searching all messages takes time.
        if not self._has_cleared:
            return 0
        for at in range(len(ends), 0, -1):
            item = view.item_of(ends[at - 1])
            if isinstance(item, Round) and any(one.cleared is not None for one in item.results):
                return at
        return 0

    def _as_sent(self, call: Call, body: JsonObject) -> Request:
        """Return the request as the cache sees it, with text as blocks and no billing blocks."""
        self._last = _reuse_objects(to_blocks(body[call.endpoint.list_field]), self._last)
        kwargs = {key: value for key, value in body.items() if key not in NOT_IN_PREFIX}
        kwargs["messages"] = self._last
        if (system := _system_of(replace(call, body=body))) is not None:
            kwargs["system"] = system
        return Request(kwargs=kwargs, betas=call.betas)

    async def _compact_if_blocked(self, engine: Engine) -> None:
        if engine.fullness().is_blocked:
            await self._layers.compact(engine)


def _system_of(call: Call) -> Json:
    if not isinstance(call.system, list):
        return call.system
    return [block for block in call.system if not _is_billing(block)]


def _is_billing(block: Json) -> bool:
    return isinstance(block, dict) and str(block.get("text", "")).startswith(BILLING)


def _reuse_objects(messages: list[JsonObject], before: list[JsonObject]) -> list[JsonObject]:
    """Reuse the objects of the last request for equal messages, up to the first change.

    Fingerprints compare identities. A moved cache breakpoint does not count as a change.
    """
    kept = _find_unchanged(messages, before)
    return [*kept, *messages[len(kept) :]]


def _find_unchanged(messages: list[JsonObject], before: list[JsonObject]) -> list[JsonObject]:
    kept: list[JsonObject] = []
    for new, old in zip(messages, before, strict=False):
        if new == old:
            kept.append(old)
        elif (new.get("role"), blocks_of(new)) == (old.get("role"), blocks_of(old)):
            kept.append(new)
        else:
            break
    return kept


def to_blocks(messages: Sequence[JsonObject]) -> list[JsonObject]:
    """Turn plain text into a block, as the cache does. A Responses item is one block."""
    return [_to_blocks(message) for message in messages]


def _to_blocks(message: JsonObject) -> JsonObject:
    match message.get("content"):
        case str(text):
            return {**message, "content": [{"type": "text", "text": text}]}
        case list():
            return message
    return {"role": message.get("role") or message.get("type"), "content": [message]}


def _lengthen(body: JsonObject, held: int) -> JsonObject:
    """Set the lifetime of the breakpoints in the first `held` messages to one hour."""

    def lengthen(part: Json) -> Json:
        if isinstance(part, dict) and isinstance(mark := part.get("cache_control"), dict):
            return {**part, "cache_control": {**mark, "ttl": "1h"}}
        return part

    def lengthen_all(parts: Json) -> Json:
        return list(map(lengthen, parts)) if isinstance(parts, list) else parts

    messages = [
        {**one, "content": lengthen_all(one.get("content"))}
        if _caches({"messages": [one]})
        else one
        for one in body["messages"][:held]
    ]
    fixed: JsonObject = {key: lengthen_all(body[key]) for key in ("tools", "system") if key in body}
    return {**body, **fixed, "messages": [*messages, *body["messages"][held:]]}


def _caches(body: JsonObject) -> bool:
    """Return whether a breakpoint covers messages, and not only the system prompt and tools."""
    return any(True for _ in _marks({**body, "tools": None, "system": None}))


def _marks(body: JsonObject) -> Iterator[JsonObject]:
    """Yield the cache breakpoints of a request in prompt order."""
    parts: list[Json] = [*(body.get("tools") or ())]
    system = body.get("system")
    parts += system if isinstance(system, list) else []
    for message in body.get("messages") or ():
        content = message.get("content")
        parts += content if isinstance(content, list) else []
    for part in (*parts, body):
        if isinstance(part, dict) and isinstance(mark := part.get("cache_control"), dict):
            yield mark
