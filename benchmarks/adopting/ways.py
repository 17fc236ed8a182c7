"""Programs that hold a long conversation with tools, each with Longhold adopted in one way.

The program is killed at any moment and restarted. It saves what such a program usually saves, and
continues from there. `spent_seconds` is the time it waited for Longhold.
"""

import inspect
import json
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from anthropic import AsyncAnthropic

from longhold import Session
from longhold.core.log.entries import Said
from longhold.core.settings import NotesSettings, Settings

MODEL = "claude-sonnet-4-6"
WINDOW = 32_000
SYSTEM = "You keep the books of a small firm. " * 60
ROWS = 34
"""With two results a turn, some 1,200 tokens are new in each: half of what is sent is history after ten."""
NAMES = ("Miller", "the bakery", "a customer from abroad", "the landlord", "the tax office")
TOOLS = [
    {
        "name": "lookup",
        "description": "Looks an entry of the books up. " * 8,
        "input_schema": {"type": "object", "properties": {"turn": {"type": "integer"}}},
    }
]
_Result = TypeVar("_Result")


class Way(ABC):
    """One way to adopt Longhold: a program that talks for some turns, from wherever it stands."""

    name: str
    word = "session"
    """Lines of the program that have this word are there for Longhold."""
    needs: tuple[str, ...] = ()
    """Packages without which it cannot be tried."""

    def __init__(self, place: Path, client: AsyncAnthropic, turns: int) -> None:
        self.place, self.client, self.turns = place, client, turns
        self.spent_seconds = 0.0
        """What was spent in Longhold since the last turn."""

    @abstractmethod
    async def talk(self) -> None:
        """Go on until the last turn is answered."""

    @classmethod
    def lines(cls) -> int:
        source = inspect.getsource(cls.talk).splitlines()[1:]
        return sum(cls.word in line.lower() for line in source)

    @classmethod
    def missing(cls) -> str:
        """Say what is not installed that it needs."""
        return ", ".join(name for name in cls.needs if find_spec(name) is None)

    async def timed(self, work: Awaitable[_Result]) -> _Result:
        began = time.perf_counter()
        found = await work
        self.spent_seconds += time.perf_counter() - began
        return found

    def watch(self) -> None:
        """Time what an adapter waits for its sessions, which the program does not see."""

        def timed(method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
            @wraps(method)
            async def run(*given: Any, **named: Any) -> Any:
                return await self.timed(method(*given, **named))

            return run

        for name in ("follow", "record"):
            setattr(Session, name, timed(getattr(Session, name)))

    def looked_up(self, given: dict) -> str:
        """Run the tool: it leaves a trace, as a tool with a side effect would."""
        name = f"{given['turn']}/{given['step']}"
        with (self.place / "ran.txt").open("a") as file:
            file.write(f"{name}\n")
        dice = random.Random(name)
        rows = [
            f"row {n}: {dice.choice(NAMES)} paid {dice.randrange(900)} on time" for n in range(ROWS)
        ]
        return "\n".join([f"entry {name}", *rows])

    def finished(self, turn: int) -> None:
        """Note that a turn is done, and what Longhold took of it."""
        with (self.place / "turns.txt").open("a") as file:
            file.write(f"{turn} {self.spent_seconds * 1e3:.3f}\n")
        self.spent_seconds = 0.0

    def options(self) -> dict[str, Any]:
        """Return what every adapter is told besides its model."""
        settings = Settings(notes=NotesSettings(on=False))
        return {"window": WINDOW, "settings": settings, "directory": self.place}


class SessionWay(Way):
    """An own loop around a plain session."""

    name = "session"

    async def talk(self) -> None:
        settings = Settings(notes=NotesSettings(on=False))
        options = {"client": self.client, "directory": self.place}
        try:
            session = Session.resume("books", **options)
        except LookupError:
            session = Session.open(
                id="books", model=MODEL, system=SYSTEM, tools=TOOLS, window=WINDOW,
                max_tokens=1_024, settings=settings, **options,
            )  # fmt: skip
        said = sum(isinstance(e, Said) and not e.hidden for e in session.view.history)
        turn = said - (0 if session._engine.is_answered() else 1)
        while turn < self.turns:
            if session._engine.is_answered():
                session.user(f"This is turn {turn}: what do the books say?")
            while True:
                request = await self.timed(session.prepare())
                response = await self.client.messages.create(**request.kwargs)
                await self.timed(session.record(response))
                calls = [block for block in response.content if block.type == "tool_use"]
                for call in calls:
                    with session.running(call.id):
                        output = self.looked_up(call.input)
                    session.tool_result(call.id, output)
                if not calls:
                    break
            self.finished(turn)
            turn += 1
        session.close()


class FollowWay(Way):
    """A program that keeps its list of messages itself, and saves it."""

    name = "follow"

    async def talk(self) -> None:
        saved = self.place / "messages.json"
        messages = json.loads(saved.read_text()) if saved.exists() else []
        options = {"client": self.client, "directory": self.place}
        try:
            session = Session.resume("books", **options)
        except LookupError:
            settings = Settings(notes=NotesSettings(on=False))
            session = Session.open(
                id="books", model=MODEL, window=WINDOW, max_tokens=1_024, settings=settings,
                **options,
            )  # fmt: skip
        turn = sum(isinstance(m["content"], str) and m["role"] == "user" for m in messages)
        if messages and not _is_answered(messages):
            turn -= 1
        while turn < self.turns:
            if not messages or _is_answered(messages):
                messages.append({"role": "user", "content": f"This is turn {turn}: what now?"})
            while not _is_answered(messages):
                request = await self.timed(session.follow(messages, system=SYSTEM, tools=TOOLS))
                response = await self.client.messages.create(**request.kwargs)
                await self.timed(session.record(response))
                blocks = [block.model_dump(exclude_none=True) for block in response.content]
                messages.append({"role": "assistant", "content": blocks})
                results = [
                    {
                        "type": "tool_result",
                        "tool_use_id": block["id"],
                        "content": self.looked_up(block["input"]),
                    }
                    for block in blocks
                    if block["type"] == "tool_use"
                ]
                if results:
                    messages.append({"role": "user", "content": results})
                save(saved, messages)
            self.finished(turn)
            turn += 1
        session.close()


class LangChainWay(Way):
    """An agent of LangChain, whose program saves its messages."""

    name, word = "langchain", "longhold"
    needs = ("langchain", "langchain_anthropic")

    async def talk(self) -> None:
        from langchain.agents import create_agent
        from langchain_anthropic import ChatAnthropic
        from langchain_core.messages import HumanMessage, messages_from_dict, messages_to_dict

        from longhold.adapters.langchain import LongholdMiddleware

        def lookup(turn: int, step: int) -> str:
            """Looks an entry of the books up."""
            return self.looked_up({"turn": turn, "step": step})

        self.watch()
        saved = self.place / "messages.json"
        messages = messages_from_dict(json.loads(saved.read_text())) if saved.exists() else []
        model = ChatAnthropic(
            model=MODEL, base_url=str(self.client.base_url), api_key="x", max_tokens=1_024
        )
        longhold = LongholdMiddleware("books", **self.options())
        agent = create_agent(model, [lookup], system_prompt=SYSTEM, middleware=[longhold])
        turn = sum(isinstance(message, HumanMessage) for message in messages)
        is_open = bool(messages) and messages[-1].type != "ai"
        turn -= is_open
        while turn < self.turns:
            if not is_open:
                messages.append(HumanMessage(question(turn)))
            is_open = False
            async for state in agent.astream({"messages": messages}, stream_mode="values"):
                if not getattr(state["messages"][-1], "tool_calls", ()):
                    messages = state["messages"]
                    save(saved, messages_to_dict(messages))
            self.finished(turn)
            turn += 1


class PydanticAIWay(Way):
    """An agent of Pydantic AI, whose program saves the messages of each run."""

    name, word = "pydantic_ai", "longhold"
    needs = ("pydantic_ai",)

    async def talk(self) -> None:
        from pydantic_ai import Agent, ModelMessagesTypeAdapter
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        from longhold.adapters.pydantic_ai import LongholdCapability

        def lookup(turn: int, step: int) -> str:
            """Looks an entry of the books up."""
            return self.looked_up({"turn": turn, "step": step})

        self.watch()
        saved = self.place / "messages.json"
        history = ModelMessagesTypeAdapter.validate_json(
            saved.read_bytes() if saved.exists() else b"[]"
        )
        model = AnthropicModel(MODEL, provider=AnthropicProvider(anthropic_client=self.client))
        longhold = LongholdCapability("books", **self.options())
        agent = Agent(model, instructions=SYSTEM, tools=[lookup], capabilities=[longhold])
        parts = [part for message in history for part in message.parts]
        turn = sum(part.part_kind == "user-prompt" for part in parts)
        while turn < self.turns:
            run = await agent.run(question(turn), message_history=history)
            history = run.all_messages()
            save(saved, json.loads(run.all_messages_json()))
            self.finished(turn)
            turn += 1


class OpenAIAgentsWay(Way):
    """An agent of OpenAI's kit over a chat endpoint, whose program saves the items of each run."""

    name, word = "openai_agents", "longhold"
    needs = ("agents",)

    async def talk(self) -> None:
        from openai import AsyncOpenAI

        from agents import (
            Agent,
            OpenAIChatCompletionsModel,
            Runner,
            function_tool,
            set_tracing_disabled,
        )
        from longhold.adapters.openai_agents import LongholdHooks

        @function_tool
        def lookup(turn: int, step: int) -> str:
            """Looks an entry of the books up."""
            return self.looked_up({"turn": turn, "step": step})

        self.watch()
        set_tracing_disabled(True)
        saved = self.place / "messages.json"
        items = json.loads(saved.read_text()) if saved.exists() else []
        url = str(self.client.base_url).rstrip("/")
        client = AsyncOpenAI(base_url=f"{url}/v1", api_key="x")
        agent = Agent(
            name="books",
            instructions=SYSTEM,
            tools=[lookup],
            model=OpenAIChatCompletionsModel(MODEL, client),
        )
        longhold = LongholdHooks("books", **self.options())
        turn = sum(item.get("role") == "user" for item in items)
        while turn < self.turns:
            items.append({"role": "user", "content": question(turn)})
            run = await Runner.run(agent, items, hooks=longhold, run_config=longhold.run_config())
            items = run.to_input_list()
            save(saved, items)
            self.finished(turn)
            turn += 1


WAYS: dict[str, type[Way]] = {
    way.name: way for way in (SessionWay, FollowWay, LangChainWay, PydanticAIWay, OpenAIAgentsWay)
}


def question(turn: int) -> str:
    return f"This is turn {turn}: what now?"


def _is_answered(messages: list) -> bool:
    return bool(messages) and messages[-1]["role"] == "assistant"


def save(path: Path, messages: list) -> None:
    new = path.with_suffix(".new")
    new.write_text(json.dumps(messages))
    new.replace(path)
