"""Chat endpoints through the real SDK, against a server that sends exact bytes."""

from contextlib import asynccontextmanager

import openai
import pytest

from longhold.core.messages import Text, ToolUse
from longhold.core.models.openai import OpenAIModel
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
        "model": "openai/gpt-6-sol",
        "max_tokens": 100,
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "Héllo 🙂"}],
    }
)


def chunk(reason=None, **delta):
    choices = [{"index": 0, "delta": delta, "finish_reason": reason}]
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "gpt",
        "choices": choices,
    }


ANSWER = (
    chunk(role="assistant", content=""),
    chunk(content="Grü"),
    chunk(content="ße 🙂"),
    chunk(
        tool_calls=[
            {
                "index": 0,
                "id": "t1",
                "type": "function",
                "function": {"name": "Read", "arguments": ""},
            }
        ]
    ),
    chunk(tool_calls=[{"index": 0, "function": {"arguments": '{"path": "ä"}'}}]),
    chunk("tool_calls"),
    {
        **chunk(),
        "choices": [],
        "usage": {
            "prompt_tokens": 50,
            "completion_tokens": 7,
            "total_tokens": 57,
            "prompt_tokens_details": {"cached_tokens": 40},
        },
    },
)
CONTENT = (Text(text="Grüße 🙂"), ToolUse(id="t1", name="Read", input={"path": "ä"}))
ERROR = {"error": {"type": "server_error", "code": None, "message": "boom"}}
TOO_LONG = {
    "error": {
        "type": "invalid_request_error",
        "code": "context_length_exceeded",
        "message": "Your input exceeds the context window of this model.",
        "param": "input",
    }
}


@asynccontextmanager
async def model_at(url, **options):
    model = OpenAIModel("openai/gpt-6-sol", base_url=url, api_key="k", **options)
    try:
        yield model
    finally:
        await model.close()


async def ask(wire, request=REQUEST, patience=PATIENCE):
    async with model_at(wire.url) as model:
        return await collect(guard_stream(model.stream(request), patience))


@pytest.mark.parametrize("how", ["whole", "bytewise"])
async def test_an_answer_is_the_same_however_it_is_cut_up(serving, say, how):
    async with serving(getattr(say, how)(*ANSWER, name=False, done=True)) as wire:
        reply = await ask(wire)
    assert reply.content == CONTENT
    assert reply.stop_reason == "tool_use"
    assert (reply.usage.input_tokens, reply.usage.cache_read_tokens) == (10, 40)
    assert reply.request_id == "req_1"


async def test_the_request_is_a_chat_request(serving, say):
    async with serving(say.whole(*ANSWER, name=False, done=True)) as wire:
        await ask(wire)
    assert wire.requests[0] == {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Héllo 🙂"},
        ],
        "model": "gpt-6-sol",
        "max_tokens": 100,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_equal_requests_are_equal_bytes(serving, say):
    async with serving(say.whole(*ANSWER, name=False, done=True)) as wire:
        await ask(wire)
        await ask(wire, Request(kwargs=dict(REQUEST.kwargs)))
    assert wire.bodies[0] == wire.bodies[1]


@pytest.mark.parametrize("how", ["cut", "whole"])
@pytest.mark.parametrize("at", range(1, 5))
async def test_an_answer_that_stops_midway_breaks_the_stream(serving, say, how, at):
    async with serving(getattr(say, how)(*ANSWER[:at], name=False)) as wire:
        with pytest.raises(StreamBroken):
            await ask(wire)


async def test_a_stall_breaks_the_stream(serving, say):
    async with serving(say.stalled(*ANSWER[:3], name=False)) as wire:
        with pytest.raises(StreamBroken, match=r"no event for 0\.3 s"):
            await ask(wire, patience=Patience(stall_seconds=0.3))


@pytest.mark.parametrize(
    ("before", "error", "kind"),
    [
        ((), ERROR, ModelUnavailable),
        (ANSWER[:2], ERROR, StreamBroken),
        ((), TOO_LONG, PromptTooLong),
        (ANSWER[:2], TOO_LONG, PromptTooLong),
    ],
)
async def test_an_error_after_a_200_has_the_right_type(serving, say, before, error, kind):
    async with serving(say.whole(*before, error, name=False)) as wire:
        with pytest.raises(kind):
            await ask(wire)


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, TOO_LONG, PromptTooLong),
        (400, {"error": {"message": "bad"}}, RequestRejected),
        (401, {"error": {"message": "no"}}, AuthenticationFailed),
        (404, {"error": {"message": "no such model"}}, RequestRejected),
        (429, {"error": {"message": "slow", "code": "rate_limit_exceeded"}}, ModelUnavailable),
        (429, {"error": {"message": "pay", "code": "insufficient_quota"}}, AuthenticationFailed),
        (503, "busy", ModelUnavailable),
    ],
)
async def test_a_status_has_the_right_type_and_is_not_retried_by_the_sdk(
    serving, say, status, body, kind
):
    async with serving(say.status(status, body)) as wire:
        with pytest.raises(kind) as caught:
            await ask(wire)
    assert caught.value.status == status
    assert len(wire.bodies) == 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {nope\n\n",
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: \xff\xfe\n\n",
        b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n<html></html>",
        b"not http at all\r\n\r\n",
    ],
)
async def test_garbage_is_a_typed_error(serving, say, data):
    async with serving(say.raw(data)) as wire:
        with pytest.raises(ModelError):
            await ask(wire)


async def test_a_client_of_the_callers_is_used_and_left_open(serving, say):
    answer = say.whole(*ANSWER, name=False, done=True)
    async with (
        serving(say.status(503, "busy"), answer) as wire,
        openai.AsyncOpenAI(base_url=wire.url, api_key="k") as client,
    ):
        model = OpenAIModel("gpt-6-sol", client=client)
        with pytest.raises(ModelUnavailable):
            await collect(model.stream(REQUEST))
        assert len(wire.bodies) == 1
        await model.close()
        assert (await collect(model.stream(REQUEST))).content == CONTENT


async def test_such_endpoints_do_not_count(serving, say):
    async with serving(say.status(500, "x")) as wire, model_at(wire.url) as model:
        assert await model.count(REQUEST) is None
    assert wire.bodies == []


def test_a_missing_key_is_an_authentication_error(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_ADMIN_KEY", raising=False)
    with pytest.raises(AuthenticationFailed):
        OpenAIModel("gpt-6-sol")


async def test_a_server_on_this_machine_needs_no_key(monkeypatch, serving, say):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    async with serving(say.whole(*ANSWER, name=False, done=True)) as wire:
        model = OpenAIModel("qwen", base_url=wire.url)
        assert (await collect(model.stream(REQUEST))).content == CONTENT
        await model.close()
