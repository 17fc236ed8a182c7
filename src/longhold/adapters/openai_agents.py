"""Support for OpenAI Agents: an input filter sends a managed view, and hooks record answers.

    longhold = LongholdHooks("conversation-7")
    await Runner.run(agent, input, hooks=longhold, run_config=longhold.run_config())

One object is one conversation. The session with its name follows the conversation's items. The SDK
calls no hook when a model fails, so rejected calls are not retried. `close`, or the end of an
`async with`, releases the log.
"""

import json
from typing import Any, Self, Unpack
from uuid import uuid4

from agents.models import get_default_model
from agents.run import CallModelData, ModelInputData

from agents import (
    Agent,
    FunctionTool,
    Model,
    ModelResponse,
    ModelSettings,
    ModelTracing,
    RunConfig,
    RunContextWrapper,
    RunHooks,
    Tool,
)
from longhold.adapters.sessions import AdapterOptions, Sessions
from longhold.core.messages import JsonObject
from longhold.core.models.protocol import Request


class LongholdHooks(RunHooks[Any]):
    """Manages what the model sees in the runs of one conversation."""

    def __init__(self, id: str, **options: Unpack[AdapterOptions]) -> None:
        """Follow a conversation in the session `id`. `AdapterOptions` lists the `options`."""
        self._sessions = Sessions("responses", id, options)

    def run_config(self, **options: Any) -> RunConfig:
        """Return a run configuration that includes this filter."""
        return RunConfig(call_model_input_filter=self, **options)

    async def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        """Return the managed view of a run's items."""
        session = await self._sessions.enter(None, self, _model_of(data.agent))
        tools = [_definition(tool) for tool in data.agent.tools if isinstance(tool, FunctionTool)]

        async def send(fork: Request) -> JsonObject:
            agent, kwargs = data.agent, fork.kwargs
            limited = agent.model_settings.resolve(
                ModelSettings(max_tokens=kwargs.get("max_output_tokens"))
            )
            response = await agent.model.get_response(  # type: ignore[union-attr]
                kwargs.get("instructions"), kwargs["input"], limited, agent.tools, None, [],
                ModelTracing.DISABLED, previous_response_id=None, conversation_id=None, prompt=None,
            )  # fmt: skip
            return _read_answer(response, agent)

        agent = data.agent  # plain if requests contain only its model, tools and settings
        is_more = agent.handoffs or agent.mcp_servers or agent.output_type
        is_plain = isinstance(agent.model, Model) and not is_more
        request = await session.follow(
            data.model_data.input,
            system=data.model_data.instructions or "",
            tools=map(self._sessions.declare, tools),
            abandons=True,
            send=send if is_plain else None,
        )
        return ModelInputData(
            input=request.kwargs["input"], instructions=request.kwargs.get("instructions")
        )

    async def on_llm_end(
        self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse
    ) -> None:
        """Record an answer."""
        session = self._sessions.current(None, self)
        await session.record(_read_answer(response, agent))
        await self._sessions.leave(None, self, is_over=session.is_answered)

    def tools(self) -> list[Tool]:
        """Return the tools for sessions with `history=True` or `memory=True`."""
        return [*map(self._own_tool, self._sessions.own_tools())]

    def _own_tool(self, definition: JsonObject) -> FunctionTool:
        async def use(_context: object, arguments: str) -> Any:
            given = json.loads(arguments or "{}")
            return await self._sessions.run_own_tool(None, definition["name"], given)

        return FunctionTool(
            name=definition["name"],
            description=definition["description"],
            params_json_schema=definition["input_schema"],
            on_invoke_tool=use,
            strict_json_schema=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._sessions.release(None, self)
        self.close()

    def close(self) -> None:
        """Release the log, even after a failed or cancelled run. `async with` calls this method."""
        self._sessions.close()


def _model_of(agent: Agent[Any]) -> str:
    model = agent.model or get_default_model()
    return model if isinstance(model, str) else str(getattr(model, "model", ""))


def _read_answer(response: ModelResponse, agent: Agent[Any]) -> JsonObject:
    usage = response.usage
    return {
        "id": response.response_id or uuid4().hex,  # chat completions have no id here
        "model": _model_of(agent),
        "output": response.to_input_items(),
        "usage": {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "input_tokens_details": usage.input_tokens_details.model_dump(),
        },
    }


def _definition(tool: FunctionTool) -> JsonObject:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.params_json_schema,
    }
