"""A model and a client that call the simulation directly, without a server or an SDK."""

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from longhold.core.models.anthropic import wire_name
from longhold.core.models.assemble import Assembly
from longhold.core.models.capabilities import capabilities
from longhold.core.models.protocol import Event, Request
from longhold.core.models.translate import explain, read_fault
from longhold.core.request.billing.api_request import ApiError, ApiRequest, Caller, parse_request
from longhold.simulator.brains import Brain, EchoBrain
from longhold.simulator.finishing import new_id
from longhold.simulator.simulation import Simulation
from longhold.simulator.stream import message_events


class SimulatedModel:
    def __init__(self, name: str, simulation: Simulation) -> None:
        self.name, self._simulation = name, simulation
        self.capabilities = capabilities(name)

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        with _explain_errors():
            outcome = await self._simulation.create(*_parse(request))
        self._simulation.begin(outcome)
        self._simulation.record(outcome)
        assembly = Assembly(new_id("req_"))
        for raw in message_events(outcome, self._simulation.settings.delta_chars):
            for event in assembly.feed(raw.data):
                yield event
        for event in assembly.end():
            yield event

    async def count(self, request: Request) -> int | None:
        with _explain_errors():
            return int(self._simulation.count(*_parse(request))["input_tokens"])

    async def close(self) -> None:
        """An in-process model has nothing to close."""


class _Answer(dict[str, Any]):
    """A dictionary whose keys are also attributes, like the SDK's answers."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class OfflineClient:
    """Replaces `anthropic.AsyncAnthropic` in examples. By default, it repeats the last message."""

    def __init__(self, brain: Brain | None = None) -> None:
        self._simulation = Simulation(brain or EchoBrain())
        self.messages = self

    async def create(self, **kwargs: Any) -> _Answer:
        with _explain_errors():
            outcome = await self._simulation.create(*_parse(Request(kwargs=kwargs)))
        self._simulation.begin(outcome)
        answer: _Answer = json.loads(json.dumps(outcome.message), object_hook=_Answer)
        return answer


def _parse(request: Request) -> tuple[ApiRequest, Caller]:
    given = {**request.kwargs, **request.kwargs.get("extra_body", {})}
    given.pop("extra_body", None)
    given["model"] = wire_name(given["model"])
    caller = Caller(workspace="", version="", betas=frozenset(request.betas))
    return parse_request(msgspec.json.encode(given)), caller


@contextmanager
def _explain_errors() -> Iterator[None]:
    try:
        yield
    except ApiError as error:
        raise explain(read_fault(error.body(""), headers={}, request_id="")) from error
