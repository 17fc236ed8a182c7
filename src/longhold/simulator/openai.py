"""The Chat Completions endpoint, which caches prompts automatically by prefix."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from longhold.core.messages import Content, Json, Opaque, Text, block_to_wire
from longhold.core.models.capabilities import Capabilities, capabilities, known_models
from longhold.core.models.prices import usage_cost
from longhold.core.request.billing.api_request import ApiError, Caller, JsonObject, invalid_request
from longhold.core.request.billing.cache import MINIMUM_TOKENS, CachePlan, PrefixMatch
from longhold.core.request.billing.pieces import PieceMeter
from longhold.core.request.billing.tokens import encode
from longhold.core.wire import chat
from longhold.core.wire.messages import SYSTEM_ROLES, Speaker, speaker_of
from longhold.simulator.brains import BrainRequest
from longhold.simulator.faults import InjectedFault
from longhold.simulator.finishing import FittedAnswer, fit, natural_reason, new_id, stop_at_sequence
from longhold.simulator.simulation import Simulation
from longhold.simulator.stats import ServedRequest
from longhold.simulator.stream import slices

_EMPTY = Text(text="")
_NO_ANSWER: JsonObject = {"role": "assistant", "content": None, "refusal": None}
FINISH_REASONS = {"tool_use": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}
CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}
OVERFLOW = (
    "Your input exceeds the context window of this model. Please adjust your input and try again."
)


class ChatReply(NamedTuple):
    chunks: list[bytes]
    is_stream: bool
    match: PrefixMatch
    record: ServedRequest


class ChatEndpoint:
    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._encoded: dict[bytes, array[int]] = {}

    @property
    def delta_chars(self) -> int:
        return self._simulation.settings.delta_chars

    async def create(self, body: JsonObject, caller: Caller) -> ChatReply:
        able = self.check_request(body, "messages")
        _check_chat(body["messages"])
        limit = body.get("max_completion_tokens") or body.get("max_tokens")
        parts = (*(body.get("tools") or ()), *body["messages"])
        stop = body.get("stop") or ()
        served = await self.serve(
            able,
            caller,
            parts,
            int(limit or able.max_output_tokens),
            partial(_brain_request, body),
            stop=[stop] if isinstance(stop, str) else list(stop),
        )
        return self._reply(body, served)

    async def serve(
        self,
        able: Capabilities,
        caller: Caller,
        parts: Iterable[Json],
        room: int,
        request: Callable[[int], BrainRequest],
        *,
        stop: Sequence[str] = (),
    ) -> "ServedAnswer":
        """Call the brain with at most `room` output tokens, limited by the rest of the window."""
        started = self._simulation.clock.now()
        owner = f"{caller.workspace}|{able.model}"
        tokens = self._tokens(parts)
        match = self._simulation.prefixes.look_up(owner, tokens, started, able.cache_seconds)
        if match.prompt_tokens > able.window_tokens:
            raise invalid_request(OVERFLOW, "context_length_exceeded")
        room = min(room, able.window_tokens - match.prompt_tokens)
        answer = await self._simulation.ask(request(room))
        spoken = [block for block in answer.blocks if block["type"] != "thinking"]
        cut, _ = stop_at_sequence(spoken, stop)
        fitted = fit(cut, room, PieceMeter(self._simulation.bench.counter, able.tokenizer_scale))
        return ServedAnswer(
            able=able,
            caller=caller,
            match=match,
            fitted=fitted,
            reason="max_tokens" if fitted.is_cut else answer.stop_reason or natural_reason(cut),
            started=started,
            is_written=able.model in known_models() and match.prompt_tokens >= MINIMUM_TOKENS,
        )

    def begin(self, reply: ChatReply, fault: InjectedFault | None) -> None:
        self._simulation.prefixes.commit(reply.match, self._simulation.clock.now())
        self._simulation.stats.add(replace(reply.record, fault=fault.name if fault else None))

    def check_request(self, body: JsonObject, list_field: str) -> Capabilities:
        for name in ("model", list_field):
            if name not in body:
                raise invalid_request(
                    f"Missing required parameter: '{name}'.", "missing_required_parameter"
                )
        able = capabilities(str(body["model"]))
        is_known = able.model in known_models() or able.family == "simulator"
        if not is_known and not self._simulation.settings.accepts_unknown_models:
            raise ApiError(404, f"The model `{body['model']}` does not exist")
        return able

    def _tokens(self, parts: Iterable[Json]) -> "array[int]":
        tokens = array("I")
        for part in parts:
            raw = msgspec.json.encode(part)
            key = blake2b(raw, digest_size=16).digest()
            if key not in self._encoded:
                if len(self._encoded) >= self._simulation.settings.token_memo_blocks:
                    self._encoded.clear()
                self._encoded[key] = array("I", encode(raw.decode()))
            tokens.extend(self._encoded[key])
        return tokens

    def _reply(self, body: JsonObject, served: "ServedAnswer") -> ChatReply:
        completion = _completion(body, served)
        is_stream, chunks = bool(body.get("stream")), [msgspec.json.encode(completion)]
        if is_stream:
            shows_usage = bool((body.get("stream_options") or {}).get("include_usage"))
            chunks = list(_stream(completion, self.delta_chars, shows_usage=shows_usage))
        record = record_answer(completion["id"], "chat/completions", served)
        return ChatReply(chunks, is_stream, served.match, record)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedAnswer:
    able: Capabilities
    caller: Caller
    match: PrefixMatch
    fitted: FittedAnswer
    reason: str
    started: float
    is_written: bool  # whether new prefix tokens are billed as cache writes

    @property
    def fresh_tokens(self) -> int:
        return self.match.prompt_tokens - self.match.cached_tokens

    @property
    def written_tokens(self) -> int:
        return self.fresh_tokens if self.is_written else 0

    def usage(self, prompt: str, answer: str) -> JsonObject:
        read, output = self.match.prompt_tokens, self.fitted.tokens
        cached = {"cached_tokens": self.match.cached_tokens}
        return {
            prompt: read,
            f"{prompt}_details": cached | {"cache_write_tokens": self.written_tokens},
            answer: output,
            f"{answer}_details": {"reasoning_tokens": 0},
            "total_tokens": read + output,
        }


def openai_error(error: ApiError) -> JsonObject:
    kind = "server_error" if error.status >= 500 else "invalid_request_error"
    code = error.code or CODES.get(error.status)
    param = "messages" if code == "context_length_exceeded" else None
    return {"error": {"message": error.message, "type": kind, "param": param, "code": code}}


def with_error_event(chunks: list[bytes], fault: InjectedFault) -> list[bytes]:
    return [*chunks[: fault.after_events], _data(openai_error(fault.error()))]


def _check_chat(messages: Sequence[JsonObject]) -> None:
    if not messages:
        raise invalid_request("[] is too short - 'messages'", "empty_array")
    open_ids: list[str] = []
    for index, message in enumerate(messages):
        role = message.get("role")
        if role == "tool":
            if message.get("tool_call_id") not in open_ids:
                raise invalid_request(
                    "Invalid parameter: messages with role 'tool' must be a response to a "
                    "preceeding message with 'tool_calls'."
                )
            open_ids.remove(str(message.get("tool_call_id")))
            continue
        _refuse_unanswered(open_ids)
        check_role(role, f"messages[{index}]")
        open_ids = [str(call.get("id")) for call in message.get("tool_calls") or ()]
    _refuse_unanswered(open_ids)


def check_role(role: Json, where: str) -> None:
    if role not in (*SYSTEM_ROLES, "user", "assistant"):
        raise invalid_request(f"Invalid value: {role!r} - '{where}.role'", "invalid_value")


def _refuse_unanswered(open_ids: Sequence[str]) -> None:
    if open_ids:
        raise invalid_request(
            "An assistant message with 'tool_calls' must be followed by tool messages responding "
            "to each 'tool_call_id'. The following tool_call_ids did not have response messages: "
            f"{', '.join(open_ids)}"
        )


def _brain_request(body: JsonObject, room: int) -> BrainRequest:
    choice = body.get("tool_choice")
    forced = "any" if choice == "required" else None
    if isinstance(choice, dict):
        forced = (choice.get("function") or {}).get("name")
    functions = [t["function"] for t in body.get("tools") or () if t.get("type") == "function"]
    heard = ((speaker_of(m["role"]), chat.decode_message(m)) for m in body["messages"])
    return brain_request(str(body["model"]), heard, functions, room, forced_tool=forced)


def brain_request(
    model: str,
    heard: Iterable[tuple[Speaker, Content]],
    functions: Iterable[JsonObject],
    room: int,
    *,
    forced_tool: str | None = None,
) -> BrainRequest:
    """Build a brain's request. Merge consecutive messages of a role, and drop empty messages."""
    system, messages = list[JsonObject](), list[JsonObject]()
    for speaker, content in heard:
        blocks = [block_to_wire(b) for b in content if not isinstance(b, Opaque) and b != _EMPTY]
        if speaker == "system":
            system += blocks
        elif messages and messages[-1]["role"] == speaker:
            messages[-1]["content"] += blocks
        elif blocks:
            messages.append({"role": speaker, "content": blocks})
    tools = [
        {
            "name": function["name"],
            "description": function.get("description", ""),
            "input_schema": function.get("parameters") or {"type": "object"},
        }
        for function in functions
    ]
    return BrainRequest(
        model=model,
        system=tuple(system),
        tools=tuple(tools),
        messages=tuple(messages),
        max_tokens=room,
        forced_tool=forced_tool,
    )


def _completion(body: JsonObject, served: ServedAnswer) -> JsonObject:
    blocks = [
        {**b, "id": b.get("id") or new_id("call_")} if b["type"] == "tool_use" else b
        for b in served.fitted.blocks
    ]
    choice = {
        "index": 0,
        "message": {**_NO_ANSWER, **(chat.encode_answer(blocks, between="") or {})},
        "finish_reason": FINISH_REASONS.get(served.reason, "stop"),
        "logprobs": None,
    }
    return {
        "id": new_id("chatcmpl-"),
        "object": "chat.completion",
        "created": int(served.started),
        "model": body["model"],
        "choices": [choice],
        "usage": served.usage("prompt_tokens", "completion_tokens"),
    }


def record_answer(id: str, endpoint: str, served: ServedAnswer) -> ServedRequest:
    read, written = served.match.cached_tokens, served.written_tokens
    uncached, output = served.fresh_tokens - written, served.fitted.tokens
    plan = CachePlan(read_tokens=read, write_5m_tokens=written, uncached_tokens=uncached)
    return ServedRequest(
        endpoint=endpoint,
        model=served.able.model,
        workspace=served.caller.workspace,
        at=served.started,
        status=200,
        stop_reason=served.reason,
        message_id=id,
        plan=plan,
        output_tokens=output,
        cost=usage_cost(served.able.model, plan.usage(output)),
    )


def _stream(completion: JsonObject, size: int, *, shows_usage: bool) -> Iterator[bytes]:
    shared = {key: completion[key] for key in ("id", "created", "model")}
    choice = completion["choices"][0]
    message = choice["message"]

    def chunk(delta: JsonObject, finish: str | None = None) -> bytes:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}]
        return _data({**shared, "object": "chat.completion.chunk", "choices": choices})

    yield chunk({"role": "assistant", "content": ""})
    for text in slices(message["content"] or "", size):
        yield chunk({"content": text})
    for index, call in enumerate(message.get("tool_calls") or ()):
        function = call["function"]
        opening = {**call, "function": {**function, "arguments": ""}, "index": index}
        yield chunk({"tool_calls": [opening]})
        for part in slices(function["arguments"], size):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
    yield chunk({}, choice["finish_reason"])
    if shows_usage:
        last = {"object": "chat.completion.chunk", "choices": [], "usage": completion["usage"]}
        yield _data({**shared, **last})
    yield b"data: [DONE]\n\n"


def _data(body: JsonObject) -> bytes:
    return b"data: %s\n\n" % msgspec.json.encode(body)
