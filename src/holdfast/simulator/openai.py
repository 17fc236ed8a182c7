"""The chat-completions endpoint: the same brains and clock, another provider's rules.

Prompts are cached automatically by prefix; usage counts the cached tokens within the prompt's,
as that API does. Only what an agent needs is supported: text, images by count, tools, streams.
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b

import msgspec

from holdfast.models.capabilities import Capabilities, capabilities, known_models
from holdfast.models.prices import cost
from holdfast.simulator.answers import FittedAnswer, fit, natural_reason, stop_at_sequence
from holdfast.simulator.brains import BrainRequest
from holdfast.simulator.chat_shapes import (
    chat_message,
    check_chat,
    conversation_of,
    system_of,
    tools_of,
)
from holdfast.simulator.errors import ApiError, invalid
from holdfast.simulator.faults import InjectedFault
from holdfast.simulator.ids import new_id
from holdfast.simulator.pieces import PieceMeter
from holdfast.simulator.prefix_cache import MINIMUM_TOKENS, PrefixMatch
from holdfast.simulator.request import Caller, JsonObject
from holdfast.simulator.simulation import Simulation
from holdfast.simulator.stats import ServedRequest
from holdfast.simulator.stream import slices
from holdfast.simulator.tokens import encode

FINISH_REASONS = {"tool_use": "tool_calls", "max_tokens": "length", "refusal": "content_filter"}
CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}
OVERFLOW = (
    "Your input exceeds the context window of this model. Please adjust your input and try again."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatReply:
    """A complete chat response, not yet sent."""

    chunks: list[bytes]
    is_stream: bool
    match: PrefixMatch
    record: ServedRequest


class ChatEndpoint:
    """Chat completions over a simulation."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._encoded: dict[bytes, array[int]] = {}

    async def create(self, body: JsonObject, caller: Caller) -> ChatReply:
        """Answer a chat request, or raise that API's refusal."""
        started = self._simulation.clock.now()
        able = self._checked(body)
        tokens = self._tokens(body)
        match = self._simulation.prefixes.look_up(
            f"{caller.workspace}|{able.model}", tokens, started
        )
        if match.prompt_tokens > able.window_tokens:
            raise invalid(OVERFLOW, "context_length_exceeded")
        limit = body.get("max_completion_tokens") or body.get("max_tokens")
        room = min(int(limit or able.max_output_tokens), able.window_tokens - match.prompt_tokens)
        request = _brain_request(body, room)
        answer = await self._simulation.ask(request)
        stop = body.get("stop") or ()
        spoken = [block for block in answer.blocks if block["type"] != "thinking"]
        cut, _ = stop_at_sequence(spoken, [stop] if isinstance(stop, str) else list(stop))
        fitted = fit(cut, room, PieceMeter(self._simulation.bench.counter, able.tokenizer_scale))
        reason = "max_tokens" if fitted.is_cut else answer.stop_reason or natural_reason(cut)
        served = _ServedAnswer(
            match=match,
            fitted=fitted,
            reason=reason,
            started=started,
            is_written=able.model in known_models() and match.prompt_tokens >= MINIMUM_TOKENS,
        )
        return self._reply(body, caller, served)

    def begin(self, reply: ChatReply, fault: InjectedFault | None) -> None:
        """Record that a response's first byte is sent."""
        self._simulation.prefixes.commit(reply.match, self._simulation.clock.now())
        self._simulation.stats.add(replace(reply.record, fault=fault.name if fault else None))

    def _checked(self, body: JsonObject) -> Capabilities:
        for name in ("model", "messages"):
            if name not in body:
                raise invalid(
                    f"Missing required parameter: '{name}'.", "missing_required_parameter"
                )
        able = capabilities(str(body["model"]))
        is_known = able.model in known_models() or able.family == "simulator"
        if not is_known and not self._simulation.settings.accepts_unknown_models:
            raise ApiError(404, f"The model `{body['model']}` does not exist")
        check_chat(body["messages"])
        return able

    def _tokens(self, body: JsonObject) -> "array[int]":
        """Encode tools and messages, each remembered by its digest."""
        tokens = array("I")
        for part in (*(body.get("tools") or ()), *body["messages"]):
            raw = msgspec.json.encode(part)
            key = blake2b(raw, digest_size=16).digest()
            if key not in self._encoded:
                if len(self._encoded) >= self._simulation.settings.token_memo_blocks:
                    self._encoded.clear()
                self._encoded[key] = array("I", encode(raw.decode()))
            tokens.extend(self._encoded[key])
        return tokens

    def _reply(self, body: JsonObject, caller: Caller, served: "_ServedAnswer") -> ChatReply:
        completion = _completion(body, served)
        is_stream = bool(body.get("stream"))
        options = body.get("stream_options") or {}
        size = self._simulation.settings.delta_chars
        chunks = (
            list(_stream(completion, size, shows_usage=bool(options.get("include_usage"))))
            if is_stream
            else [msgspec.json.encode(completion)]
        )
        return ChatReply(
            chunks=chunks,
            is_stream=is_stream,
            match=served.match,
            record=_record(completion, caller, served),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ServedAnswer:
    """One answered request, before it is written in either shape."""

    match: PrefixMatch
    fitted: FittedAnswer
    reason: str
    started: float
    is_written: bool
    """Whether new prefix tokens are billed as cache writes."""

    @property
    def fresh_tokens(self) -> int:
        """Count the prompt's tokens that were not cached."""
        return self.match.prompt_tokens - self.match.cached_tokens

    @property
    def written_tokens(self) -> int:
        """Count the tokens billed as cache writes."""
        return self.fresh_tokens if self.is_written else 0


def openai_error(error: ApiError) -> JsonObject:
    """Build that API's error body."""
    kind = "server_error" if error.status >= 500 else "invalid_request_error"
    code = error.code or CODES.get(error.status)
    param = "messages" if code == "context_length_exceeded" else None
    return {"error": {"message": error.message, "type": kind, "param": param, "code": code}}


def with_error_event(chunks: list[bytes], fault: InjectedFault) -> list[bytes]:
    """End a stream with an error, as that API does after a 200."""
    return [*chunks[: fault.after_events], _data(openai_error(fault.error()))]


def _brain_request(body: JsonObject, room: int) -> BrainRequest:
    choice = body.get("tool_choice")
    forced = "any" if choice == "required" else None
    if isinstance(choice, dict):
        forced = (choice.get("function") or {}).get("name")
    return BrainRequest(
        model=str(body["model"]),
        system=system_of(body["messages"]),
        tools=tools_of(body.get("tools") or ()),
        messages=conversation_of(body["messages"]),
        max_tokens=room,
        forced_tool=forced,
    )


def _completion(body: JsonObject, served: _ServedAnswer) -> JsonObject:
    blocks = [
        {**b, "id": b.get("id") or new_id("call_")} if b["type"] == "tool_use" else b
        for b in served.fitted.blocks
    ]
    choice = {
        "index": 0,
        "message": chat_message(blocks),
        "finish_reason": FINISH_REASONS.get(served.reason, "stop"),
        "logprobs": None,
    }
    return {
        "id": new_id("chatcmpl-"),
        "object": "chat.completion",
        "created": int(served.started),
        "model": body["model"],
        "choices": [choice],
        "usage": _usage(served),
    }


def _usage(served: _ServedAnswer) -> JsonObject:
    prompt, output = served.match.prompt_tokens, served.fitted.tokens
    return {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": {
            "cached_tokens": served.match.cached_tokens,
            "cache_write_tokens": served.written_tokens,
        },
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def _record(completion: JsonObject, caller: Caller, served: _ServedAnswer) -> ServedRequest:
    uncached = served.fresh_tokens - served.written_tokens
    return ServedRequest(
        endpoint="chat/completions",
        model=str(completion["model"]),
        workspace=caller.workspace,
        at=served.started,
        status=200,
        stop_reason=served.reason,
        message_id=completion["id"],
        read_tokens=served.match.cached_tokens,
        write_5m_tokens=served.written_tokens,
        uncached_tokens=uncached,
        output_tokens=served.fitted.tokens,
        cost=cost(
            str(completion["model"]),
            read_tokens=served.match.cached_tokens,
            write_5m_tokens=served.written_tokens,
            uncached_tokens=uncached,
            output_tokens=served.fitted.tokens,
        ),
    )


def _stream(completion: JsonObject, size: int, *, shows_usage: bool) -> Iterator[bytes]:
    """Render a completion as chunks: role, content, tool calls, finish, usage, DONE."""
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
