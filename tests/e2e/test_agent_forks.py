"""Ten forks that one answer starts, with the official SDK against the simulator's cache."""

from lazy import needs
from longhold.agent.build import build_agent
from longhold.core.log.entries import Ended, Forked
from longhold.core.models import open_model
from longhold.simulator import BrainAnswer, BrainRequest, run_simulator
from longhold.simulator.brains import text, tool_use

needs("anthropic")

FORKS = 10


class Splitting:
    """Splits the task among forks, and answers each."""

    def answer(self, request: BrainRequest) -> BrainAnswer:
        last = str(request.messages[-1]["content"])
        if "You are now a fork" in last:
            return BrainAnswer(blocks=(text("My part is done."),))
        if "tool_result" in last or "<agent id" in last:
            return BrainAnswer(blocks=(text("All under way."),))
        return BrainAnswer(blocks=tuple(self._start(n) for n in range(FORKS)))

    def _start(self, number):
        given = {"description": "a part", "agent": "fork", "prompt": f"part {number}"}
        return tool_use("Agent", given | {"run_in_background": True})


async def test_ten_forks_pay_for_one_prefix(tmp_path):
    with run_simulator(Splitting()) as simulator:
        model = open_model("simulated/claude-sonnet-5-5", base_url=simulator.url, api_key="x")
        agent = await build_agent(model, directory=tmp_path, system="Be brief. " * 20_000)
        try:
            async for _ in agent.work("Split it."):
                pass
            history = agent.session.view.history
        finally:
            await agent.close()
    forks = [entry.usage for entry in history if isinstance(entry, Forked)]
    states = [entry.state for entry in history if isinstance(entry, Ended)]
    assert states == ["completed"] * FORKS
    prefix = max(usage.prompt_tokens for usage in forks)
    assert prefix > 30_000
    assert all(usage.cache_read_tokens > 0.9 * usage.prompt_tokens for usage in forks)
    assert sum(usage.cache_write_tokens for usage in forks) < 0.5 * prefix
