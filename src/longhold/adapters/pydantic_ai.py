"""A Pydantic AI capability that sends a managed view of a conversation's messages.

    agent = Agent(model, capabilities=[LongholdCapability()])

A run's history keeps every message. A session with the conversation's id follows it. Cache
breakpoints become cache points and a model setting. Parts without a matching block, such as a call
of a provider's tool, pass through unchanged.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Unpack
from uuid import uuid4

from pydantic_ai import RetryModelRequest, RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.messages import (
    ERROR_OUTCOMES,
    BinaryContent,
    CachePoint,
    ImageUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.run import AgentRunResult
from pydantic_ai.toolsets import FunctionToolset

from longhold.adapters.sessions import OPEN_SESSIONS, AdapterOptions, Sessions
from longhold.core.messages import JsonObject
from longhold.core.models.protocol import Request
from longhold.errors import LongholdError

CARRIED = "pydantic_ai"
REDACTED = "redacted_thinking"


class LongholdCapability(AbstractCapability[Any]):
    """Manages what the model of an agent sees."""

    def __init__(
        self,
        conversation: str | None = None,
        *,
        open_sessions: int = OPEN_SESSIONS,
        **options: Unpack[AdapterOptions],
    ) -> None:
        """Follow each conversation in a session with its id, or all runs in `conversation`."""
        self._conversation = conversation
        self._sessions = Sessions("anthropic", conversation, options, open_sessions)

    async def wrap_run(
        self, ctx: RunContext[Any], *, handler: Callable[[], Awaitable[AgentRunResult[Any]]]
    ) -> AgentRunResult[Any]:
        """Release the conversation at the end of a run, even if the run failed."""
        try:
            return await handler()
        finally:
            await self._sessions.release(self._name(ctx), ctx.run_id)

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Replace the messages of one attempt with the managed view."""
        model = request_context.model.model_name
        session = await self._sessions.enter(self._name(ctx), ctx.run_id, model)
        parameters = request_context.model_request_parameters
        messages = request_context.messages
        opening = _system_parts(messages)
        instructions = [part.content for part in parameters.instruction_parts or ()]

        async def send(fork: Request) -> JsonObject:
            sent = _make_sendable(request_context, fork, opening)
            settings: Any = {**(sent.model_settings or {}), "max_tokens": fork.kwargs["max_tokens"]}
            view = sent.model.prepare_messages(sent.messages, parameters)
            try:
                response = await sent.model.request(view, settings, parameters)
            except ModelAPIError as error:
                raise (error.__cause__ or error) from None
            return _read_answer(response, model)

        request = await session.follow(
            [_block_message(message, opening) for message in messages],
            system=[*(part.content for part in opening), *instructions],
            tools=[
                self._sessions.declare(
                    {
                        "name": tool.name,
                        "description": tool.description or "",
                        "input_schema": tool.parameters_json_schema,
                    }
                )
                for tool in (*parameters.function_tools, *parameters.output_tools)
            ],
            abandons=True,
            send=send,
        )
        return _make_sendable(request_context, request, opening)

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Record an answer."""
        session = self._sessions.current(self._name(ctx), ctx.run_id)
        await session.record(_read_answer(response, request_context.model.model_name))
        await self._sessions.leave(self._name(ctx), ctx.run_id, is_over=session.is_answered)
        return response

    async def on_model_request_error(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, error: Exception
    ) -> ModelResponse:
        """Retry if waiting or freeing space helps. Otherwise raise the original error."""
        cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
        try:
            await self._sessions.current(self._name(ctx), ctx.run_id).recover(cause)
        except (LongholdError, type(cause)):
            raise error from cause
        raise RetryModelRequest from error

    def get_toolset(self) -> FunctionToolset[Any] | None:
        """Return the tools for sessions with `history=True` or `memory=True`."""
        tools = [*map(self._own_tool, self._sessions.own_tools())]
        return FunctionToolset(tools) if tools else None

    def _own_tool(self, definition: JsonObject) -> Tool[Any]:
        name, said = definition["name"], definition["description"]

        async def use(ctx: RunContext[Any], **given: Any) -> Any:
            return await self._sessions.run_own_tool(self._name(ctx), name, given)

        return Tool.from_schema(use, name, said, definition["input_schema"], takes_ctx=True)

    def close(self) -> None:
        """Close all sessions. The next run resumes its session."""
        self._sessions.close()

    def _name(self, ctx: RunContext[Any]) -> str | None:
        return self._conversation or ctx.conversation_id


def _make_sendable(
    context: ModelRequestContext, request: Request, opening: Sequence[SystemPromptPart]
) -> ModelRequestContext:
    settings: Any = context.model_settings or {}
    if ttl := _find_marker(request.kwargs.get("system") or ()):
        settings = {"anthropic_cache_instructions": ttl} | settings
    view = _to_pydantic(request.kwargs["messages"], opening, context.model.system)
    return replace(context, messages=view, model_settings=settings)


def _read_answer(response: ModelResponse, model: str) -> JsonObject:
    usage = response.usage
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    calls = any(isinstance(part, ToolCallPart) for part in response.parts)
    return {
        "id": response.provider_response_id or uuid4().hex,
        "role": "assistant",
        "model": response.model_name or model,
        "content": list(map(_answer_block, response.parts)),
        "stop_reason": "tool_use" if calls else "end_turn",
        "usage": {
            "input_tokens": max(0, usage.input_tokens - cached),
            "output_tokens": usage.output_tokens,
            "cache_read_input_tokens": usage.cache_read_tokens,
            "cache_creation_input_tokens": usage.cache_write_tokens,
        },
    }


def _system_parts(messages: Sequence[ModelMessage]) -> list[SystemPromptPart]:
    first = messages[0].parts if messages and isinstance(messages[0], ModelRequest) else ()
    return [part for part in first if isinstance(part, SystemPromptPart)]


def _block_message(message: ModelMessage, opening: Sequence[SystemPromptPart]) -> JsonObject:
    if isinstance(message, ModelResponse):
        return {"role": "assistant", "content": list(map(_answer_block, message.parts))}
    parts = [part for part in message.parts if not any(part is one for one in opening)]
    return {"role": "user", "content": [block for part in parts for block in _blocks(part)]}


def _blocks(part: ModelRequestPart) -> Iterator[JsonObject]:
    match part:
        case UserPromptPart(content=str(text)):
            yield {"type": "text", "text": text}
        case UserPromptPart(content=items):
            yield from (_block(item) for item in items if not isinstance(item, CachePoint))
        case ToolReturnPart():
            files = [_block(file) for file in part.files]
            text = part.model_response_str(wrap_if_error=False)
            said = [{"type": "text", "text": text}] if text else []
            result = {"type": "tool_result", "tool_use_id": part.tool_call_id}
            failed = {"is_error": True} if part.outcome in ERROR_OUTCOMES else {}
            yield result | {"content": [*said, *files] if files else text} | failed
        case _:
            yield _carry(ModelRequest(parts=[part]))


def _block(item: UserContent) -> JsonObject:
    match item:
        case str(text) | TextContent(content=text):
            return {"type": "text", "text": text}
        case BinaryContent() if item.is_image:
            source = {"type": "base64", "media_type": item.media_type, "data": item.base64}
            return {"type": "image", "source": source}
        case ImageUrl(url=url):
            return {"type": "image", "source": {"type": "url", "url": url}}
    return _carry(ModelRequest(parts=[UserPromptPart([item])]))


def _answer_block(part: ModelResponsePart) -> JsonObject:
    match part:
        case TextPart(content=text):
            return {"type": "text", "text": text}
        case ToolCallPart():
            call = {"id": part.tool_call_id, "name": part.tool_name, "input": part.args_as_dict()}
            return {"type": "tool_use"} | call
        case ThinkingPart(id="redacted_thinking", signature=data):
            return {"type": REDACTED, "data": data or ""}
        case ThinkingPart(content=text, signature=signature):
            return {"type": "thinking", "thinking": text, "signature": signature or ""}
    return _carry(ModelResponse(parts=[part]))


def _carry(message: ModelMessage) -> JsonObject:
    [plain] = ModelMessagesTypeAdapter.dump_python([message], mode="json")
    return {"type": CARRIED, "kind": plain["kind"], "parts": plain["parts"]}


def _to_pydantic(
    view: Sequence[JsonObject], opening: Sequence[SystemPromptPart], system: str
) -> list[ModelMessage]:
    found: list[ModelMessage] = []
    names: dict[str, str] = {}
    waiting: list[UserContent] = []
    for message in view:
        blocks: list[JsonObject] = message["content"]
        if message["role"] == "assistant":
            names |= {b["id"]: b["name"] for b in blocks if b["type"] == "tool_use"}
            parts = [part for block in blocks for part in _answer_parts(block, system)]
            found.append(ModelResponse(parts=parts, provider_name=system))
            waiting = [CachePoint(ttl)] if (ttl := _find_marker(blocks)) else []
            continue
        own = [part for block in blocks for part in _parts(block, names)]
        before = [UserPromptPart(waiting)] if waiting else []
        found.append(ModelRequest(parts=[*([] if found else opening), *before, *own]))
        waiting = []
    return found


def _parts(block: JsonObject, names: dict[str, str]) -> Iterator[ModelRequestPart]:
    match block:
        case {"type": "tool_result", "tool_use_id": id, "content": content}:
            is_plain = isinstance(content, str)
            yield ToolReturnPart(
                tool_name=names.get(id, ""),
                tool_call_id=id,
                content=content if is_plain else [_item(one) for one in content],
                outcome="failed" if block.get("is_error") else "success",
            )
        case {"type": "pydantic_ai", "parts": parts}:
            [message] = ModelMessagesTypeAdapter.validate_python(
                [{"kind": "request", "parts": parts}]
            )
            assert isinstance(message, ModelRequest)
            yield from message.parts
        case _:
            yield UserPromptPart([_item(block)])
    if ttl := _find_marker([block]):
        yield UserPromptPart([CachePoint(ttl)])


def _item(block: JsonObject) -> Any:
    match block:
        case {"type": "text", "text": text}:
            return text
        case {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}:
            return BinaryContent.from_data_uri(f"data:{kind};base64,{data}")
        case {"type": "image", "source": {"url": url}}:
            return ImageUrl(url)
    [message] = ModelMessagesTypeAdapter.validate_python([{"kind": "request", **block}])
    [part] = message.parts
    return part.content[0] if isinstance(part, UserPromptPart) else part


def _answer_parts(block: JsonObject, system: str) -> Iterator[ModelResponsePart]:
    match block:
        case {"type": "text", "text": text}:
            yield TextPart(text)
        case {"type": "tool_use", "id": id, "name": name, "input": given}:
            yield ToolCallPart(name, given, id)
        case {"type": "thinking", "thinking": text, "signature": signature}:
            yield ThinkingPart(text, signature=signature or None, provider_name=system)
        case {"type": "redacted_thinking", "data": data}:
            yield ThinkingPart("", id=REDACTED, signature=data, provider_name=system)
        case {"type": "pydantic_ai", "parts": parts}:
            [message] = ModelMessagesTypeAdapter.validate_python(
                [{"kind": "response", "parts": parts}]
            )
            assert isinstance(message, ModelResponse)
            yield from message.parts


def _find_marker(blocks: Sequence[JsonObject]) -> Any:
    markers = [block["cache_control"] for block in blocks if "cache_control" in block]
    return markers[-1].get("ttl", "5m") if markers else None
