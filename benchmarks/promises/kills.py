"""Whether a model is told the truth about tools that were running when the process was killed.

Three programs work against the simulator, are killed with SIGKILL at random moments and started
again: the command `holdfast run`, a loop of one's own that records when a tool begins, and one that
does not. Every call leaves a mark of its own in a file. A statement is false if the model read that a
tool was not run and its mark is there, that it ran and the mark is not there, or nothing at all about
a call that left a mark.
"""

import asyncio
import multiprocessing
import random
import re
import signal
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from subprocess import DEVNULL, Popen

import anthropic
from kill_resume import command_for

from holdfast.messages import JsonObject
from holdfast.session import Session
from holdfast.simulator import BrainAnswer, BrainRequest, running
from holdfast.simulator.brains import text, tool_use
from holdfast.turn.repair import INTERRUPTED, MAY_HAVE_RUN

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
START_SECONDS = 20.0
TOOL_SECONDS = 0.01
"""Between a tool's mark and its result, so that kills fall there as well."""
PRELOADED = ("anthropic", "holdfast.agent.build", "holdfast.session", "holdfast.simulator")
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
        if self.is_done:
            return BrainAnswer(blocks=(text("All are charged."),))
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
        while not session.engine.is_answered():
            request = await session.prepare()
            response = await client.messages.create(**request.kwargs)
            await session.settle(response)
            for call in response.content:
                if call.type == "tool_use":
                    if records_beginnings:
                        session.tool_began(call.id)
                    with (place / "marks.txt").open("a") as file:
                        file.write(f"{call.input['customer']}\n")
                    await asyncio.sleep(TOOL_SECONDS)
                    session.tool_result(call.id, "charged")
        session.close()


def run_own_loop(url: str, place: Path, records_beginnings: bool) -> None:
    asyncio.run(charge_all(url, place, records_beginnings))


def own_loop(records_beginnings: bool, url: str, place: Path) -> BaseProcess:
    """Start a loop of one's own, in a process that has everything imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    process = context.Process(target=run_own_loop, args=(url, place, records_beginnings))
    process.start()
    return process


class Command:
    """The command `holdfast run`, with the face of a process of multiprocessing."""

    def __init__(self, url: str, place: Path) -> None:
        begun = (place / "marks.txt").exists()
        words = ("--resume", "newest") if begun else ("-p", TASK)
        self._child = Popen(
            command_for(url, *words), cwd=place, stdout=DEVNULL, stderr=DEVNULL
        )

    def kill(self) -> None:
        self._child.send_signal(signal.SIGKILL)

    def join(self) -> None:
        self._child.wait()

    def is_alive(self) -> bool:
        return self._child.poll() is None


STARTS = {
    "command": Command,
    "command again": Command,
    "own loop": partial(own_loop, False),
    "own loop, beginnings recorded": partial(own_loop, True),
}


def killed(name: str, kills: int, seed: int, place: Path) -> list[str]:
    """Kill a program again and again, let it come to its end; return the false statements."""
    place.mkdir(parents=True)
    dice, brain = random.Random(seed), Charger()
    with running(brain) as simulator:
        start = partial(STARTS[name], simulator.url, place)
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
    each = -(-kills // len(STARTS))
    with ThreadPoolExecutor(len(STARTS)) as pool:
        found = {
            name: pool.submit(killed, name, each, seed + i, place / str(i))
            for i, name in enumerate(STARTS)
        }
        return {name: one.result() for name, one in found.items()}
