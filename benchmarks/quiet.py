"""Random sessions in which nothing changes, against the simulator: every alarm is false.

Shared by the benchmarks that print `false_alarms`. Takes a number of sessions and returns the
counts of sessions, calls and unannounced breaks.
"""

import random
import tempfile
from pathlib import Path

from longhold.core.log.entries import CacheBroke
from longhold.session.session import Session
from longhold.simulator import BrainAnswer, BrainRequest, SimulatorClock, run_simulator
from longhold.simulator.brains import text, thinking, tool_use

WORDS = Path(__file__).read_text(encoding="utf-8").split()
MODELS = ("claude-sonnet-5-5", "claude-opus-5", "claude-haiku-5-5", "claude-haiku-4-5")
BUDGET = {"thinking": {"type": "enabled", "budget_tokens": 1_024}}
"""The oldest of the models thinks only when told to."""


def prose(rng: random.Random, words: int) -> str:
    """Make some text."""
    return " ".join(rng.choices(WORDS, k=words))


class ChanceBrain:
    """Answers by chance: words, now and then thoughts, half of the time tools."""

    def answer(self, request: BrainRequest) -> BrainAnswer:
        """Answer the same to the same conversation."""
        rng = random.Random(f"{len(request.messages)} {str(request.messages[-1])[:300]}")
        blocks = [thinking(prose(rng, 60))] if rng.random() < 0.5 else []
        blocks.append(text(prose(rng, rng.randint(5, 200))))
        if rng.random() < 0.5:
            blocks += [tool_use("Read", {"n": rng.random()}) for _ in range(rng.randint(1, 4))]
        return BrainAnswer(blocks=tuple(blocks))


async def quiet_sessions(count: int) -> dict[str, object]:
    """Run random sessions in which nothing changes, and count the alarms."""
    from anthropic import AsyncAnthropic

    alarms = calls = 0
    clock = SimulatorClock(is_frozen=True)
    with (
        run_simulator(ChanceBrain(), clock=clock) as simulator,
        tempfile.TemporaryDirectory() as name,
    ):
        async with AsyncAnthropic(base_url=simulator.url, api_key="any") as client:
            for seed in range(count):
                rng = random.Random(seed)
                with one_session(rng, Path(name), clock) as session:
                    calls += await live(session, client, clock, rng, str(seed))
                    alarms += sum(
                        isinstance(entry, CacheBroke) and not entry.expected
                        for entry in session.view.history
                    )
    return {"quiet_sessions": count, "quiet_calls": calls, "false_alarms": alarms}


def one_session(rng: random.Random, directory: Path, clock: SimulatorClock) -> Session:
    """Open a session with some model and a prompt of some length."""
    model = rng.choice(MODELS)
    return Session.open(
        model=model,
        system=prose(rng, rng.randint(500, 3_000)),
        tools=[
            {"name": "Read", "description": prose(rng, 200), "input_schema": {"type": "object"}}
        ],
        options=BUDGET if model == MODELS[-1] else None,
        directory=directory,
        clock=clock.now,
    )


async def live(
    session: Session, client: object, clock: SimulatorClock, rng: random.Random, key: str
) -> int:
    """Let a session go its way; count its calls."""
    calls = 0
    for _ in range(rng.randint(1, 5)):
        session.user(prose(rng, rng.randint(1, 600)))
        for _ in range(8):
            clock.advance(rng.uniform(0, 30))
            request = await session.prepare()
            headers = {"anthropic-workspace-id": key}
            response = await client.messages.create(**request.kwargs, extra_headers=headers)
            await session.record(response)
            calls += 1
            uses = [block.id for block in response.content if block.type == "tool_use"]
            for id in uses:
                session.tool_result(id, prose(rng, rng.randint(1, 300)))
            if not uses:
                break
    return calls
