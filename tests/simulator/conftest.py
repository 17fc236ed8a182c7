"""A simulator for each test: its own cache, a frozen clock, and both official clients."""

import asyncio
import json

import anthropic
import openai
import pytest

from longhold.core.request.billing.api_request import ApiError, Caller, parse_request
from longhold.simulator import SimulatorClock, SimulatorSettings, run_simulator
from longhold.simulator.brains import EchoBrain
from longhold.simulator.simulation import Simulation


@pytest.fixture
def simulate():
    """Start simulators that end with the test."""
    open_simulators = []

    def start(brain=None, **settings):
        context = run_simulator(
            brain=brain or EchoBrain(),
            settings=SimulatorSettings(**settings),
            clock=SimulatorClock(is_frozen=True),
        )
        open_simulators.append(context)
        return context.__enter__()

    yield start
    for context in open_simulators:
        context.__exit__(None, None, None)


@pytest.fixture
def claude():
    """Make an official Anthropic client for a simulator."""
    clients = []

    def connect(simulator, key="key", **options):
        client = anthropic.Anthropic(base_url=simulator.url, api_key=key, **options)
        clients.append(client)
        return client

    yield connect
    for client in clients:
        client.close()


@pytest.fixture
def gpt():
    """Make an official OpenAI client for a simulator."""
    clients = []

    def connect(simulator, key="key", **options):
        client = openai.OpenAI(base_url=f"{simulator.url}/v1", api_key=key, **options)
        clients.append(client)
        return client

    yield connect
    for client in clients:
        client.close()


class Api:
    """The simulated service without HTTP: bodies in, JSON out, refusals raised."""

    def __init__(self, brain=None, **settings):
        self.simulation = Simulation(
            brain or EchoBrain(), SimulatorSettings(**settings), SimulatorClock(is_frozen=True)
        )

    def create(self, *, betas=(), workspace="w", version="2026-10-21", **body):
        """Create a message and let its first byte leave."""
        outcome = asyncio.run(
            self.simulation.create(*self._request(body, betas, workspace, version))
        )
        self.simulation.begin(outcome)
        self.simulation.record(outcome)
        return outcome.message

    def count(self, *, betas=(), workspace="w", version="2026-10-21", **body):
        """Count a request's tokens."""
        return self.simulation.count(*self._request(body, betas, workspace, version))

    def refusal(self, **body):
        """Give the refusal a request meets."""
        with pytest.raises(ApiError) as raised:
            self.create(**body)
        return raised.value

    def _request(self, body, betas, workspace, version):
        full = {"model": "claude-opus-5", "max_tokens": 1000, **body}
        caller = Caller(workspace=workspace, version=version, betas=frozenset(betas))
        return parse_request(json.dumps(full).encode()), caller


@pytest.fixture
def api():
    """Make simulated services without HTTP."""
    return Api
