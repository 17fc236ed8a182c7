"""A gateway in front of the simulator, and the requests that each received."""

import json
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field

import anthropic
import msgspec

from longhold.core.settings import CostSettings, GatewaySettings, Settings, WindowSettings
from longhold.gateway.conversations import Conversations
from longhold.gateway.server import GatewayOptions, running
from longhold.simulator import BrainAnswer
from longhold.simulator.brains import text, tool_use
from longhold.simulator.server import application
from longhold.simulator.simulation import Simulation

MODEL = "claude-opus-4-8"
SYSTEM = [
    {"type": "text", "text": "You read files. " * 900, "cache_control": {"type": "ephemeral"}}
]
TOOLS = [
    {
        "name": "Read",
        "description": "Reads a file.",
        "input_schema": {"type": "object", "properties": {"file_path": {"type": "string"}}},
    }
]

EAGER = Settings(
    window=WindowSettings(limit_tokens=200_000),
    cost=CostSettings(need_weight=0.0),
    gateway=GatewaySettings(stake_share=1.0),
)
"""Clears whatever pays, whether it may be needed again or not."""


class Reader:
    """Reads one file after the other, then says that it is done; a nudge starts it again."""

    def __init__(self, files=12):
        self.files = files

    def answer(self, request):
        asked = [
            i
            for i, message in enumerate(request.messages)
            if message["role"] == "user"
            and any(block["type"] == "text" for block in message["content"])
        ]
        read = sum(
            block["type"] == "tool_use"
            for message in request.messages[asked[-1] :]
            for block in message["content"]
        )
        if read >= self.files or not request.tools:
            return BrainAnswer(blocks=(text(f"Done after {read}."),))
        return BrainAnswer(blocks=(tool_use("Read", {"file_path": f"/shop/{read}.py"}),))


@dataclass
class Upstream:
    """A provider that remembers the requests as they came."""

    simulation: Simulation
    url: str = ""
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def requests(self):
        return [msgspec.json.decode(body) for body in self.bodies]

    async def __call__(self, scope, receive, send):
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        self.bodies.append(body)
        self.headers.append({k.decode(): v.decode("latin-1") for k, v in scope["headers"]})
        given = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def replay():
            return next(given, None) or await receive()

        await application(self.simulation)(scope, replay, send)


@contextmanager
def gateway_to(url, settings: Settings | None = None, clock=None, **options):
    settings = settings or EAGER
    more = {"clock": clock.now} if clock else {}
    conversations = Conversations(settings, **more)
    chosen = GatewayOptions(upstreams={"anthropic": url, "openai": url}, **options)
    with running(chosen, settings=settings, conversations=conversations) as gateway:
        yield gateway


@contextmanager
def gateway_process(url, *options, open_files=0):
    """Run `longhold gateway` as a process of its own; yield its address, the process, its pages."""
    command = [sys.executable, "-m", "longhold", "gateway", "--port", "0", "--upstream", url]
    if open_files:
        command = ["bash", "-c", f'ulimit -n {open_files}; exec "$@"', "bash", *command]
    process = subprocess.Popen([*command, "--json", *options], stdout=subprocess.PIPE, text=True)
    try:
        said = json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")
        yield said["url"], process, said["pages"]
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


CLIENTS = []
"""The clients of a test, closed after it."""


def client_of(url, key="sk-test", **headers):
    made = anthropic.Anthropic(base_url=url, api_key=key, default_headers=headers, max_retries=0)
    CLIENTS.append(made)
    return made


def marked(messages):
    """Mark the last block, as clients do."""
    *first, last = messages
    content = last["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    *rest, end = blocks
    return [*first, {**last, "content": [*rest, {**end, "cache_control": {"type": "ephemeral"}}]}]


def listing(name, lines=160):
    return "\n".join(f"{name} line {i}: value {i * 7919 % 1000} of the table" for i in range(lines))


class Agent:
    """A client that keeps its own list, reads what it is told to, and knows nothing of us."""

    def __init__(self, url, **headers):
        self.client = client_of(url, **headers)
        self.messages = []
        self.answers = []
        self.headers = []

    def move(self, url):
        """Go on at another address."""
        self.client = client_of(url)

    def ask(self, words, **more):
        """Say something and work until the model is done."""
        self.messages.append({"role": "user", "content": words})
        while True:
            answer = self.call(**more)
            self.messages.append(
                {
                    "role": "assistant",
                    "content": [b.model_dump(exclude_unset=True) for b in answer.content],
                }
            )
            uses = [block for block in answer.content if block.type == "tool_use"]
            if not uses:
                return answer
            results = [
                {
                    "type": "tool_result",
                    "tool_use_id": use.id,
                    "content": listing(f"{use.input['file_path']} at {len(self.messages)}"),
                }
                for use in uses
            ]
            self.messages.append({"role": "user", "content": results})

    def call(self, **more):
        given = {
            "model": MODEL,
            "max_tokens": 1000,
            "system": SYSTEM,
            "tools": TOOLS,
            "messages": marked(self.messages),
        }
        raw = self.client.messages.with_raw_response.create(**given | more)
        self.headers.append(raw.headers)
        answer = raw.parse()
        self.answers.append(answer)
        return answer
