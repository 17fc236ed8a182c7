"""Anything a provider sends becomes a valid answer or a typed error."""

import copy
import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longhold.core.log.entries import AnyEntry, Replied, Said
from longhold.core.messages import INVALID_INPUT, Text, ToolUse
from longhold.core.messages.rules import violations
from longhold.core.models.anthropic import AnthropicModel
from longhold.core.models.assemble import Assembly, ChatAssembly
from longhold.core.models.clients import reply_from
from longhold.core.models.openai import OpenAIModel
from longhold.core.models.protocol import Finished, Request, collect
from longhold.core.turn.answer_writer import AnswerWriter
from longhold.core.view import fold
from longhold.core.view.block_roles import with_own_ids
from longhold.core.wire.messages import MOST_DEPTH, guard_reading, parse_input, tame
from longhold.errors import ModelError

DEEP = json.loads("[" * 900 + "]" * 900)
ODD = st.sampled_from(
    [
        *(None, True, -1, 0, 3.5, float("nan"), float("inf"), 10**400, "", "12", "x", [], {}),
        *([None], ["x"], {"a": [1]}, {"type": "text"}, DEEP, b"bytes"),
    ]
)

STREAM = [
    {"type": "message_start", "message": {"id": "msg_1", "model": "m", "content": [],
     "usage": {"input_tokens": 9, "cache_creation": {"ephemeral_5m_input_tokens": 1}}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1,
     "content_block": {"type": "tool_use", "id": "t1", "name": "Read", "input": {}}},
    {"type": "content_block_delta", "index": 1,
     "delta": {"type": "input_json_delta", "partial_json": '{"path": "a"}'}},
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None},
     "usage": {"output_tokens": 5}, "context_management": {"applied_edits": [{"type": "x"}]}},
    {"type": "message_stop"},
]  # fmt: skip
CALL = {"index": 0, "id": "c1", "function": {"name": "Read", "arguments": '{"path": "a"}'}}
CHUNKS = [
    {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": "hi"}}]},
    {"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [CALL]}}]},
    {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}],
     "usage": {"prompt_tokens": 9, "completion_tokens": 5,
               "prompt_tokens_details": {"cached_tokens": 2}}},
]  # fmt: skip
MESSAGE = {"id": "msg_1", "role": "assistant", "model": "m", "stop_reason": "end_turn",
           "content": [{"type": "text", "text": "hi"},
                       {"type": "tool_use", "id": "t", "name": "Read", "input": {"a": 1}}],
           "usage": {"input_tokens": 9, "output_tokens": 5}}  # fmt: skip
COMPLETION = {"id": "c", "model": "m", "usage": {"prompt_tokens": 9},
              "choices": [{"finish_reason": "stop",
                           "message": {"content": "hi", "tool_calls": [CALL]}}]}  # fmt: skip


def places(value, path=()):
    """Every place of a JSON value, the whole excepted."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in inner:
        yield (*path, key)
        if isinstance(one, dict | list):
            yield from places(one, (*path, key))


def spoilt(value, path, odd):
    value = copy.deepcopy(value)
    inner = value
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = odd
    return value


def read(assembly, events):
    made = []
    for event in events:
        with guard_reading():
            made += assembly.feed(tame(event))
    with guard_reading():
        made += assembly.end()
    return next(event.reply for event in made if isinstance(event, Finished))


def keep(reply):
    """Write an answer down, read it back, and look at what the model would see."""
    entries = []

    def record(entry):
        line = msgspec.json.encode(with_own_ids(entry, ()))
        entries.append(msgspec.structs.replace(msgspec.json.decode(line, type=AnyEntry), n=2))
        return entries[-1]

    AnswerWriter(record).write(reply)
    [entry] = entries
    assert isinstance(entry, Replied)
    view = fold([Said(n=1, content=(Text(text="go"),)), entry])
    assert violations(view.messages()) == []


@pytest.mark.parametrize("whole", [STREAM, CHUNKS], ids=["messages", "chat"])
@given(data=st.data())
@settings(max_examples=settings.default.max_examples * 5 // 2, deadline=None)
def test_a_stream_with_odd_fields_is_an_answer_or_a_typed_error(whole, data):
    events = whole
    for path in data.draw(st.lists(st.sampled_from(list(places(whole))), min_size=1, max_size=3)):
        try:
            events = spoilt(events, path, data.draw(ODD))
        except (KeyError, IndexError, TypeError):
            continue  # an earlier one replaced what this place was in
    assembly = Assembly() if whole is STREAM else ChatAssembly()
    events = [event for event in events if isinstance(event, dict)]
    try:
        reply = read(assembly, events)
    except ModelError:
        return
    keep(reply)


@pytest.mark.parametrize("whole", [MESSAGE, COMPLETION], ids=["message", "completion"])
@given(data=st.data())
@settings(max_examples=settings.default.max_examples * 5 // 2, deadline=None)
def test_a_whole_answer_with_odd_fields_is_kept_or_refused(whole, data):
    path = data.draw(st.sampled_from(list(places(whole))))
    try:
        reply = reply_from(spoilt(whole, path, data.draw(ODD)))
    except ModelError:
        return
    keep(reply)


@pytest.mark.parametrize("usage", ["none", [1, 2], {"input_tokens": "many"}, {"input_tokens": []}])
def test_an_odd_usage_leaves_the_answer(usage):
    events = spoilt(STREAM, (0, "message", "usage"), usage)
    reply = read(Assembly(), events)
    assert [type(block) for block in reply.content] == [Text, ToolUse]
    assert reply.usage.input_tokens == 0
    assert reply.usage.output_tokens == 5


@pytest.mark.parametrize("depth", [MOST_DEPTH + 1, 3_000, 200_000])
def test_input_that_is_nested_too_deeply_is_kept_as_text(depth):
    text = '{"a":' + "[" * depth + "]" * depth + "}"
    assert parse_input(text) == {INVALID_INPUT: text}


@pytest.mark.parametrize("model", [AnthropicModel, OpenAIModel])
async def test_odd_answers_over_http(serving, say, model):
    text = '{"a":' + "[" * 3_000 + "]" * 3_000 + "}"
    if model is AnthropicModel:
        events = spoilt(STREAM, (5, "delta", "partial_json"), text)
        events, options = spoilt(events, (7, "usage"), "none"), {}
    else:
        call = spoilt(CALL, ("function", "arguments"), text)
        events = spoilt(CHUNKS, (1, "choices", 0, "delta", "tool_calls", 0), call)
        events = spoilt(events, (2, "usage", "prompt_tokens"), "9")
        options = {"name": False, "done": True}
    async with serving(say.whole(*events, **options)) as wire:
        one = model("m", base_url=wire.url, api_key="k")
        kwargs = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
        reply = await collect(one.stream(Request(kwargs=kwargs)))
        await one.close()
    [use] = [block for block in reply.content if isinstance(block, ToolUse)]
    assert use.input == {INVALID_INPUT: text}
    keep(reply)
