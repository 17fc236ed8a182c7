"""A provider for programs that adopt Longhold: a window of 32K, and a judge of every request.

The simulator answers. Its requests are recorded and checked by rules that are derived from the
providers' documentation and share no code with Longhold. The model looks up a turn's rows and
relies only on its prompt: it repeats calls that are not there.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from longhold.core.http import serve_in_thread, server_of
from longhold.core.request.billing.api_request import ApiError, Caller, parse_request
from longhold.simulator import BrainAnswer, BrainRequest, SimulatorSettings
from longhold.simulator.brains import text, tool_use
from longhold.simulator.server import application
from longhold.simulator.simulation import Simulation

WINDOW = 32_000
LOCAL = "qwen3-32b"
"""The model of the programs that talk to a chat endpoint."""
CHARS_PER_TOKEN = 3.6
"""For requests to the chat endpoint, which no endpoint counts."""
USD = {"uncached_tokens": 3.0, "write_5m_tokens": 3.75, "write_1h_tokens": 6.0, "read_tokens": 0.3}
USD |= {"output_tokens": 15.0}
"""Per million tokens, for every model, so that programs can be compared."""
TOOLS = ("lookup", "fetch_page", "write_row")
TITLES = ("1. Request and intent", "2. Technical concepts", "4. Errors and fixes")
TITLES += ("5. Problem solving", "7. Pending tasks", "8. Current work", "9. Next step")
_TURN = re.compile(r"\[\[turn (\d+) tools=(\d+) rounds=(\d+)\]\]")
_KEY = re.compile(r"\b\d+\.\d+\.\d+\b")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
Json = dict[str, Any]


class Clerk:
    """Makes a turn's calls, `tools` in parallel for so many `rounds`, and then reports it done."""

    def __init__(self, summarises: bool) -> None:
        self._summarises = summarises
        self.calls: Counter[str] = Counter()
        self.questions = 0

    def answer(self, request: BrainRequest) -> BrainAnswer:
        last = json.dumps(request.messages[-1]["content"])
        if not request.tools or "<summary>" in last or "The notes" in last[:400]:
            return self._write_summary(request)
        seen = "\n".join(json.dumps(one["content"]) for one in request.messages)
        turn, tools, rounds = _TURN.findall(seen)[-1]
        keys = set(_KEY.findall(seen))
        made = next((n for n in range(int(rounds)) if f"{turn}.{n}.0" not in keys), int(rounds))
        if made == int(rounds) or not int(tools):
            words = f"Turn {turn} is done. " + "Some words of the answer. " * 12
            return BrainAnswer(blocks=(text(words),))
        names = [f"{turn}.{made}.{i}" for i in range(int(tools))]
        self.calls.update(names)
        # Without words, because one framework ends a streamed run with the first of them.
        calls = (tool_use(TOOLS[i % 3], {"key": name}) for i, name in enumerate(names))
        return BrainAnswer(blocks=tuple(calls))

    def _write_summary(self, request: BrainRequest) -> BrainAnswer:
        self.questions += 1
        if self._summarises:
            keys = _KEY.findall("".join(json.dumps(one["content"]) for one in request.messages))
            lines = "\n".join(f"## {title}\nRows looked up: {keys[-12:]}." for title in TITLES)
            return BrainAnswer(blocks=(text(f"<summary>\n{lines}\n</summary>"),))
        if self.questions % 2:
            raise ApiError(400, "this model writes no summaries")
        return BrainAnswer(blocks=(text("I am sorry, I cannot help with that."),))


class Provider:
    """The simulator behind a recorder."""

    def __init__(self, summarises: bool) -> None:
        self.clerk = Clerk(summarises)
        settings = SimulatorSettings(accepts_unknown_models=True)
        self.simulation = Simulation(self.clerk, settings)
        self._application = application(self.simulation)
        self.illegal: Counter[str] = Counter()
        self.refused: Counter[int] = Counter()
        """By status; 400s of the summariser that fails are not the program's."""
        self.requests = self.overflows = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/v1/models":
            listed = {"id": LOCAL, "object": "model", "max_model_len": WINDOW}
            await _respond(send, 200, {"object": "list", "data": [listed]})
            return
        body = b""
        while scope["method"] == "POST":
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        parts = iter([{"type": "http.request", "body": body, "more_body": False}])
        if scope["path"].endswith(("/messages", "/chat/completions")):
            self.requests += 1
            given = msgspec.json.decode(body)
            is_chat = scope["path"].endswith("/chat/completions")
            self.illegal.update((judge_chat if is_chat else judge_messages)(given))
            if (tokens := self._count(given, body, is_chat)) > WINDOW:
                self.overflows += 1
                words = f"prompt is too long: {tokens} tokens > {WINDOW} maximum"
                error = {"type": "invalid_request_error", "message": words}
                await _respond(send, 400, {"type": "error", "error": error})
                return

        async def receive_again() -> Any:
            return next(parts, None) or await receive()

        await self._application(scope, receive_again, send)

    def _count(self, given: Json, body: bytes, is_chat: bool) -> int:
        if is_chat:
            return int(len(body) / CHARS_PER_TOKEN)
        known = ("model", "messages", "system", "tools", "thinking", "tool_choice")
        counted = msgspec.json.encode({key: given[key] for key in known if key in given})
        caller = Caller(workspace="judge", version="2026-10-21", betas=frozenset())
        return int(self.simulation.count(parse_request(counted), caller)["input_tokens"])

    def figures(self) -> Json:
        totals = self.simulation.stats.to_json()["totals"]
        return {
            "requests": self.requests,
            "illegal": dict(self.illegal),
            "calls_twice": sum(count - 1 for count in self.clerk.calls.values()),
            "overflows": self.overflows,
            "read_share": round(totals["cache_read_ratio"], 3),
            "usd": round(sum(totals[name] * usd for name, usd in USD.items()) / 1e6, 3),
        }


@contextmanager
def run_provider(*, summarises: bool) -> Iterator[tuple[str, Provider]]:
    provider = Provider(summarises)
    with serve_in_thread(server_of(provider)) as url:
        yield url, provider


async def _respond(send: Any, status: int, body: Json) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": msgspec.json.encode(body)})


def _blocks(content: Any) -> list[Json]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def judge_messages(body: Json) -> Iterator[str]:
    """Yield what the Messages API would refuse, or read differently than it was meant."""
    merged: list[tuple[str, list[Json]]] = []
    for message in body["messages"]:
        if not merged or merged[-1][0] != message["role"]:
            merged.append((message["role"], []))
        merged[-1][1].extend(_blocks(message["content"]))
    names = [tool["name"] for tool in body.get("tools") or ()]
    if len(set(names)) != len(names) or not all(map(_NAME.fullmatch, names)):
        yield "tool names"
    if json.dumps(body).count('"cache_control":') > 4:
        yield "more than four cache breakpoints"
    if not merged or merged[0][0] != "user" or merged[-1][0] != "user":
        yield "first or last message"
    uses = [one["id"] for _, blocks in merged for one in blocks if one["type"] == "tool_use"]
    if len(set(uses)) != len(uses):
        yield "a call id twice"
    asked: list[str] = []
    for role, blocks in merged:
        yield from _judge_blocks(role, blocks, asked)
        asked = [one["id"] for one in blocks if one["type"] == "tool_use"]
    if asked:
        yield "calls without results at the end"


def _judge_blocks(role: str, blocks: list[Json], asked: list[str]) -> Iterator[str]:
    results = [one["tool_use_id"] for one in blocks if one["type"] == "tool_result"]
    if sorted(results) != sorted(asked):
        yield "results do not match the calls before them"
    if any(one["type"] != "tool_result" for one in blocks[: len(results)]):
        yield "text before results"
    if not blocks:
        yield "an empty message"
    if any(one["type"] == "text" and not one["text"].strip() for one in blocks):
        yield "a blank text"
    kinds = {one["type"] for one in blocks}
    if kinds & ({"tool_use"} if role == "user" else {"tool_result", "image"}):
        yield "a block of the other side"


def judge_chat(body: Json) -> Iterator[str]:
    """Yield what a chat endpoint would refuse."""
    waiting: list[str] = []
    seen: set[str] = set()
    for message in body["messages"]:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                yield "a result without a call"
                continue
            waiting.remove(message["tool_call_id"])
            if message.get("content") is None:
                yield "a result without content"
            continue
        if waiting:
            yield "calls without results"
        calls = message.get("tool_calls") or []
        waiting = [call["id"] for call in calls]
        if seen.intersection(waiting):
            yield "a call id twice"
        seen.update(waiting)
        if not message.get("content") and not calls:
            yield "an empty message"
        if not all(isinstance(json.loads(one["function"]["arguments"]), dict) for one in calls):
            yield "arguments that are no object"
    if waiting or body["messages"][-1]["role"] == "assistant":
        yield "the end of the list"
