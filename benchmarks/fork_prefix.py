"""The share of readable tokens that is read from the cache: by a session, by forks, and locally.

All calls go over HTTP with the official SDK to the simulator, whose cache follows the published
rules; its answers take a moment to begin, so calls sent meanwhile read nothing, as in life.

`session_read_share`: a session of 200 turns with tool calls and no edits; tokens read over tokens
up to the last marker of the call before, over all calls. `fork_read_share`: the same for forks of
that session against their parent's last call; `fork_usd` beside `fork_unshared_usd`, the price of
the same question with a system prompt of its own. `ten_forks_cost_ratio`: what ten forks that
start together on a cold cache pay for their prefixes, over what one pays; beside it the same ten
that do not wait for each other, and ten on a warm cache. `local_prefill_ratio`: tokens a local
model evaluates for a fork that shares its parent's prefix over those for one that does not, with
the ratio of wall times; null where no local model is installed.

    python benchmarks/fork_prefix.py [--turns 200] [--tokens 100000] [--json]
"""

import asyncio
import random
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from anthropic import AsyncAnthropic

from harness import LocalModel, installed_path, make_parser, print_result, temporary_home
from longhold.core.log.entries import Framed, Replied, Section
from longhold.core.messages import Usage
from longhold.core.models.clients import wrap_client
from longhold.core.models.prices import cost
from longhold.core.models.protocol import Model, collect
from longhold.core.tools.context import ToolContext
from longhold.core.turn.fork.asking import ForkReply, ForkRequest, make_placeholders
from longhold.core.turn.fork.prefix import Prefix
from longhold.core.turn.fork.run import Forks, PrefixLeader
from longhold.core.turn.round import Toolbox
from longhold.errors import ConfigError
from longhold.session.session import Session
from longhold.simulator import (
    BrainAnswer,
    BrainRequest,
    RunningServer,
    SimulatorClock,
    SimulatorSettings,
    run_simulator,
)
from longhold.simulator.brains import text, tool_use

MODEL = "claude-sonnet-5-5"
LOCAL = "local/smollm2"
LOCAL_TOKENS = 1_200
"""Long enough to tell prefill from the rest, short enough for half a core."""
LOCAL_OUTPUT_TOKENS = 8
"""A short answer: it is the prompt that is measured."""
FORKS = 10
FORK_EVERY_TURNS = 20
FIRST_BYTE_SECONDS = 0.05
"""Far longer than ten requests need to be sent, far shorter than a provider takes."""
COLD_SECONDS = 400.0
WORDS = Path(__file__).read_text(encoding="utf-8").split()
TOKENS_PER_WORD = 2.8
"""What the simulator counts for a turn, for each word that is asked of `turn`."""
QUESTION = "Sum up in one sentence what was done so far."


def prose(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(WORDS, k=words))


class Worker:
    """Calls one or two tools for each thing the user says, then answers."""

    def answer(self, request: BrainRequest) -> BrainAnswer:
        """Answer the same to the same conversation."""
        last = request.messages[-1]["content"]
        rng = random.Random(f"{len(request.messages)} {str(last)[-200:]}")
        is_result = isinstance(last, list) and last[0].get("type") == "tool_result"
        if is_result or not request.tools:
            return BrainAnswer(blocks=(text(prose(rng, 30)),))
        calls = [tool_use("Read", {"n": rng.random()}) for _ in range(rng.randint(1, 2))]
        return BrainAnswer(blocks=(text(prose(rng, 10)), *calls))


@dataclass(slots=True)
class Talk:
    """A session on the simulator, its client and its forks."""

    session: Session
    client: AsyncAnthropic
    forks: Forks
    rng: random.Random

    async def turn(self, words: int) -> None:
        """Let the user say something and play the turn to its end."""
        self.session.user(prose(self.rng, words // 3))
        while True:
            request = await self.session.prepare()
            response = await self.client.messages.create(**request.kwargs)
            await self.session.record(response)
            uses = [block.id for block in response.content if block.type == "tool_use"]
            for id in uses:
                self.session.tool_result(id, prose(self.rng, words // 3))
            if not uses:
                return

    async def fork(self, prefix: Prefix | None = None) -> ForkReply:
        return await self.forks.ask(ForkRequest(say=QUESTION, source="bench", prefix=prefix))

    def usages(self) -> list[Usage]:
        """Give the usage of every call of the conversation."""
        entries = self.session.view.history
        return [entry.usage for entry in entries if isinstance(entry, Replied) and entry.usage]


def forks_of(session: Session, model: Model) -> Forks:
    place = Path(session._engine.log.header.directory)
    tool_context = ToolContext(root=place, home=place, scratch=place)
    toolbox = Toolbox(tools=make_placeholders(session._engine.frame), tool_context=tool_context)
    return Forks(parent=session._engine, model=lambda: model, toolbox=lambda: toolbox)


@asynccontextmanager
async def opened(simulator: RunningServer, place: Path, name: str) -> AsyncIterator[Talk]:
    """Open a session that has a cache of its own."""
    rng = random.Random(name)
    tool = {"name": "Read", "description": prose(rng, 200), "input_schema": {"type": "object"}}
    async with AsyncAnthropic(base_url=simulator.url, api_key=name, max_retries=0) as client:
        with Session.open(
            model=MODEL,
            system=prose(rng, 2_000),
            tools=[tool],
            directory=place,
            clock=simulator.simulation.clock.now,
        ) as session:
            forks = forks_of(session, wrap_client(client, MODEL))
            yield Talk(session, client, forks, rng)


def left(usage: Usage) -> int:
    """Count the tokens up to the last marker of a call."""
    return usage.cache_read_tokens + usage.cache_write_tokens


def prompt_usd(usage: Usage, *, is_prefix_only: bool = False) -> float:
    """Price a prompt, or only what of it lies before the marker."""
    paid = cost(
        MODEL,
        uncached_tokens=0 if is_prefix_only else usage.input_tokens,
        read_tokens=usage.cache_read_tokens,
        write_5m_tokens=usage.cache_write_tokens,
    )
    assert paid is not None
    return paid.total


async def measure_session(simulator: RunningServer, place: Path, turns: int, tokens: int) -> dict:
    """Play a long session, fork it now and then, and say what was read of what could be."""
    readable = read = fork_readable = fork_read = 0
    async with opened(simulator, place, "session") as talk:
        for turn in range(1, turns + 1):
            await talk.turn(int(tokens / turns / TOKENS_PER_WORD))
            if turn % FORK_EVERY_TURNS == 0:
                fork_readable += left(talk.usages()[-1])
                fork_read += (shared := (await talk.fork()).usage).cache_read_tokens
        usages = talk.usages()
        readable = sum(left(usage) for usage in usages[:-1])
        read = sum(usage.cache_read_tokens for usage in usages[1:])
        unshared = (await talk.fork(in_other_words(talk.session._engine.prefix()))).usage
    return {
        "session_read_share": round(read / readable, 4),
        "session_calls": len(usages),
        "session_tokens": usages[-1].prompt_tokens,
        "fork_read_share": round(fork_read / fork_readable, 4),
        "forks": turns // FORK_EVERY_TURNS,
        "fork_usd": round(prompt_usd(shared), 5),
        "fork_unshared_usd": round(prompt_usd(unshared), 5),
    }


def in_other_words(prefix: Prefix) -> Prefix:
    """Put the same messages behind a system prompt of its own, as one would without forks."""
    frame = Framed(sections=(Section(name="role", text="You sum conversations up."),))
    return Prefix(
        frame=frame,
        messages=prefix.messages,
        model=prefix.model,
        max_output_tokens=prefix.max_output_tokens,
    )


class Impatient(PrefixLeader):
    """Lets everyone start at once."""

    async def wait(self, key: str) -> asyncio.Event | None:
        return None


async def measure_ten(simulator: RunningServer, place: Path, tokens: int) -> dict:
    """Fork one long conversation ten times at once, and compare with once."""
    async with opened(simulator, place, "ten") as talk:
        while not talk.usages() or talk.usages()[-1].prompt_tokens < tokens:
            await talk.turn(int(tokens / 10 / TOKENS_PER_WORD))

        async def usd(count: int, *, cools: bool = True) -> float:
            if cools:
                simulator.simulation.clock.advance(COLD_SECONDS)
            replies = await asyncio.gather(*(talk.fork() for _ in range(count)))
            return sum(prompt_usd(reply.usage, is_prefix_only=True) for reply in replies)

        one, ten, warm = await usd(1), await usd(FORKS), await usd(FORKS, cools=False)
        talk.forks.leader = Impatient()
        apart = await usd(FORKS)
        length = talk.usages()[-1].prompt_tokens
    return {
        "ten_forks_cost_ratio": round(ten / one, 4),
        "ten_forks_unshared_ratio": round(apart / one, 4),
        "ten_warm_forks_ratio": round(warm / one, 4),
        "ten_forks_tokens": length,
    }


async def measure_local(weights: Path | None, place: Path) -> dict:
    """Let a local model answer a fork on its parent's prefix, and the same without sharing."""
    try:
        model = LocalModel(LOCAL, path=weights) if weights else None
    except ConfigError:  # the weights are there, and what runs them is not
        model = None
    if model is None:
        return {"local_prefill_ratio": None, "local_wall_ratio": None}
    try:
        return await _local(model, place)
    finally:
        await model.close()


async def _local(model: LocalModel, place: Path) -> dict:
    rng = random.Random("local")
    with Session.open(
        model=LOCAL, system=prose(rng, 50), directory=place, max_tokens=LOCAL_OUTPUT_TOKENS
    ) as session:
        forks = forks_of(session, model)

        async def ask(prefix: Prefix) -> tuple[int, float]:
            began = time.perf_counter()
            reply = await forks.ask(ForkRequest(say=QUESTION, source="bench", prefix=prefix))
            usage = reply.usage
            return usage.input_tokens + usage.cache_write_tokens, time.perf_counter() - began

        session.user(prose(rng, LOCAL_TOKENS // 3))
        session._engine.record_reply(await collect(model.stream(await session.prepare())))
        prefix = session._engine.prefix()
        shared, shared_seconds = await ask(prefix)
        apart, apart_seconds = await ask(in_other_words(prefix))
    return {
        "local_prefill_ratio": round(shared / apart, 4),
        "local_wall_ratio": round(shared_seconds / apart_seconds, 4),
    }


async def measure(turns: int, tokens: int) -> dict:
    settings = SimulatorSettings(first_byte_delay_seconds=FIRST_BYTE_SECONDS)
    quick = SimulatorSettings()
    weights = installed_path(LOCAL.removeprefix("local/"))
    with temporary_home() as place:
        with run_simulator(
            Worker(), clock=SimulatorClock(is_frozen=True), settings=quick
        ) as simulator:
            found = await measure_session(simulator, place, turns, tokens)
        with run_simulator(
            Worker(), clock=SimulatorClock(is_frozen=True), settings=settings
        ) as slow:
            found |= await measure_ten(slow, place, tokens)
        return found | await measure_local(weights, place)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, turns=200)
    parser.add_argument("--tokens", type=int, default=100_000, help="about how long they get")
    options = parser.parse_args(arguments)
    found = asyncio.run(measure(options.turns, options.tokens))
    if found["local_prefill_ratio"] is None:
        print(f"{LOCAL} is not installed: local_* is not measured", file=sys.stderr)
    print_result(found, options.json)


if __name__ == "__main__":
    main()
