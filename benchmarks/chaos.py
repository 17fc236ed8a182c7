"""A long session with a model that keeps failing: does every turn end?

The official SDK talks over HTTP to the simulator, which rejects any request that breaks a rule of
the API; `chaos` breaks one call in five, with all kinds of faults equally often. Waiting takes no
time. If the loop gives up a run, it is resumed, as a user would do. `hangs` counts runs that did
not end in time, `rejected` requests that the simulator considered malformed.

    python benchmarks/chaos.py [--turns 500] [--rate 0.2] [--seed 1] [--json]
"""

import asyncio
import time
from collections import Counter
from pathlib import Path

from faults.probing import LOOK, probing_loop
from harness import ChaosModel, make_parser, print_result, temporary_home
from longhold.core.messages import text_of
from longhold.core.messages.rules import violations
from longhold.core.models.anthropic import AnthropicModel
from longhold.core.models.steady import Patience
from longhold.core.turn.loop import Continued, Stopped
from longhold.session.session import Session
from longhold.simulator import BrainAnswer, BrainRequest, run_simulator
from longhold.simulator.brains import text, tool_use

MODEL = "claude-sonnet-4-6"
RUN_SECONDS = 120.0
"""A run that takes longer hangs."""


class Worker:
    """Calls one to three tools in every answer, and rests now and then."""

    def __init__(self) -> None:
        self.asked = 0

    def answer(self, request: BrainRequest) -> BrainAnswer:
        self.asked += 1
        if self.asked % 40 == 0:
            return BrainAnswer(blocks=(text("That part is done."),))
        calls = (tool_use("Look", {"at": f"{self.asked}.{i}"}) for i in range(1 + self.asked % 3))
        return BrainAnswer(blocks=(text("Looking on."), *calls))


async def session_of(turns: int, rate: float, seed: int, url: str, directory: Path) -> dict:
    """Play turns until there are enough of them."""
    session = Session.open(
        model=MODEL, system="A test.", tools=[LOOK.definition()], directory=directory
    )
    model = ChaosModel(AnthropicModel(MODEL, base_url=url, api_key="x"), seed=seed, rate=rate)
    patience = Patience(first_event_seconds=20, stall_seconds=0.2, answer_seconds=60)
    loop = probing_loop(session, model, directory, patience)
    done, hangs, ends, reasons = 0, 0, Counter(), Counter()
    while done < turns and hangs < 3:
        session.user("Go on.")
        try:
            async with asyncio.timeout(RUN_SECONDS):
                async for event in loop.run():
                    if isinstance(event, Continued):
                        reasons[event.reason] += 1
                        done += event.reason == "next_turn"
                    if isinstance(event, Stopped):
                        ends[event.reason] += 1
                    if done >= turns:
                        break
        except TimeoutError:
            hangs += 1
    broken = violations(session.view.messages())
    results = [
        text_of(block.content)
        for m in session.view.messages()
        for block in m.content
        if hasattr(block, "tool_use_id")
    ]
    await model.close()
    session.close()
    return {
        "turns": done,
        "hangs": hangs,
        "injected": len(model.injected),
        "by_kind": dict(Counter(model.injected)),
        "reasons": dict(reasons),
        "ends": dict(ends),
        "broken_rules": len(broken),
        "results": len(results),
    }


def main() -> None:
    options = make_parser(__doc__, turns=500, rate=0.2, seed=1).parse_args()
    with temporary_home() as directory, run_simulator(Worker()) as simulator:
        began = time.perf_counter()
        result = asyncio.run(
            session_of(options.turns, options.rate, options.seed, simulator.url, directory)
        )
        totals = simulator.simulation.stats.to_json()["totals"]
        result["rejected"] = totals["by_status"].get("400", 0)
        result["cache_read_ratio"] = round(totals["cache_read_ratio"], 4)
        result["seconds"] = round(time.perf_counter() - began, 1)
    print_result(result, options.json)


if __name__ == "__main__":
    main()
