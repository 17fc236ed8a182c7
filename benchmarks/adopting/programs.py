"""Five programs as adopters write them, and one without Longhold as a cost baseline.

Each holds one conversation with parallel tools, failing tools, images, one long result, and every
second turn streamed. A turn that does not end as expected ends the conversation, which then counts
as stuck.
"""

import asyncio
import base64
import json
import struct
import zlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from adopting.provider import LOCAL, TOOLS, WINDOW
from longhold import Session, Tool

MODEL = "claude-sonnet-4-6"
SYSTEM = "You are the billing clerk of a firm. " + "Follow the rules of the house. " * 80
KINDS = {"lookup": "read", "fetch_page": "fetch", "write_row": "write"}
SCHEMA = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}
DEFINITIONS = [
    Tool({"name": name, "description": f"{name} a row", "input_schema": SCHEMA}, kind=KINDS[name])
    for name in TOOLS
]
LONG_TURN = "33."
"""The turn of whose results each has 30,000 characters."""
CONVERSATION = "books"
Talk = Callable[[str, int, Path], Awaitable[int]]
"""A program: takes the provider's address, the turns and a directory; returns the turns it did."""


def _make_png() -> str:
    def chunk(kind: bytes, data: bytes) -> bytes:
        checked = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + checked

    rows = b"".join(b"\0" + b"\xff\0\0" * 8 for _ in range(8))
    head = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + parts).decode()


PNG = _make_png()


def question(turn: int) -> str:
    tools, rounds = (1 + turn % 3, 1 + (turn % 5 == 0)) if turn % 4 else (0, 0)
    head = f"[[turn {turn} tools={tools} rounds={rounds}]]"
    return f"{head} Note that ticket T-{turn * 37} costs {turn * 13} EUR. " + "More of it. " * 18


def has_image(turn: int) -> bool:
    return turn % 17 == 0


def run_tool(key: str) -> str:
    """Look a row up. Some fail."""
    if key.startswith("7") and key.endswith(".1"):
        raise ValueError(f"boom {key}")
    return f"row {key}: " + f"value{key} " * ((30_000 if key.startswith(LONG_TURN) else 900) // 10)


def is_done(turn: int, answer: str) -> bool:
    return answer.startswith(f"Turn {turn} is done")


def try_tool(key: str) -> tuple[str, bool]:
    try:
        return run_tool(key), False
    except ValueError as error:
        return str(error), True


async def talk_anthropic(url: str, turns: int, place: Path) -> int:
    """Anthropic's SDK and `prepare`."""
    from anthropic import AsyncAnthropic

    client = AsyncAnthropic(base_url=url, api_key="k1", max_retries=0)
    session = await Session.aopen(
        MODEL, id=CONVERSATION, system=SYSTEM, tools=DEFINITIONS, window=WINDOW, max_tokens=1_000,
        client=client, directory=place,
    )  # fmt: skip

    async def answer(request: dict[str, Any], turn: int) -> Any:
        if turn % 2:
            return await client.messages.create(**request)
        async with client.messages.stream(**request) as stream:
            return await stream.get_final_message()

    async with client, session:
        for turn in range(1, turns + 1):
            image = {"type": "base64", "media_type": "image/png", "data": PNG}
            seen = [{"type": "image", "source": image}] if has_image(turn) else []
            session.user([{"type": "text", "text": question(turn)}, *seen])
            while not session.is_answered:
                request = await session.prepare()
                try:
                    response = await answer(request.kwargs, turn)
                except Exception as error:  # noqa: BLE001 - raised again if nothing helps
                    await session.recover(error)
                    continue
                await session.record(response)
                for call in (block for block in response.content if block.type == "tool_use"):
                    async with session.arunning(call.id):
                        found, is_error = try_tool(call.input["key"])
                    session.tool_result(call.id, found, is_error=is_error)
            if not is_done(turn, response.content[-1].text):
                return turn - 1
    return turns


async def talk_openai(url: str, turns: int, place: Path) -> int:
    """OpenAI's SDK at a server that says its window, and `follow` over the program's own list."""
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="k2", max_retries=0)
    session = await Session.aopen(LOCAL, id=CONVERSATION, client=client, directory=place)
    messages: list[Any] = []
    async with client, session:
        for turn in range(1, turns + 1):
            picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
            seen = [picture] if has_image(turn) else []
            words = [{"type": "text", "text": question(turn)}, *seen]
            messages.append({"role": "user", "content": words})
            while True:
                request = await session.follow(messages, system=SYSTEM, tools=DEFINITIONS)
                try:
                    message = await _complete(client, session, request.kwargs, turn)
                except Exception as error:  # noqa: BLE001 - raised again if nothing helps
                    await session.recover(error)
                    continue
                messages.append(message)
                if not message.get("tool_calls"):
                    break
                for call in message["tool_calls"]:
                    found, _ = try_tool(json.loads(call["function"]["arguments"])["key"])
                    messages.append({"role": "tool", "tool_call_id": call["id"], "content": found})
            if not is_done(turn, message["content"]):
                return turn - 1
    return turns


async def _complete(client: Any, session: Session, request: dict[str, Any], turn: int) -> Any:
    if turn % 2:
        response = await client.chat.completions.create(**request)
        await session.record(response)
        return response.choices[0].message.model_dump(exclude_none=True)
    options = {"stream": True, "stream_options": {"include_usage": True}}
    events = [one async for one in await client.chat.completions.create(**request | options)]
    await session.record(events)
    deltas = [one.choices[0].delta for one in events if one.choices]
    calls: dict[int, Any] = {}
    for part in (part for delta in deltas for part in delta.tool_calls or ()):
        known = {"id": part.id, "type": "function", "function": {"name": "", "arguments": ""}}
        call = calls.setdefault(part.index, known)["function"]
        call["name"] += part.function.name or ""
        call["arguments"] += part.function.arguments or ""
    words = "".join(delta.content or "" for delta in deltas)
    said = {"role": "assistant", "content": words or None}
    return said | ({"tool_calls": list(calls.values())} if calls else {})


async def talk_langchain(url: str, turns: int, place: Path) -> int:
    """A LangChain agent with a checkpointer."""
    from anthropic import AsyncAnthropic

    from longhold.adapters.langchain import LongholdMiddleware

    async with AsyncAnthropic(base_url=url, api_key="k3", max_retries=0) as client:
        longhold = LongholdMiddleware(window=WINDOW, client=client, kinds=KINDS, directory=place)
        try:
            return await _talk_graph(url, turns, [longhold])
        finally:
            longhold.close()


async def talk_langchain_alone(url: str, turns: int, place: Path) -> int:
    """The same agent with LangChain's own summarisation and prompt caching."""
    from langchain.agents.middleware import SummarizationMiddleware
    from langchain_anthropic import ChatAnthropic
    from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware

    model = ChatAnthropic(model=MODEL, base_url=url, api_key="k6", max_tokens=1_000)
    summary = SummarizationMiddleware(model, trigger=("tokens", 20_000), keep=("messages", 20))
    try:
        return await _talk_graph(url, turns, [summary, AnthropicPromptCachingMiddleware()])
    finally:
        await model._async_client.close()


async def _talk_graph(url: str, turns: int, middleware: list[Any]) -> int:
    from langchain.agents import create_agent
    from langchain.agents.middleware import wrap_tool_call
    from langchain_anthropic import ChatAnthropic
    from langchain_core.messages import HumanMessage, ToolMessage
    from langgraph.checkpoint.memory import InMemorySaver

    @wrap_tool_call
    async def report_errors(request: Any, handler: Any) -> Any:
        try:
            return await handler(request)
        except ValueError as error:
            return ToolMessage(str(error), tool_call_id=request.tool_call["id"], status="error")

    model = ChatAnthropic(model=MODEL, base_url=url, api_key="k3", max_tokens=1_000, max_retries=0)
    tools = [_named(name) for name in TOOLS]
    agent = create_agent(
        model,
        tools,
        system_prompt=SYSTEM,
        middleware=[report_errors, *middleware],
        checkpointer=InMemorySaver(),
    )
    config: Any = {"configurable": {"thread_id": CONVERSATION}, "recursion_limit": 50}
    for turn in range(1, turns + 1):
        image = {"type": "image", "base64": PNG, "mime_type": "image/png"}
        words = [{"type": "text", "text": question(turn)}, *([image] if has_image(turn) else [])]
        given: Any = {"messages": [HumanMessage(words)]}
        said = ""
        if turn % 2:
            said = (await agent.ainvoke(given, config))["messages"][-1].text
        else:
            async for chunk, meta in agent.astream(given, config, stream_mode="messages"):
                if meta.get("langgraph_node") == "model":
                    said = chunk.text if "is done" in chunk.text else said + chunk.text
        if f"Turn {turn} is done" not in said:
            return turn - 1
    await model._async_client.close()
    return turns


def _named(name: str) -> Callable[[str], str]:
    def look(key: str) -> str:
        """Looks a row up."""
        return run_tool(key)

    look.__name__ = name
    return look


async def talk_pydantic_ai(url: str, turns: int, place: Path) -> int:
    """A Pydantic AI agent whose program keeps the history, with `run` and `run_stream`."""
    from anthropic import AsyncAnthropic
    from pydantic_ai import Agent, BinaryContent, Tool
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    from longhold.adapters.pydantic_ai import LongholdCapability

    client = AsyncAnthropic(base_url=url, api_key="k4", max_retries=0)
    provider = AnthropicProvider(anthropic_client=client)
    model = AnthropicModel(MODEL, provider=provider, settings={"max_tokens": 1_000})
    longhold = LongholdCapability(window=WINDOW, client=client, kinds=KINDS, directory=place)

    def look(name: str) -> Tool[None]:
        def look_up(key: str) -> str:
            """Looks a row up."""
            return try_tool(key)[0]

        return Tool(look_up, name=name)

    tools = [look(name) for name in TOOLS]
    agent = Agent(model, instructions=SYSTEM, tools=tools, capabilities=[longhold])
    history: list[Any] = []
    async with client:
        for turn in range(1, turns + 1):
            image = [BinaryContent(base64.b64decode(PNG), media_type="image/png")]
            words: Any = [question(turn), *(image if has_image(turn) else [])]
            given = {"message_history": history, "conversation_id": CONVERSATION}
            if turn % 2:
                run = await agent.run(words, **given)
                said, history = run.output, run.all_messages()
            else:
                async with agent.run_stream(words, **given) as stream:
                    said, history = await stream.get_output(), stream.all_messages()
            if not is_done(turn, said):
                return turn - 1
    longhold.close()
    return turns


async def talk_openai_agents(url: str, turns: int, place: Path) -> int:
    """An agent of OpenAI's kit over a chat endpoint, with the kit's own session."""
    from openai import AsyncOpenAI

    from agents import (
        Agent,
        OpenAIChatCompletionsModel,
        Runner,
        SQLiteSession,
        function_tool,
        set_tracing_disabled,
    )
    from longhold.adapters.openai_agents import LongholdHooks

    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="k5", max_retries=0)
    model = OpenAIChatCompletionsModel(LOCAL, client)
    tools = [function_tool(_named(name), name_override=name) for name in TOOLS]
    agent = Agent(name="clerk", instructions=SYSTEM, tools=tools, model=model)
    kit = SQLiteSession(CONVERSATION)
    async with (
        client,
        LongholdHooks(CONVERSATION, client=client, kinds=KINDS, directory=place) as longhold,
    ):
        options = {"session": kit, "hooks": longhold, "run_config": longhold.run_config()}
        for turn in range(1, turns + 1):
            words: Any = question(turn)
            if has_image(turn):
                image = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}
                parts = [{"type": "input_text", "text": words}, image | {"detail": "auto"}]
                words = [{"role": "user", "content": parts}]
            if turn % 2:
                run: Any = await Runner.run(agent, words, **options)
            else:
                run = Runner.run_streamed(agent, words, **options)
                async for _ in run.stream_events():
                    pass
            if not is_done(turn, str(run.final_output)):
                return turn - 1
    kit.close()
    return turns


PROGRAMS: dict[str, Talk] = {
    "anthropic": talk_anthropic,
    "openai": talk_openai,
    "langchain": talk_langchain,
    "pydantic_ai": talk_pydantic_ai,
    "openai_agents": talk_openai_agents,
}
ALONE = "langchain_alone"


def talk(name: str, url: str, turns: int, place: Path) -> int:
    """Run a program to its end, and return the turns it did."""
    program = talk_langchain_alone if name == ALONE else PROGRAMS[name]
    return asyncio.run(program(url, turns, place))
