"""A LangChain middleware that sends a managed view of an agent's messages.

    agent = create_agent(model, tools, middleware=[LongholdMiddleware()])

The agent's state keeps every message. The session named after a thread follows its messages.
Anthropic models get blocks with cache breakpoints. Other models get LangChain's own messages.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextvars import copy_context
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Unpack

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ModelRequest, ModelResponse, ToolCallRequest
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.config import get_config
from langgraph.constants import TAG_NOSTREAM
from langgraph.types import Command

from longhold.adapters.sessions import OPEN_SESSIONS, AdapterOptions, Sessions
from longhold.core.messages import JsonObject
from longhold.core.models.protocol import Request
from longhold.errors import LongholdError
from longhold.session.own_tools import Send
from longhold.session.session import Session

if TYPE_CHECKING:
    from langchain.agents.middleware.types import ExtendedModelResponse

TRIMMED = "longhold_trimmed"
TRIMMED_TEXT = "[Earlier messages of this thread are in the log of its session.]"


class LongholdMiddleware(AgentMiddleware[Any, Any, Any]):
    """Manages what the model of an agent sees."""

    def __init__(
        self,
        id: str | None = None,
        *,
        open_sessions: int = OPEN_SESSIONS,
        trims: bool = False,
        **options: Unpack[AdapterOptions],
    ) -> None:
        """Follow each thread in a session named after it. Calls without a thread use session `id`.

        With `trims`, summarised messages are removed from the graph's state and so from its
        checkpoints. The log keeps them. `AdapterOptions` lists the `options`.
        """
        super().__init__()
        self._trims = trims
        self._sessions = Sessions("anthropic", id, options, open_sessions)
        self.tools: list[BaseTool] = [*map(self._own_tool, self._sessions.own_tools())]

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> "ModelResponse[Any] | ExtendedModelResponse[Any]":
        """Call the model with the managed view, and retry if that can help."""

        async def send(fork: Request) -> JsonObject:
            return _read_fork(await handler(_make_quiet(request, fork)))

        async with self._sessions.use(_thread(), _model_of(request)) as session:
            while True:
                managed = await self._follow(session, request, send)
                try:
                    response = await handler(_make_sendable(request, managed))
                except Exception as error:  # noqa: BLE001 - raised again if nothing helps
                    await _recover(session, error)
                    continue
                await _record_answer(session, response)
                return self._with_trimming(session, request, response)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> "ModelResponse[Any] | ExtendedModelResponse[Any]":
        """The same for agents that run synchronously."""
        run, name, context = self._sessions.run, _thread(), copy_context()

        async def send(fork: Request) -> JsonObject:
            quiet = _make_quiet(request, fork)
            return _read_fork(await asyncio.to_thread(context.run, handler, quiet))

        call = self._sessions.use(name, _model_of(request))
        session = run(call.__aenter__())
        try:
            while True:
                managed = run(self._follow(session, request, send))
                try:
                    response = handler(_make_sendable(request, managed))
                except Exception as error:  # noqa: BLE001 - raised again if nothing helps
                    run(_recover(session, error))
                    continue
                run(_record_answer(session, response))
                trimmed = self._with_trimming(session, request, response)
                break
        except BaseException:
            run(call.__aexit__(*sys.exc_info()))
            raise
        run(call.__aexit__(None, None, None))
        return trimmed

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """Run a tool. If it is cancelled, the turn is over, and the log is released."""
        try:
            return await handler(request)
        except BaseException:
            await self._sessions.release(_thread())
            raise

    def wrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]],
    ) -> ToolMessage | Command[Any]:
        """The same for agents that run synchronously."""
        try:
            return handler(request)
        except BaseException:
            self._sessions.run(self._sessions.release(_thread()))
            raise

    async def _follow(self, session: Session, request: ModelRequest[Any], send: Send) -> Request:
        system = request.system_message
        tools = map(convert_to_openai_tool, request.tools)
        return await session.follow(
            [
                block
                for one in request.messages
                if not _is_empty(one)
                for block in [_block_message(one)] * _count_trimmed(one)
            ],
            system=(system.content if system is not None else ""),
            tools=[self._sessions.declare(tool) for tool in tools],
            abandons=True,
            send=send,
        )

    def _with_trimming(
        self, session: Session, request: ModelRequest[Any], response: ModelResponse[Any]
    ) -> "ModelResponse[Any] | ExtendedModelResponse[Any]":
        """Replace summarised messages in the state with one message that contains their number."""
        gone, count = list[AnyMessage](), 0
        covered = session.count_summarised() if self._trims else 0
        for one in (one for one in request.messages if not _is_empty(one)):
            if count + _count_trimmed(one) > covered:
                break
            count += _count_trimmed(one)
            gone.append(one)
        if len(gone) < 2:
            return response
        # Imported here because older releases do not have it.
        from langchain.agents.middleware.types import ExtendedModelResponse

        mark = HumanMessage(TRIMMED_TEXT, id=gone[0].id, additional_kwargs={TRIMMED: count})
        update = [mark, *(RemoveMessage(id=str(one.id)) for one in gone[1:])]
        return ExtendedModelResponse(response, Command(update={"messages": update}))

    def close(self) -> None:
        """Close all sessions. The next call resumes its session."""
        self._sessions.close()

    def _own_tool(self, definition: JsonObject) -> StructuredTool:
        async def use(**given: Any) -> Any:
            return await self._sessions.run_own_tool(_thread(), definition["name"], given)

        return StructuredTool(
            name=definition["name"],
            description=definition["description"],
            args_schema=definition["input_schema"],
            func=lambda **given: self._sessions.run(use(**given)),
            coroutine=use,
        )


def _model_of(request: ModelRequest[Any]) -> str:
    model = request.model
    return str(getattr(model, "model_name", None) or getattr(model, "model", "") or "")


def _thread() -> str | None:
    """Name a session after the thread, and after the task if an agent is another agent's tool."""
    configured = get_config().get("configurable", {})
    thread = configured.get("thread_id")
    outer = str(configured.get("checkpoint_ns") or "").rpartition("|")[0]
    if not thread or not outer:
        return str(thread) if thread else None
    name = outer.split("|")[0].split(":")[0]
    return f"{thread}.{name}-{blake2b(outer.encode(), digest_size=6).hexdigest()}"


def _count_trimmed(message: BaseMessage) -> int:
    """Count the messages that one message in the state replaces."""
    return int(message.additional_kwargs.get(TRIMMED, 1))


def _is_empty(message: BaseMessage) -> bool:
    return isinstance(message, AIMessage) and not message.content and not message.tool_calls


def _block_message(message: BaseMessage) -> JsonObject:
    if isinstance(message, ToolMessage):
        result = {"type": "tool_result", "tool_use_id": message.tool_call_id}
        failed = {"is_error": True} if message.status == "error" else {}
        return {"role": "user", "content": [result | {"content": message.content} | failed]}
    if isinstance(message, AIMessage):
        return {"role": "assistant", "content": list(_answer_blocks(message))}
    role = "system" if isinstance(message, SystemMessage) else "user"
    content = message.content
    blocks = [content] if isinstance(content, str) else map(_from_langchain, content)
    return {"role": role, "content": list(blocks)}


def _from_langchain(block: Any) -> Any:
    """Convert an image or a file to a Messages API block. Other blocks pass unchanged."""
    if isinstance(block, str) or block.get("type") not in ("image", "image_url", "file"):
        return block
    match HumanMessage([block]).content_blocks[0]:
        case {"type": "image" | "file" as kind, "base64": data, "mime_type": media}:
            source = {"type": "base64", "media_type": media, "data": data}
        case {"type": "image" | "file" as kind, "url": url}:
            source = {"type": "url", "url": url}
        case _:
            return block
    return {"type": "document" if kind == "file" else kind, "source": source}


def _to_langchain(block: JsonObject) -> JsonObject:
    kind = "file" if block["type"] == "document" else block["type"]
    match block.get("source"):
        case {"type": "base64", "media_type": media, "data": data}:
            return {"type": kind, "base64": data, "mime_type": media}
        case {"type": "url", "url": url}:
            return {"type": kind, "url": url}
    return {key: value for key, value in block.items() if key != "cache_control"}


def _answer_blocks(message: AIMessage) -> Iterator[JsonObject]:
    """Yield an answer's blocks. Calls come from LangChain's parsed `tool_calls`."""
    content = message.content
    for block in [content] if isinstance(content, str) else content:
        if isinstance(block, str):
            yield {"type": "text", "text": block}
        elif block.get("type") not in ("tool_use", "function_call"):
            yield {key: value for key, value in block.items() if key != "index"}
    for call in message.tool_calls:
        yield {"type": "tool_use", "id": call["id"], "name": call["name"], "input": call["args"]}


def _make_sendable(request: ModelRequest[Any], managed: Request) -> ModelRequest[Any]:
    kwargs = managed.kwargs
    takes_blocks = _takes_blocks(request)
    worded = _render_blocks if takes_blocks else _render_plain
    messages = [one for message in kwargs["messages"] for one in worded(message)]
    system: Any = kwargs.get("system") or ""
    if not takes_blocks and not isinstance(system, str):
        system = "\n\n".join(block["text"] for block in system)
    return request.override(
        messages=messages, system_message=SystemMessage(system) if system else None
    )


def _make_quiet(request: ModelRequest[Any], fork: Request) -> ModelRequest[Any]:
    """Make a fork's request, whose answer is not streamed to the user."""
    model, settings = request.model, request.model_settings
    model = model.model_copy(update={"tags": [*(model.tags or ()), TAG_NOSTREAM]})
    if _takes_blocks(request):
        settings = settings | {"max_tokens": fork.kwargs["max_tokens"]}
    return _make_sendable(request, fork).override(model=model, model_settings=settings)


def _takes_blocks(request: ModelRequest[Any]) -> bool:
    return request.model._llm_type == "anthropic-chat"


def _render_blocks(message: JsonObject) -> Iterator[AnyMessage]:
    kind = AIMessage if message["role"] == "assistant" else HumanMessage
    yield kind(content=message["content"])


def _render_plain(message: JsonObject) -> Iterator[AnyMessage]:
    """Yield LangChain's own messages, with results first and without cache breakpoints."""
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    bare = list(map(_to_langchain, blocks))
    for block in bare:
        if block["type"] == "tool_result":
            yield ToolMessage(
                content=block.get("content") or "",
                tool_call_id=block["tool_use_id"],
                status="error" if block.get("is_error") else "success",
            )
    if message["role"] == "assistant":
        calls = [block for block in bare if block["type"] == "tool_use"]
        yield AIMessage(
            content=[block for block in bare if block["type"] != "tool_use"],
            tool_calls=[{"id": b["id"], "name": b["name"], "args": b["input"]} for b in calls],
        )
    elif said := [block for block in bare if block["type"] != "tool_result"]:
        yield HumanMessage(content=[*said])


async def _recover(session: Session, error: Exception) -> None:
    """Wait, or free space. If neither helps, raise the original exception."""
    try:
        await session.recover(error)
    except LongholdError as ours:
        raise error from ours


async def _record_answer(session: Session, response: ModelResponse[Any]) -> None:
    for answer in response.result:
        if isinstance(answer, AIMessage):
            await session.record(_read_answer(answer, session.model))


def _read_fork(response: ModelResponse[Any]) -> JsonObject:
    answers = [one for one in response.result if isinstance(one, AIMessage)]
    return _read_answer(answers[-1] if answers else AIMessage(""), "")


def _read_answer(answer: AIMessage, model: str) -> JsonObject:
    meta, calls = answer.response_metadata, bool(answer.tool_calls)
    return {
        "id": answer.id or "",
        "role": "assistant",
        "model": meta.get("model_name") or meta.get("model") or model,
        "content": list(_answer_blocks(answer)),
        "stop_reason": meta.get("stop_reason") or ("tool_use" if calls else "end_turn"),
        "usage": _usage(answer),
    }


def _usage(answer: AIMessage) -> JsonObject:
    """Separate cache reads and writes from the input tokens, which include them in LangChain."""
    usage = answer.usage_metadata
    if usage is None:
        return {}
    details: Any = usage.get("input_token_details") or {}
    read = details.get("cache_read") or 0
    lasting = details.get("ephemeral_1h_input_tokens") or 0
    brief = details.get("ephemeral_5m_input_tokens") or 0
    written = (details.get("cache_creation") or 0) or lasting + brief
    return {
        "input_tokens": max(0, usage["input_tokens"] - read - written),
        "output_tokens": usage["output_tokens"],
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "cache_creation": {
            "ephemeral_5m_input_tokens": written - lasting,
            "ephemeral_1h_input_tokens": lasting,
        },
    }
