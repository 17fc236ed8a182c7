"""Runs in a peer's own environment: takes messages turn by turn, returns what the peer would send.

    python driver.py NAME LINE_TOKENS

One JSON object a line. In: `{"new": [messages in the shape of chat completions]}`; an answer has the
`usage` that its prompt was billed at, for those who go by it. Out: `{"summaries": …, "messages": […]}`.
In: `{"turns": [[messages], …], "seconds": …}`, to take one turn after the other for as long; out: `{"ms": […]}`.
Only the peer's own work is timed, by the processor's clock, not how messages are put into its types.
Summaries are scripted: the same text for all.
"""

import asyncio
import copy
import json
import sys
import tempfile
import time
from typing import Any

Chat = dict[str, Any]
KEEP_MESSAGES = 20
FEWEST_TURNS = 3
"""Of a slow peer, whatever the time."""
LINE_SHARE = 0.8
"""The line, of the window."""
FAKE_PROVIDER = "genericfakechatmodel"
"""What LangChain's scripted model calls its provider: only its own usage is believed."""


class Peer:
    """A library under test."""

    def __init__(self, line_tokens: int) -> None:
        self.line_tokens = line_tokens
        self.history: list[Chat] = []
        self.summaries = 0
        self.state: list[Any] = []
        self.begin()

    def begin(self) -> None: ...

    def summary(self, *asked: Any) -> str:
        """Write what was asked, touched and run so far; whoever asks gets the same."""
        self.summaries += 1
        said = [str(m["content"])[:400] for m in self.history if m["role"] == "user"]
        calls = [c["function"] for m in self.history for c in m.get("tool_calls") or ()]
        done = [f"{c['name']} {c['arguments'][:160]}" for c in calls]
        return ("Requests:\n" + "\n".join(said) + "\nDone:\n" + "\n".join(done))[-20_000:]

    def add(self, new: list[Chat]) -> None:
        self.history += new
        for message in new:
            usage = message.pop("usage", None)
            self.state.append(self.typed(message, usage))

    def typed(self, message: Chat, usage: Chat | None) -> Any:
        return message

    async def turn(self) -> list[Any]:
        raise NotImplementedError

    def plain(self, message: Any) -> Chat:
        return dict(message)


class LangChainSummary(Peer):
    """SummarizationMiddleware: trigger at the line, keep 20 messages, the whole past summarised."""

    def begin(self) -> None:
        from langchain.agents.middleware import SummarizationMiddleware

        self.middleware = SummarizationMiddleware(
            model=self.model(),
            trigger=("tokens", self.line_tokens),
            keep=("messages", KEEP_MESSAGES),
            trim_tokens_to_summarize=None,
        )

    def model(self) -> Any:
        """Make a model that summarises, with the window whose line is given."""
        from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
        from langchain_core.messages import AIMessage

        answers = iter(lambda: AIMessage(content=self.summary()), None)
        profile = {"max_input_tokens": round(self.line_tokens / LINE_SHARE)}
        return GenericFakeChatModel(messages=answers, profile=profile)

    def typed(self, message: Chat, usage: Chat | None) -> Any:
        from langchain_core.messages import convert_to_messages

        made = convert_to_messages([message])[0]
        if usage:
            counted = usage | {"total_tokens": sum(usage.values())}
            provider = {"model_provider": FAKE_PROVIDER}
            made = made.model_copy(
                update={"usage_metadata": counted, "response_metadata": provider}
            )
        return made

    async def turn(self) -> list[Any]:
        update = await self.middleware.abefore_model({"messages": self.state}, None)
        if update:
            self.state = [m for m in update["messages"] if m.type != "remove"]
        return self.state

    def plain(self, message: Any) -> Chat:
        from langchain_core.messages import convert_to_openai_messages

        return convert_to_openai_messages(message)


class LangChainEditing(LangChainSummary):
    """ContextEditingMiddleware's ClearToolUsesEdit, with its defaults: past 100K, three stay."""

    def begin(self) -> None:
        from langchain.agents.middleware import ClearToolUsesEdit
        from langchain_core.messages.utils import count_tokens_approximately

        self.edit, self.count = ClearToolUsesEdit(), count_tokens_approximately
        if self.line_tokens > 200_000:
            self.edit = ClearToolUsesEdit(trigger=self.line_tokens)

    async def turn(self) -> list[Any]:
        messages = copy.deepcopy(self.state)  # as the middleware does
        self.edit.apply(messages, count_tokens=self.count)
        return messages


class DeepAgents(LangChainSummary):
    """Its SummarizationMiddleware, with the defaults for a model whose window is known.

    At 85 % of the window; the newest tenth stays, old arguments are cut, what leaves is written to a file.
    """

    def begin(self) -> None:
        from deepagents.backends import FilesystemBackend
        from deepagents.middleware.summarization import create_summarization_middleware

        self.directory = tempfile.TemporaryDirectory()
        backend = FilesystemBackend(root_dir=self.directory.name, virtual_mode=True)
        self.answers_by = self.model()
        self.middleware = create_summarization_middleware(self.answers_by, backend)
        self.kept: dict[str, Any] = {}

    async def turn(self) -> list[Any]:
        from langchain.agents.middleware import ModelRequest, ModelResponse
        from langchain_core.messages import AIMessage

        sent: list[Any] = []

        async def answer(request: Any) -> Any:
            sent[:] = request.messages
            return ModelResponse(result=[AIMessage(content="ok")])

        state = self.kept | {"messages": self.state}
        request = ModelRequest(model=self.answers_by, messages=self.state, state=state)
        done = await self.middleware.awrap_model_call(request, answer)
        if command := getattr(done, "command", None):
            self.kept |= {name: new for name, new in command.update.items() if name != "messages"}
        return sent


class LiteLLM(Peer):
    """trim_messages, to the line."""

    def begin(self) -> None:
        from litellm.utils import trim_messages

        self.trim = trim_messages

    async def turn(self) -> list[Any]:
        return self.trim(
            copy.copy(self.state), model="gpt-4o", max_tokens=self.line_tokens, trim_ratio=1.0
        )


class Headroom(Peer):
    """compress, with its defaults."""

    def begin(self) -> None:
        from headroom import compress

        self.compress = compress

    async def turn(self) -> list[Any]:
        return self.compress(self.state, model_limit=round(self.line_tokens / LINE_SHARE)).messages


class OpenAIAgents(Peer):
    """A SQLite session in a file, without a limit: all items. Its compaction needs OpenAI's own service."""

    limit: int | None = None
    in_memory = False

    def begin(self) -> None:
        from agents import SQLiteSession

        self.directory = tempfile.TemporaryDirectory()
        place = ":memory:" if self.in_memory else f"{self.directory.name}/sessions.db"
        self.session = SQLiteSession("peer", place)

    async def turn(self) -> list[Any]:
        await self.session.add_items(self.state)
        self.state = []
        return await self.session.get_items(limit=self.limit)


class OpenAIAgentsNewest(OpenAIAgents):
    """The same with a limit, so that it stays in the window: the newest 40 items."""

    limit = 2 * KEEP_MESSAGES


class OpenAIAgentsInMemory(OpenAIAgentsNewest):
    """The newest 40 items of a session in memory, its default: nothing is left when the process ends."""

    in_memory = True


class PydanticAI(Peer):
    """SummarizingCompaction at the line, 20 messages kept; the agent's own run is subtracted."""

    def begin(self) -> None:
        from pydantic_ai import Agent
        from pydantic_ai.messages import ModelResponse, TextPart
        from pydantic_ai.models.function import FunctionModel
        from pydantic_ai_harness.compaction import SummarizingCompaction

        self.seen: list[Any] = []

        def answer(messages: list[Any], info: Any) -> Any:
            self.seen = list(messages)
            return ModelResponse(parts=[TextPart("ok")])

        def summarise(messages: list[Any], info: Any) -> Any:
            return ModelResponse(parts=[TextPart(self.summary())])

        capability = SummarizingCompaction(
            model=FunctionModel(summarise),
            max_tokens=self.line_tokens,
            keep_messages=KEEP_MESSAGES,
            tool_return_max_chars=None,
        )
        self.plain_agent = Agent(FunctionModel(answer))
        self.agent = Agent(FunctionModel(answer), capabilities=[capability])

    def typed(self, message: Chat, usage: Chat | None) -> Any:
        from pydantic_ai import messages as m
        from pydantic_ai.usage import RequestUsage

        text = str(message.get("content") or "")
        if message["role"] == "user":
            return m.ModelRequest(parts=[m.UserPromptPart(text)])
        if message["role"] == "tool":
            part = m.ToolReturnPart(message["name"], text, tool_call_id=message["tool_call_id"])
            return m.ModelRequest(parts=[part])
        calls = [
            m.ToolCallPart(c["function"]["name"], c["function"]["arguments"], tool_call_id=c["id"])
            for c in message.get("tool_calls") or ()
        ]
        parts = [*([m.TextPart(text)] if text else []), *calls]
        return m.ModelResponse(parts=parts, usage=RequestUsage(**usage or {}))

    async def turn(self) -> list[Any]:
        await self.agent.run(message_history=self.state)
        if len(self.seen) < len(self.state) / 2:
            self.state = self.seen
        return self.seen

    async def overhead(self) -> None:
        await self.plain_agent.run(message_history=self.state)

    def plain(self, message: Any) -> Any:
        shown: list[Chat] = []
        for part in message.parts:
            kind, content = part.part_kind, getattr(part, "content", "")
            if kind in ("user-prompt", "system-prompt"):
                shown.append({"role": "user", "content": str(content)})
            elif kind == "tool-return":
                shown.append(
                    {"role": "tool", "tool_call_id": part.tool_call_id, "content": str(content)}
                )
            elif kind == "text":
                shown.append({"role": "assistant", "content": content})
            elif kind == "tool-call":
                function = {"name": part.tool_name, "arguments": part.args_as_json_str()}
                call = {"id": part.tool_call_id, "type": "function", "function": function}
                shown.append({"role": "assistant", "content": "", "tool_calls": [call]})
        return shown


class AgentFramework(Peer):
    """ContextWindowCompactionStrategy: tool results at half the budget, the oldest at the line."""

    def begin(self) -> None:
        import agent_framework as framework

        self.framework = framework
        self.counter = framework.CharacterEstimatorTokenizer()
        self.strategy = framework.ContextWindowCompactionStrategy(
            max_context_window_tokens=round(self.line_tokens / LINE_SHARE),
            max_output_tokens=1,
            tokenizer=self.counter,
        )

    def typed(self, message: Chat, usage: Chat | None) -> Any:
        make, content = self.framework.Content, []
        if message["role"] == "tool":
            content = [
                make.from_function_result(message["tool_call_id"], result=message["content"])
            ]
        else:
            if message.get("content"):
                content.append(make.from_text(str(message["content"])))
            content += [
                make.from_function_call(
                    c["id"], c["function"]["name"], arguments=c["function"]["arguments"]
                )
                for c in message.get("tool_calls") or ()
            ]
        return self.framework.Message(message["role"], content)

    async def turn(self) -> list[Any]:
        return await self.framework.apply_compaction(
            self.state, strategy=self.strategy, tokenizer=self.counter
        )

    def plain(self, message: Any) -> Any:
        shown: Chat = {"role": str(getattr(message.role, "value", message.role)), "content": ""}
        for part in message.contents:
            if part.type == "text":
                shown["content"] += part.text or ""
            elif part.type == "function_call":
                arguments = part.arguments
                words = arguments if isinstance(arguments, str) else json.dumps(arguments)
                call = {
                    "id": part.call_id,
                    "type": "function",
                    "function": {"name": part.name, "arguments": words},
                }
                shown.setdefault("tool_calls", []).append(call)
            elif part.type == "function_result":
                shown |= {"role": "tool", "tool_call_id": part.call_id}
                shown["content"] += str(part.result)
        return shown


PEERS = {
    "langchain_summary": LangChainSummary,
    "langchain_editing": LangChainEditing,
    "deepagents": DeepAgents,
    "litellm": LiteLLM,
    "headroom": Headroom,
    "openai_agents": OpenAIAgents,
    "openai_agents_newest": OpenAIAgentsNewest,
    "openai_agents_in_memory": OpenAIAgentsInMemory,
    "pydantic_ai": PydanticAI,
    "agent_framework": AgentFramework,
}


def flat(messages: list[Any]) -> list[Chat]:
    return [one for m in messages for one in (m if isinstance(m, list) else [m])]


async def timed(peer: Peer, new: list[Chat]) -> float:
    """Take a turn; give its milliseconds."""
    peer.add(new)
    began = time.process_time()
    await peer.turn()
    seconds = time.process_time() - began
    if isinstance(peer, PydanticAI):
        began = time.process_time()
        await peer.overhead()
        seconds = max(0.0, seconds - (time.process_time() - began))
    return seconds * 1_000


async def serve(peer: Peer) -> None:
    out = sys.stdout
    sys.stdout = sys.stderr  # what a library prints is not an answer
    for line in sys.stdin:
        asked = json.loads(line)
        answer: dict[str, Any] = {"ms": []}
        ends = time.monotonic() + asked.get("seconds", 0)
        for new in asked.get("turns", ()):
            if time.monotonic() > ends and len(answer["ms"]) >= FEWEST_TURNS:
                break
            answer["ms"].append(await timed(peer, new))
        if "new" in asked:
            peer.add(asked["new"])
            sent = flat([peer.plain(message) for message in await peer.turn()])
            answer = {"summaries": peer.summaries, "messages": sent}
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    asyncio.run(serve(PEERS[sys.argv[1]](int(sys.argv[2]))))
