"""Requests in the dialect of the program's client: chat endpoints and Responses."""

import json

import pytest
from openai import AsyncOpenAI, OpenAI

from chat_servers import MODEL, SERVERS, SILENT, WINDOW, serving
from longhold import Session
from longhold.core.log.entries import Configured
from longhold.errors import InvalidArgument
from seen import texts

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
CHAT_TOOL = {
    "type": "function",
    "function": {"name": "add", "description": "adds", "parameters": SCHEMA},
}
ITEM_TOOL = {"type": "function", "name": "add", "description": "adds", "parameters": SCHEMA}
TOOL = {"name": "add", "description": "adds", "input_schema": SCHEMA}


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("tool", [CHAT_TOOL, TOOL, ITEM_TOOL], ids=["chat", "messages", "item"])
async def test_a_chat_server_works_and_says_its_window(server, tool, tmp_path):
    with serving(SERVERS[server]) as (url, came):
        async with AsyncOpenAI(base_url=url, api_key="x", max_retries=0) as client:
            session = Session.open(
                model=MODEL, tools=[tool], system="Add.", client=client, directory=tmp_path
            )
            async with session:
                session.user("What is 2 + 3?")
                request = await session.prepare()
                response = await client.chat.completions.create(**request.kwargs)
                await session.record(response)
                [call] = response.choices[0].message.tool_calls
                session.tool_result(call.id, "5")
                request = await session.prepare()
                response = await client.chat.completions.create(**request.kwargs)
                await session.record(response)
                assert texts(session)[-1] == "It is 5."
                assert session.fullness().window.limit_tokens == WINDOW
    sent = [body for path, body in came if path.endswith("completions")]
    assert sent[0]["tools"] == [CHAT_TOOL]
    assert sent[0]["messages"][0] == {"role": "system", "content": "Add."}
    assert sent[1]["messages"][: len(sent[0]["messages"])] == sent[0]["messages"]
    assert 0 < sent[0]["max_tokens"] <= WINDOW // 4


async def test_the_window_a_server_said_is_kept(tmp_path):
    with serving(SERVERS["vllm"]) as (url, _):
        async with AsyncOpenAI(base_url=url, api_key="x", max_retries=0) as client:
            with Session.open(model=MODEL, client=client, directory=tmp_path) as session:
                session.user("hi")
                await session.prepare()
    with Session.resume(session.id) as again:
        assert again.fullness().window.limit_tokens == WINDOW
        request = await again.prepare()
        assert request.kwargs["messages"] == [{"role": "user", "content": "hi"}]


async def test_a_window_that_nobody_knows_is_warned_about_once(tmp_path):
    with serving(SILENT) as (url, _):
        async with AsyncOpenAI(base_url=url, api_key="x", max_retries=0) as client:
            with Session.open(model=MODEL, client=client, directory=tmp_path) as session:
                session.user("hi")
                with pytest.warns(UserWarning, match=r"'qwen3-8b' is unknown.*give window="):
                    await session.prepare()
                await session.prepare()
            with Session.open(
                model=MODEL, client=client, window=9_000, directory=tmp_path
            ) as session:
                session.user("hi")
                await session.prepare()
                assert session.fullness().window.limit_tokens == 9_000


async def test_a_synchronous_client_is_asked_too(tmp_path):
    with (
        serving(SERVERS["openrouter"]) as (url, _),
        OpenAI(base_url=url, api_key="x") as client,
        Session.open(model=MODEL, client=client, directory=tmp_path) as session,
    ):
        session.user("hi")
        await session.prepare()
        assert session.fullness().window.limit_tokens == WINDOW


async def test_a_chat_list_is_followed(tmp_path):
    with serving(SERVERS["vllm"]) as (url, came):
        async with AsyncOpenAI(base_url=url, api_key="x", max_retries=0) as client:
            with Session.open(model=MODEL, client=client, directory=tmp_path) as session:
                messages = [
                    {"role": "system", "content": "Add."},
                    {"role": "user", "content": "What is 2 + 3?"},
                ]
                request = await session.follow(messages, tools=[CHAT_TOOL])
                response = await client.chat.completions.create(**request.kwargs)
                await session.record(response)
                answer = response.choices[0].message
                messages.append(answer)  # an object of the SDK, as its examples do it
                [call] = answer.tool_calls
                messages.append({"role": "tool", "tool_call_id": call.id, "content": "5"})
                request = await session.follow(messages, tools=[CHAT_TOOL])
                assert request.kwargs["messages"] == [
                    {"role": "system", "content": "Add."},
                    {"role": "user", "content": "What is 2 + 3?"},
                    {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [
                            {
                                "id": "call_0",
                                "type": "function",
                                "function": {"name": "add", "arguments": '{"a":2,"b":3}'},
                            }
                        ],
                    },
                    {"role": "tool", "tool_call_id": "call_0", "content": "5"},
                ]
    assert len(came) == 1


async def test_items_of_the_responses_endpoint_are_followed(tmp_path):
    with serving(SERVERS["vllm"]) as (url, _):
        async with AsyncOpenAI(base_url=url, api_key="x", max_retries=0) as client:
            with Session.open(
                model=MODEL, client=client, dialect="responses", directory=tmp_path
            ) as session:
                items = [{"role": "user", "content": "What is 2 + 3?"}]
                request = await session.follow(items, system="Add.", tools=[ITEM_TOOL])
                assert request.kwargs["instructions"] == "Add."
                assert request.kwargs["tools"] == [ITEM_TOOL]
                response = await client.responses.create(**request.kwargs)
                await session.record(response)
                assert session.view.reported.usage.cache_read_tokens == 40
                items += response.output
                call = response.output[-1]
                items.append(
                    {"type": "function_call_output", "call_id": call.call_id, "output": "5"}
                )
                request = await session.follow(items)
                sent = request.kwargs["input"]
                assert [item.get("type", "message") for item in sent] == [
                    "message",
                    "reasoning",
                    "function_call",
                    "function_call_output",
                ]
                assert sent[1]["encrypted_content"] == "sealed"
                assert json.loads(sent[2]["arguments"]) == {"a": 2, "b": 3}
                response = await client.responses.create(**request.kwargs)
                await session.record(response)
                assert texts(session)[-1] == "It is 5."


async def test_without_a_client_a_list_says_its_dialect(tmp_path):
    tool = {"role": "tool", "tool_call_id": "c", "content": "5"}
    calls = [{"id": "c", "type": "function", "function": {"name": "add", "arguments": "{}"}}]
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        tool,
    ]
    with Session.open(model=MODEL, window=9_000, directory=tmp_path) as session:
        request = await session.follow(messages)
        assert request.kwargs["messages"][-1] == tool
    with Session.resume(session.id) as again:
        assert (await again.prepare()).kwargs["messages"][-1] == tool
    assert again.view.configured.dialect == "openai"


async def test_one_conversation_goes_on_in_another_dialect(tmp_path):
    with Session.open(model=MODEL, window=9_000, dialect="openai", directory=tmp_path) as session:
        await session.follow(
            [
                {"role": "user", "content": "a"},
                {"role": "assistant", "content": "b"},
                {"role": "user", "content": "c"},
            ]
        )
    with Session.resume(session.id, dialect="anthropic") as again:
        blocks = [{"type": "text", "text": "b"}]
        request = await again.follow(
            [
                {"role": "user", "content": "a"},
                {"role": "assistant", "content": blocks},
                {"role": "user", "content": "c"},
            ]
        )
        assert [entry.dialect for entry in again.view.history if isinstance(entry, Configured)] == [
            "openai",
            "anthropic",
        ]
        assert request.kwargs["messages"][0]["content"][0]["text"] == "a"
        assert len(again.view.items) == 3


def test_an_unknown_dialect_is_named(tmp_path):
    with pytest.raises(
        InvalidArgument, match="dialect: 'cohere' is not a dialect; choose one of anthropic, openai"
    ):
        Session.open(model=MODEL, dialect="cohere", directory=tmp_path)
