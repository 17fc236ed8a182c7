"""The Messages API through the real SDK, against a server that sends exact bytes."""

import json
from contextlib import asynccontextmanager

import anthropic
import pytest

from longhold.core.messages import Text, ToolUse
from longhold.core.models.anthropic import AnthropicModel, wire_name
from longhold.core.models.protocol import Request, collect
from longhold.core.models.steady import PATIENCE, Patience, guard_stream
from longhold.errors import (
    AuthenticationFailed,
    ModelError,
    ModelUnavailable,
    PromptTooLong,
    RequestRejected,
    StreamBroken,
)

REQUEST = Request(
    kwargs={
        "model": "claude-sonnet-5-5",
        "max_tokens": 100,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
        "tools": [{"name": "Read", "input_schema": {"type": "object", "properties": {}}}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Héllo 🙂"}]}],
    }
)
START = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [],
        "model": "claude-sonnet-5-5",
        "stop_reason": None,
        "usage": {"input_tokens": 5, "output_tokens": 1},
    },
}
ANSWER = (
    START,
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "ping"},
    {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": "Grüße\u2028🙂"},
    },
    {"type": "content_block_stop", "index": 0},
    {
        "type": "content_block_start",
        "index": 1,
        "content_block": {"type": "tool_use", "id": "t1", "name": "Read", "input": {}},
    },
    {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "input_json_delta", "partial_json": '{"path": "ä"}'},
    },
    {"type": "content_block_stop", "index": 1},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 9},
    },
    {"type": "message_stop"},
)
CONTENT = (Text(text="Grüße\u2028🙂"), ToolUse(id="t1", name="Read", input={"path": "ä"}))
OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
TOO_LONG = {
    "type": "error",
    "error": {
        "type": "invalid_request_error",
        "message": "prompt is too long: 200251 tokens > 200000 maximum",
    },
}
QUICK = Patience(stall_seconds=0.3)


@asynccontextmanager
async def model_at(url, **options):
    model = AnthropicModel("claude-sonnet-5-5", base_url=url, api_key="k", **options)
    try:
        yield model
    finally:
        await model.close()


async def ask(wire, request=REQUEST, patience=PATIENCE):
    async with model_at(wire.url) as model:
        return await collect(guard_stream(model.stream(request), patience))


@pytest.mark.parametrize("how", ["whole", "bytewise"])
async def test_an_answer_is_the_same_however_it_is_cut_up(serving, say, how):
    async with serving(getattr(say, how)(*ANSWER)) as wire:
        reply = await ask(wire)
    assert reply.content == CONTENT
    assert reply.stop_reason == "tool_use"
    assert reply.request_id == "req_1"
    assert reply.usage.output_tokens == 9


@pytest.mark.parametrize("at", range(1, len(ANSWER) - 1))
async def test_a_dropped_connection_breaks_the_stream_wherever_it_falls(serving, say, at):
    async with serving(say.cut(*ANSWER[:at])) as wire:
        with pytest.raises(StreamBroken):
            await ask(wire)


@pytest.mark.parametrize("at", range(len(ANSWER) - 1))
async def test_a_response_that_ends_early_breaks_the_stream(serving, say, at):
    async with serving(say.whole(*ANSWER[:at])) as wire:
        with pytest.raises(StreamBroken):
            await ask(wire)


async def test_an_end_without_its_last_event_is_still_the_answer(serving, say):
    async with serving(say.whole(*ANSWER[:-1])) as wire:
        assert (await ask(wire)).content == CONTENT


@pytest.mark.parametrize("at", [1, 3, 7])
async def test_a_stall_breaks_the_stream(serving, say, at):
    async with serving(say.stalled(*ANSWER[:at])) as wire:
        with pytest.raises(StreamBroken, match=r"no event for 0\.3 s"):
            await ask(wire, patience=QUICK)


async def test_a_server_that_never_answers_is_unavailable(serving, say):
    async with serving(say.stalled()) as wire:
        with pytest.raises(ModelUnavailable, match=r"no event for 0\.3 s"):
            await ask(wire, patience=Patience(first_event_seconds=0.3))


async def test_a_silent_socket_is_given_up_without_any_wrapper(serving, say):
    async with (
        serving(say.stalled(*ANSWER[:3])) as wire,
        model_at(wire.url, timeout_seconds=0.2) as model,
    ):
        with pytest.raises(StreamBroken, match="silent"):
            await collect(model.stream(REQUEST))


async def test_pings_do_not_keep_a_dead_answer_alive(serving, say):
    endless = Patience(answer_seconds=1.0)
    async with serving(say.pinging(START)) as wire, model_at(wire.url) as model:
        with pytest.raises(StreamBroken, match="took too long"):
            await collect(guard_stream(model.stream(REQUEST), endless))


async def test_a_server_that_keeps_the_response_open_after_the_end_is_not_waited_for(serving, say):
    async with serving(say.stalled(*ANSWER)) as wire:
        assert (await ask(wire)).content == CONTENT


STRUCTURE = [at for at, event in enumerate(ANSWER) if event["type"] != "content_block_delta"]
"""A repeated delta looks like text that repeats itself: nobody can tell."""


@pytest.mark.parametrize("at", STRUCTURE)
async def test_a_repeated_event_gives_the_right_message(serving, say, at):
    async with serving(say.whole(*ANSWER[: at + 1], *ANSWER[at:])) as wire:
        assert (await ask(wire)).content == CONTENT


@pytest.mark.parametrize(
    ("before", "error", "kind"),
    [
        ((), OVERLOADED, ModelUnavailable),
        (ANSWER[:1], OVERLOADED, StreamBroken),
        (ANSWER[:4], OVERLOADED, StreamBroken),
        ((), TOO_LONG, PromptTooLong),
        (ANSWER[:1], TOO_LONG, PromptTooLong),
    ],
)
async def test_an_error_after_a_200_has_the_right_type(serving, say, before, error, kind):
    async with serving(say.whole(*before, error)) as wire:
        with pytest.raises(kind):
            await ask(wire)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, RequestRejected),
        (401, AuthenticationFailed),
        (403, AuthenticationFailed),
        (404, RequestRejected),
        (413, PromptTooLong),
        (429, ModelUnavailable),
        (500, ModelUnavailable),
        (529, ModelUnavailable),
    ],
)
async def test_a_status_has_the_right_type_and_is_not_retried_by_the_sdk(
    serving, say, status, kind
):
    body = {"type": "error", "error": {"type": "x", "message": "no"}, "request_id": "req_2"}
    async with serving(say.status(status, body, retry_after="7")) as wire:
        with pytest.raises(kind) as caught:
            await ask(wire)
    assert caught.value.status == status
    assert caught.value.request_id == "req_1"
    assert len(wire.bodies) == 1


async def test_too_long_carries_the_providers_numbers(serving, say):
    async with serving(say.status(400, TOO_LONG)) as wire:
        with pytest.raises(PromptTooLong) as caught:
            await ask(wire)
    assert (caught.value.needed_tokens, caught.value.allowed_tokens) == (200251, 200000)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: message_start\ndata: {nope\n\n",
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nevent: message_start\ndata: \xff\xfe\n\n",
        b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n<html>hello</html>",
        b"HTTP/1.1 502 Bad Gateway\r\ncontent-type: text/html\r\n\r\n<html>bad</html>",
        b"not http at all\r\n\r\n",
    ],
)
async def test_garbage_is_a_typed_error(serving, say, data):
    async with serving(say.raw(data)) as wire:
        with pytest.raises(ModelError):
            await ask(wire)


async def test_a_page_instead_of_a_stream_is_not_worth_trying_again(serving, say):
    page = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n<html></html>"
    async with serving(say.raw(page)) as wire:
        with pytest.raises(RequestRejected, match="base_url"):
            await ask(wire)


async def test_nobody_listening_is_unavailable(unused_tcp_port):
    async with model_at(f"http://127.0.0.1:{unused_tcp_port}") as model:
        with pytest.raises(ModelUnavailable, match="connection failed"):
            await collect(model.stream(REQUEST))


async def test_equal_requests_are_equal_bytes(serving, say):
    rebuilt = Request(kwargs=json.loads(json.dumps(REQUEST.kwargs)))
    async with serving(say.whole(*ANSWER)) as wire:
        await ask(wire)
        await ask(wire, rebuilt)
    assert wire.bodies[0] == wire.bodies[1]


async def test_a_longer_conversation_extends_the_bytes_of_the_shorter(serving, say):
    more = [{"role": "assistant", "content": [{"type": "text", "text": "Hi"}]}]
    longer = Request(kwargs={**REQUEST.kwargs, "messages": [*REQUEST.kwargs["messages"], *more]})
    async with serving(say.whole(*ANSWER)) as wire:
        await ask(wire)
        await ask(wire, longer)
    first, second = wire.bodies
    sent = first[: first.index(b'],"model"')]
    assert second.startswith(sent)
    assert first[first.index(b'"system"') :] == second[second.index(b'"system"') :]


async def test_fields_the_sdk_does_not_know_are_sent(serving, say):
    request = Request(kwargs={**REQUEST.kwargs, "novelty": {"b": 1, "a": 2}})
    async with serving(say.whole(*ANSWER)) as wire:
        await ask(wire, request)
    assert wire.requests[0]["novelty"] == {"b": 1, "a": 2}


async def test_betas_go_by_header(serving, say):
    edits = {"edits": [{"type": "clear_tool_uses_20250919"}]}
    request = Request(
        kwargs={**REQUEST.kwargs, "context_management": edits},
        betas=("context-management-2025-06-27", "x-1"),
    )
    async with serving(say.whole(*ANSWER)) as wire:
        await ask(wire, request)
    assert "anthropic-beta: context-management-2025-06-27,x-1" in wire.heads[0].lower()
    assert wire.heads[0].startswith("POST /v1/messages ")
    assert wire.requests[0]["context_management"] == edits


async def test_a_connection_is_used_again(serving, say):
    async with serving(say.whole(*ANSWER)) as wire, model_at(wire.url) as model:
        await collect(guard_stream(model.stream(REQUEST)))
        await collect(guard_stream(model.stream(REQUEST)))
    assert (len(wire.bodies), wire.connections) == (2, 1)


async def test_a_client_of_the_callers_is_used_and_left_open(serving, say):
    async with (
        serving(say.status(529, OVERLOADED), say.whole(*ANSWER)) as wire,
        anthropic.AsyncAnthropic(base_url=wire.url, api_key="k") as client,
    ):
        model = AnthropicModel("claude-sonnet-5-5", client=client)
        with pytest.raises(ModelUnavailable):
            await collect(model.stream(REQUEST))
        assert len(wire.bodies) == 1
        await model.close()
        assert (await collect(model.stream(REQUEST))).content == CONTENT


async def test_counting_sends_only_the_prompt(serving, say):
    async with serving(say.status(200, {"input_tokens": 42})) as wire, model_at(wire.url) as model:
        assert await model.count(REQUEST) == 42
    assert "max_tokens" not in wire.requests[0]
    assert wire.heads[0].startswith("POST /v1/messages/count_tokens")


def test_a_missing_key_says_which_one(monkeypatch, tmp_path):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.delenv("ANTHROPIC_AUTH_TOKEN", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(AuthenticationFailed, match="ANTHROPIC_API_KEY"):
        AnthropicModel("claude-sonnet-5-5", base_url="https://example.invalid")


@pytest.mark.parametrize(
    "name", ["claude-x", "claude-x[1m]", "anthropic/claude-x", "simulated/claude-x"]
)
def test_a_name_on_the_wire_has_no_routing(name):
    assert wire_name(name) == "claude-x"
