"""A provider that fails in one way at one step of a session, over HTTP, and then works again."""

import asyncio
import json
from pathlib import Path

from faults.probing import LOOK, probing_loop
from faults.tally import Tally
from harness import temporary_home
from longhold.core.log import load
from longhold.core.log.entries import Replied
from longhold.core.messages import text_of
from longhold.core.messages.rules import violations
from longhold.core.models.anthropic import AnthropicModel
from longhold.core.models.steady import Patience
from longhold.core.request.billing.api_request import ERROR_TYPES
from longhold.core.turn.loop import Loop, Stopped
from longhold.errors import LongholdError
from longhold.session.session import Session
from longhold.simulator import BrainAnswer, BrainRequest, run_simulator
from longhold.simulator.brains import text, tool_use
from longhold.simulator.faults import STREAM_FAULTS

MODEL = "claude-sonnet-4-6"
STEPS = 4
RUN_SECONDS = 30.0
"""A run that takes longer hangs."""
KINDS = (
    *(f"{status}:0" for status in ERROR_TYPES),
    *(f"{kind}:{after}" for kind in STREAM_FAULTS for after in (0, 1, 3, 6, 9)),
)


class Stepper:
    """Calls a tool a few times, going by the results it sees, and ends."""

    def answer(self, request: BrainRequest) -> BrainAnswer:
        done = json.dumps(request.messages).count('"tool_result"')
        if done >= STEPS - 1:
            return BrainAnswer(blocks=(text("All is done."),))
        return BrainAnswer(blocks=(text("On."), tool_use("Look", {"at": str(done)})))


async def provider_faults(most: int) -> Tally:
    """Inject each kind of fault at each step, `most` cases at most."""
    tally = Tally()
    cases = [(kind, step) for step in range(STEPS) for kind in KINDS][:most]
    with run_simulator(Stepper()) as server:
        for kind, step in cases:
            server.simulation.faults.clear()
            server.simulation.faults.plan({"queue": ["none"] * step + [kind]})
            with temporary_home() as place:
                await _case(place, server.url, f"{kind} at {step}", tally)
    return tally


async def _case(place: Path, url: str, name: str, tally: Tally) -> None:
    tally.faults += 1
    model = AnthropicModel(MODEL, base_url=url, api_key="x")
    session = Session.open(model=MODEL, tools=[LOOK.definition()], directory=place)
    loop = _loop(session, model, place)
    end: Stopped | None = None
    try:
        async with asyncio.timeout(RUN_SECONDS):
            end = await _run(session, loop, "Do it.")
            if end is None or end.reason != "completed":  # as a user would: try again
                end = await _run(session, loop, "Go on.")
    except TimeoutError:
        tally.hangs += 1
    except LongholdError:
        pass
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        tally.crashed(name, error)
    finally:
        session.close()
        await model.close()
    tally.crashes += bool(violations(session.view.messages()))
    entries = load(session._engine.log.path).entries
    said = [text_of(entry.content) for entry in entries if isinstance(entry, Replied)]
    if end is not None and end.reason == "completed" and end.text not in said:
        tally.false_statements += 1
        tally.examples.append(f"{name}: completed with {end.text!r}")


def _loop(session: Session, model: AnthropicModel, place: Path) -> Loop:
    patience = Patience(first_event_seconds=1, stall_seconds=0.2, answer_seconds=60)
    return probing_loop(session, model, place, patience)


async def _run(session: Session, loop: Loop, prompt: str) -> Stopped | None:
    session.user(prompt)
    end = None
    async for event in loop.run():
        if isinstance(event, Stopped):
            end = event
    return end
