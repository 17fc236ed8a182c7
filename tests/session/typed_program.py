"""A program with the SDKs' types that mypy checks in `make check`. It is never run."""

from anthropic import AsyncAnthropic
from anthropic.types import MessageParam, ToolParam
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam
from openai.types.responses import ResponseInputItemParam

from longhold import Session, Tool


async def theirs(client: AsyncAnthropic, tools: list[ToolParam]) -> None:
    session = Session.open(model="claude-sonnet-5-5", system="Be kind.", tools=tools, client=client)
    messages: list[MessageParam] = [{"role": "user", "content": "hi"}]
    request = await session.follow(messages, tools=tools)
    response = await client.messages.create(**request.kwargs)
    await session.record(response)
    session.user([{"type": "text", "text": "hello"}])
    session.user(response.content)
    for block in response.content:
        if block.type == "tool_use":
            with session.running(block.id):
                session.tool_result(block.id, await session.run_tool(block))


async def others(client: AsyncOpenAI, tools: list[ChatCompletionToolParam]) -> None:
    declared = [Tool(tool, kind="fetch", clearable=True) for tool in tools]
    session = Session.open(model="qwen", tools=declared, client=client, history=True)
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": "hi"}]
    request = await session.follow(messages, tools=tools)
    response = await client.chat.completions.create(**request.kwargs)
    await session.record(response)


async def items(client: AsyncOpenAI) -> None:
    session = Session.open(model="gpt-6-sol", client=client, dialect="responses")
    given: list[ResponseInputItemParam] = [{"role": "user", "content": "hi"}]
    request = await session.follow(given)
    await session.record(await client.responses.create(**request.kwargs))
