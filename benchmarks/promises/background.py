"""Whether background work continues when the user stops a turn."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from longhold.agent.agent import Agent
from longhold.agent.build import build_agent
from longhold.core.log.entries import Dreamt, Failed, Noted, Remembered
from longhold.core.models import open_model
from longhold.simulator import BrainAnswer, BrainRequest, run_simulator
from longhold.simulator.brains import text
from promises.memories import UNBOUNDED, remember

JOBS = {"notes": Noted, "memory": Remembered, "dream": Dreamt}
"""Each with what it leaves when it comes to its end."""
PATIENCE_SECONDS = 60.0


class Slow:
    """Answers the first message at once, and everything else when it is let go."""

    def __init__(self) -> None:
        self.may_answer = threading.Event()
        self.waiting: list[str] = []

    async def answer(self, request: BrainRequest) -> BrainAnswer:
        last = request.messages[-1]["content"][-1].get("text", "")
        if last != "first":
            self.waiting.append(last)
            await until(self.may_answer.is_set)
        return BrainAnswer(blocks=(text("Nothing to change."),))


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds():  # noqa: ASYNC110 - what is waited for tells nobody
            await asyncio.sleep(0.01)


async def background_survives_abort(project: Path) -> float:
    """Return the share of jobs that came to their end although the turn beside them was stopped."""
    remember(project)
    brain, given = Slow(), UNBOUNDED
    settings = replace(
        given,
        memory=replace(given.memory, extract="always", consent="write"),
        notes=replace(given.notes, first_tokens=1, model=True, model_when="always"),
        dream=replace(given.dream, where="always", sessions=0, after_hours=0.0),
    )
    with run_simulator(brain) as simulator:
        model = open_model("simulated/claude-sonnet-5-5", base_url=simulator.url, api_key="any")
        agent = await build_agent(model, directory=project, mode="bypass", settings=settings)
        try:
            await _play(agent, "first")
            await until(lambda: len(brain.waiting) >= len(JOBS))
            turn = asyncio.create_task(_play(agent, "second"))
            await until(lambda: "second" in brain.waiting)
            agent.abort.set()
            await turn
            brain.may_answer.set()
            await agent.background.drain(PATIENCE_SECONDS)
        finally:
            brain.may_answer.set()
            await agent.close()
    history = agent.session.view.history
    failed = {entry.what for entry in history if isinstance(entry, Failed)}
    done = [
        name not in failed and any(isinstance(entry, kind) for entry in history)
        for name, kind in JOBS.items()
    ]
    return sum(done) / len(done)


async def _play(agent: Agent, prompt: str) -> None:
    async for _ in agent.run(prompt):
        pass
