"""OpenAI Agents: an input filter that sends a managed view, and hooks that record answers.

    longhold = LongholdHooks("conversation-7")
    await Runner.run(agent, input, hooks=longhold, run_config=longhold.run_config())

One object is one conversation, whose items are followed by the session of that name. The SDK calls
no hook when a model fails, so rejected calls are not retried.
"""

import json
from typing import Any, Unpack
from uuid import uuid4

from agents.models import get_default_model
from agents.run import CallModelData, ModelInputData

from agents import (
    Agent,
    FunctionTool,
    ModelResponse,
    RunConfig,
    RunContextWrapper,
    RunHooks,
    Tool,
)
from longhold.adapters.sessions import AdapterOptions, Sessions, history_definition
from longhold.core.messages import JsonObject


class LongholdHooks(RunHooks[Any]):
    """Manages what the model sees in the runs of one conversation."""

    def __init__(self, id: str | None = None, **options: Unpack[AdapterOptions]) -> None:
        """Follow a conversation in the session `id`.

        `options` are those of `Session.open`. Without a `client` among them, notes and summaries
        are made from the log instead of by the model.
        """
        self._sessions = Sessions("responses", id, 1, options)

    def run_config(self, **options: Any) -> RunConfig:
        """Return a run configuration that includes this filter."""
        return RunConfig(call_model_input_filter=self, **options)

    async def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        """Return the managed view of a run's items."""
        session = self._sessions.get(None, _model_of(data.agent))
        tools = [_definition(tool) for tool in data.agent.tools if isinstance(tool, FunctionTool)]
        request = await session.follow(
            data.model_data.input, system=data.model_data.instructions or "", tools=tools
        )
        return ModelInputData(
            input=request.kwargs["input"], instructions=request.kwargs.get("instructions")
        )

    async def on_llm_end(
        self, context: RunContextWrapper[Any], agent: Agent[Any], response: ModelResponse
    ) -> None:
        """Record an answer."""
        usage = response.usage
        details = usage.input_tokens_details
        await self._sessions.current(None).settle(
            {
                "id": response.response_id or uuid4().hex,  # not passed on for chat completions
                "model": _model_of(agent),
                "output": response.to_input_items(),
                "usage": {
                    "input_tokens": usage.input_tokens,
                    "output_tokens": usage.output_tokens,
                    "input_tokens_details": details.model_dump(),
                },
            }
        )

    def tools(self) -> list[Tool]:
        """Return the History tool, for sessions with `history=True`."""
        definition = history_definition()

        async def look(_context: object, arguments: str) -> Any:
            call = {"type": "tool_use", "id": "", "name": definition["name"]}
            given = json.loads(arguments or "{}")
            return await self._sessions.current(None).run_tool(call | {"input": given})

        return [
            FunctionTool(
                name=definition["name"],
                description=definition["description"],
                params_json_schema=definition["input_schema"],
                on_invoke_tool=look,
                strict_json_schema=False,
            )
        ]

    def close(self) -> None:
        """Close the session. The next run resumes it."""
        self._sessions.close()


def _model_of(agent: Agent[Any]) -> str:
    model = agent.model or get_default_model()
    return model if isinstance(model, str) else str(getattr(model, "model", ""))


def _definition(tool: FunctionTool) -> JsonObject:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.params_json_schema,
    }
