"""A web service over Longhold, for `uvicorn --workers 4`: one turn for each request, on any worker.

`ADOPT_WAY` selects how it calls the model, `ADOPT_PROVIDER` the address. A framework's messages are
kept in a file per conversation, as a service keeps them in its database. A plain session needs no
such file.
"""

import json
import os
import random
from pathlib import Path
from typing import Any

from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from longhold import Session

MODEL = "claude-sonnet-4-6"
WINDOW = 32_000
PROVIDER, PLACE = os.environ["ADOPT_PROVIDER"], Path(os.environ["ADOPT_PLACE"])
WAIT_SECONDS = 60.0
"""Four processes of uvicorn open the store at the same time, and turns of one user may overlap."""


def lookup(key: str) -> str:
    """Looks a row up."""
    with (PLACE / "ran.txt").open("a") as file:
        file.write(f"{key}\n")
    return f"row {key}: " + f"value{key} " * 60


def _saved(id: str) -> Path:
    return PLACE / f"{id}.json"


def _load(id: str) -> list[Any]:
    return json.loads(_saved(id).read_text()) if _saved(id).exists() else []


def _save(id: str, messages: list[Any]) -> None:
    new = _saved(id).with_suffix(f".{random.getrandbits(32)}")
    new.write_text(json.dumps(messages))
    new.replace(_saved(id))


class PlainSession:
    """A session that is open for one turn."""

    def __init__(self) -> None:
        self._client = AsyncAnthropic(base_url=PROVIDER, api_key="k", max_retries=0)
        schema = {"type": "object", "properties": {"key": {"type": "string"}}}
        tool = {"name": "lookup", "description": "Looks a row up.", "input_schema": schema}
        self._options: Any = {"tools": [tool], "window": WINDOW, "max_tokens": 1_000}

    async def turn(self, id: str, words: str) -> str:
        session = await Session.aopen_or_resume(
            id, MODEL, wait_seconds=WAIT_SECONDS, directory=PLACE, **self._options
        )
        async with session:
            session.user(words)
            while not session.is_answered:
                request = await session.prepare()
                response = await self._client.messages.create(**request.kwargs)
                await session.record(response)
                for call in (block for block in response.content if block.type == "tool_use"):
                    async with session.arunning(call.id):
                        found = lookup(call.input["key"])
                    session.tool_result(call.id, found)
            return str(response.content[-1].text)


class LangChain:
    """One agent for the process, whose program keeps the messages."""

    def __init__(self) -> None:
        from langchain.agents import create_agent
        from langchain_anthropic import ChatAnthropic

        from longhold.adapters.langchain import LongholdMiddleware

        model = ChatAnthropic(model=MODEL, base_url=PROVIDER, api_key="k", max_retries=0)
        longhold = LongholdMiddleware(window=WINDOW, directory=PLACE)
        self._agent = create_agent(model, [lookup], middleware=[longhold])

    async def turn(self, id: str, words: str) -> str:
        from langchain_core.messages import HumanMessage, messages_from_dict, messages_to_dict

        given: Any = {"messages": [*messages_from_dict(_load(id)), HumanMessage(words)]}
        state = await self._agent.ainvoke(given, {"configurable": {"thread_id": id}})
        _save(id, messages_to_dict(state["messages"]))
        return str(state["messages"][-1].text)


class PydanticAI:
    """One agent for the process, whose program keeps the messages."""

    def __init__(self) -> None:
        from pydantic_ai import Agent
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        from longhold.adapters.pydantic_ai import LongholdCapability

        client = AsyncAnthropic(base_url=PROVIDER, api_key="k", max_retries=0)
        model = AnthropicModel(MODEL, provider=AnthropicProvider(anthropic_client=client))
        longhold = LongholdCapability(window=WINDOW, directory=PLACE)
        self._agent = Agent(model, tools=[lookup], capabilities=[longhold])

    async def turn(self, id: str, words: str) -> str:
        from pydantic_ai import ModelMessagesTypeAdapter

        history = ModelMessagesTypeAdapter.validate_python(_load(id))
        run = await self._agent.run(words, message_history=history, conversation_id=id)
        _save(id, json.loads(run.all_messages_json()))
        return str(run.output)


class OpenAIAgents:
    """One agent for the process, and one object of Longhold's for each request."""

    def __init__(self) -> None:
        from agents import (
            Agent,
            OpenAIChatCompletionsModel,
            function_tool,
            set_tracing_disabled,
        )

        set_tracing_disabled(True)
        client = AsyncOpenAI(base_url=f"{PROVIDER}/v1", api_key="k")  # retries: the kit has no hook
        model = OpenAIChatCompletionsModel(MODEL, client)
        self._agent = Agent(name="clerk", tools=[function_tool(lookup)], model=model)

    async def turn(self, id: str, words: str) -> str:
        from agents import Runner
        from longhold.adapters.openai_agents import LongholdHooks

        items = [*_load(id), {"role": "user", "content": words}]
        async with LongholdHooks(id, window=WINDOW, directory=PLACE) as longhold:
            run = await Runner.run(
                self._agent, items, hooks=longhold, run_config=longhold.run_config()
            )
        _save(id, run.to_input_list())
        return str(run.final_output)


WAYS: dict[str, Any] = {
    "session": PlainSession,
    "langchain": LangChain,
    "pydantic_ai": PydanticAI,
    "openai_agents": OpenAIAgents,
}
way = WAYS[os.environ["ADOPT_WAY"]]()


async def take_turn(request: Request) -> JSONResponse:
    given = await request.json()
    said = await way.turn(given["id"], given["words"])
    return JSONResponse({"said": said, "worker": os.getpid()})


async def name_worker(_: Request) -> JSONResponse:
    return JSONResponse({"worker": os.getpid()})


app = Starlette(routes=[Route("/", name_worker), Route("/turn", take_turn, methods=["POST"])])
