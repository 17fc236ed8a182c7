"""The time that the agent's loop adds to a turn, without the model and the SDK.

A session of 1,000 messages is built. Then turns of one tool call each run with a model that answers
immediately, so that all the time is Longhold's: preparing, recording, running the tool, settling.
`sdk_ms_p50` is the time of the official SDK for the same request over a transport that answers
immediately: building, encoding, parsing the answer.

    python benchmarks/loop.py [--messages 1000] [--turns 200] [--json]
"""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

from faults.probing import LOOK, probing_loop
from harness import make_parser, percentile, print_result, temporary_home
from longhold.core.messages import Text, ToolUse, Usage
from longhold.core.models.capabilities import Capabilities, capabilities
from longhold.core.models.protocol import Event, Reply, Request, play
from longhold.core.models.steady import Patience
from longhold.core.settings import LoopSettings, Settings
from longhold.core.tools.context import ToolContext
from longhold.core.tools.protocol import Outcome
from longhold.session.session import Session

MODEL = "claude-opus-4-6"
RESULT = "a line of output that a tool gave\n" * 60


class InstantModel:
    """Answers at once with a tool call, and remembers when it was asked."""

    name = MODEL

    def __init__(self, turns: int) -> None:
        self.asked: list[float] = []
        self.answered: list[float] = []
        self.last: Request | None = None
        self._turns = turns

    @property
    def capabilities(self) -> Capabilities:
        return capabilities(MODEL)

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        self.asked.append(time.perf_counter())
        self.last = request
        n = len(self.asked)
        use = ToolUse(id=f"toolu_{n}", name="Read", input={"file_path": f"src/{n}.py"})
        content = (Text(text="Let me look."), use) if n < self._turns else (Text(text="Done."),)
        reply = Reply(
            response_id=f"msg_{n}",
            model=MODEL,
            content=content,
            stop_reason="tool_use" if n < self._turns else "end_turn",
            usage=Usage(input_tokens=20, cache_read_tokens=40_000 + n, output_tokens=30),
        )
        self.answered.append(time.perf_counter())
        for event in play(reply):
            yield event

    async def count(self, request: Request) -> int | None:
        return None

    async def close(self) -> None:
        return None


async def _read(given: object, tool_context: ToolContext) -> Outcome:
    return Outcome(content=RESULT)


TOOL = replace(LOOK, name="Read", path_inputs=("file_path",), run=_read)


def build(directory: Path, messages: int) -> Session:
    """Make a session with that many messages behind it."""
    session = Session.open(
        model=MODEL,
        system="You are a benchmark.",
        tools=[TOOL.definition()],
        directory=directory,
        settings=Settings(loop=LoopSettings()),
    )
    session.user("go")
    for n in range(messages // 2):
        reply = Reply(
            response_id=f"old_{n}",
            model=MODEL,
            content=(
                Text(text="Looking."),
                ToolUse(id=f"old_{n}", name="Read", input={"file_path": "a"}),
            ),
            stop_reason="tool_use",
            usage=Usage(input_tokens=10, cache_read_tokens=n, output_tokens=5),
        )
        session._engine.record_reply(reply, session._layers.after_turn)
        session.tool_result(f"old_{n}", RESULT)
    return session


async def overhead(session: Session, directory: Path, turns: int) -> tuple[list[float], Request]:
    """Play turns and give the time from each answer to the next question, in ms."""
    model = InstantModel(turns)
    loop = probing_loop(session, model, directory, Patience(), TOOL)
    async for _ in loop.run():
        pass
    assert model.last is not None
    gaps = zip(model.asked[1:], model.answered, strict=False)
    return [(asked - answered) * 1_000 for asked, answered in gaps], model.last


ANSWER = b"""event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Done."}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2}}

event: message_stop
data: {"type":"message_stop"}

"""


async def sdk_ms(request: Request, times: int = 15) -> float:
    """Time the official SDK alone on the same request."""
    import httpx2
    from anthropic import AsyncAnthropic

    def answer(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, content=ANSWER, headers={"content-type": "text/event-stream"})

    transport = httpx2.MockTransport(answer)
    client = AsyncAnthropic(api_key="none", http_client=httpx2.AsyncClient(transport=transport))
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        stream = await client.messages.create(**request.kwargs, stream=True)
        async for _ in stream:
            pass
        spent.append((time.perf_counter() - start) * 1_000)
    return statistics.median(spent)


def main() -> None:
    options = make_parser(__doc__, messages=1_000, turns=200).parse_args()
    with temporary_home() as directory:
        session = build(directory, options.messages)
        times, request = asyncio.run(overhead(session, directory, options.turns))
        session.close()
    result = {
        "messages": options.messages,
        "turns": options.turns,
        "overhead_ms_p50": round(statistics.median(times), 3),
        "overhead_ms_p99": round(percentile(times, 0.99), 3),
        "sdk_ms_p50": round(asyncio.run(sdk_ms(request)), 3),
    }
    print_result(result, options.json)


if __name__ == "__main__":
    main()
