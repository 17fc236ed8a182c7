"""Whether a model is told the truth about tools that were running when the process was killed.

Three programs use the simulator, are killed with SIGKILL at random moments, and restarted: the
command `longhold run`, a custom loop that records when a tool begins, and one that does not. Every
call leaves a mark in a file. A statement is false if the model read that a tool was not run
although its mark exists, that it ran although the mark is missing, or nothing about a call with a
mark.
"""

import asyncio
import multiprocessing
import os
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path

import anthropic

from kill_resume import words_for
from longhold.cli import main
from longhold.core.messages import JsonObject
from longhold.core.turn.repair import INTERRUPTED, MAY_HAVE_RUN
from longhold.session.session import Session
from longhold.simulator import BrainAnswer, BrainRequest, run_simulator
from longhold.simulator.brains import text, tool_use

MODEL = "claude-sonnet-5-5"
TASK = "Charge the customers, one by one."
CHARGE: JsonObject = {
    "name": "charge",
    "description": "Charge a customer.",
    "input_schema": {"type": "object", "properties": {"customer": {"type": "integer"}}},
}
UNKNOWN = (INTERRUPTED, MAY_HAVE_RUN)
"""True whatever happened."""
EARLY_SHARE = 0.15
"""So often a program is killed at any moment of its start, not while it works."""
WORK_SECONDS = 0.4
START_SECONDS = 60.0
TOOL_SECONDS = 0.01
"""Between a tool's mark and its result, so that kills fall there as well."""
PRELOADED = ("anthropic", "longhold.cli.run_command", "longhold.session", "longhold.simulator")
"""What programs import, loaded once in the process that they are forked from."""
MARKED = re.compile(r"customer-(\d+)")


class Charger:
    """Orders two charges at a time, each of another customer, and notes what it is told of them."""

    def __init__(self) -> None:
        self.customers = 0
        self.is_done = False
        self.calls: dict[str, int] = {}
        self.told: dict[str, str] = {}

    def answer(self, request: BrainRequest) -> BrainAnswer:
        for message in request.messages:
            for block in message["content"]:
                self._read(block)
        last = request.messages[-1]["content"][-1]
        if self.is_done or (last["type"] == "text" and TASK not in last["text"]):
            return BrainAnswer(
                blocks=(text("Nothing is left to do."),)
            )  # a fork asks something else
        has_shell = any(tool.get("name") == "Bash" for tool in request.tools)
        return BrainAnswer(blocks=(text("The next two."), *(self._order(has_shell) for _ in "12")))

    def _read(self, block: JsonObject) -> None:
        if block["type"] == "tool_use":
            found = MARKED.search(str(block["input"]))
            assert found is not None
            self.calls[block["id"]] = int(found[1])
        elif block["type"] == "tool_result":
            content = block["content"]
            said = content if isinstance(content, str) else "".join(one["text"] for one in content)
            self.told[block["tool_use_id"]] = said

    def _order(self, has_shell: bool) -> JsonObject:
        self.customers += 1
        name = f"customer-{self.customers}"
        if not has_shell:
            return tool_use("charge", {"customer": name})
        return tool_use("Bash", {"command": f"echo {name} >> marks.txt; sleep {TOOL_SECONDS}"})


def false_ones(brain: Charger, marks: Counter[int]) -> Iterator[str]:
    """Yield every false statement, and every charge the model was told nothing of."""
    for id, customer in brain.calls.items():
        said, times = brain.told.get(id, ""), marks.pop(customer, 0)
        if said in UNKNOWN and times <= 1:
            continue
        is_told_run = not said.startswith("The tool was not run")
        if times != int(is_told_run) or not said:
            yield f"customer {customer}, charged {times} times: {said!r}"
    yield from (f"customer {customer}: charged, and never told" for customer in marks)


async def charge_all(url: str, place: Path, records_beginnings: bool) -> None:
    """Be the program of one's own that is killed and started again."""
    async with anthropic.AsyncAnthropic(base_url=url, api_key="any") as client:
        id = f"charges-{place.name}"
        try:
            session = Session.resume(id)
        except LookupError:
            session = Session.open(id=id, model=MODEL, tools=[CHARGE], directory=place)
        if not session.view.items:
            session.user(TASK)
        while not session._engine.is_answered():
            request = await session.prepare()
            response = await client.messages.create(**request.kwargs)
            await session.record(response)
            for call in response.content:
                if call.type == "tool_use":
                    if records_beginnings:
                        session.tool_began(call.id)
                    with (place / "marks.txt").open("a") as file:
                        file.write(f"{call.input['customer']}\n")
                    await asyncio.sleep(TOOL_SECONDS)
                    session.tool_result(call.id, "charged")
        session.close()


def run_own_loop(url: str, place: Path, *, records_beginnings: bool) -> None:
    asyncio.run(charge_all(url, place, records_beginnings))


def run_command(url: str, place: Path) -> None:
    """Be the command, in the directory of its project."""
    os.chdir(place)
    os.environ["LONGHOLD_HOME"] = f"{place}-home"
    has_begun = (place / "marks.txt").exists()
    words = ("--resume", "newest") if has_begun else ("-p", TASK)
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        main(words_for(url, *words))


PROGRAMS: dict[str, Callable[[str, Path], None]] = {
    "command": run_command,
    "own loop": partial(run_own_loop, records_beginnings=False),
    "own loop, beginnings recorded": partial(run_own_loop, records_beginnings=True),
}


def started(name: str, url: str, place: Path) -> BaseProcess:
    """Start a program in a process of its own that has everything imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    process = context.Process(target=PROGRAMS[name], args=(url, place))
    process.start()
    return process


def killed(name: str, kills: int, seed: int, place: Path) -> list[str]:
    """Kill a program again and again, let it come to its end; return the false statements."""
    place.mkdir(parents=True)
    dice, brain = random.Random(seed), Charger()
    with run_simulator(brain) as simulator:
        start = partial(started, name, simulator.url, place)
        for _ in range(kills):
            before, process = _marks(place).total(), start()
            if dice.random() < EARLY_SHARE:
                time.sleep(dice.uniform(0, WORK_SECONDS))
            else:
                end = time.monotonic() + START_SECONDS
                while _marks(place).total() == before:
                    assert process.is_alive() and time.monotonic() < end, f"{name} does not work"
                    time.sleep(0.005)
                time.sleep(dice.uniform(0, WORK_SECONDS))
            process.kill()
            process.join()
        brain.is_done = True
        start().join()
    return list(false_ones(brain, _marks(place)))


def _marks(place: Path) -> Counter[int]:
    file = place / "marks.txt"
    return Counter(map(int, MARKED.findall(file.read_text()))) if file.exists() else Counter()


def false_statements(place: Path, kills: int, seed: int) -> dict[str, list[str]]:
    """Kill all programs side by side, so many times in all."""
    each = -(-kills // len(PROGRAMS))
    with ThreadPoolExecutor(len(PROGRAMS)) as pool:
        found = {
            name: pool.submit(killed, name, each, seed + i, place / str(i))
            for i, name in enumerate(PROGRAMS)
        }
        return {name: one.result() for name, one in found.items()}
