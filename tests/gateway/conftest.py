"""Gateways in front of a simulator that records its requests."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from gateway_parts import CLIENTS, Reader, Upstream, gateway_to
from longhold.core.http import serve_in_thread, server_of
from longhold.simulator import SimulatorClock, SimulatorSettings
from longhold.simulator.simulation import Simulation


@pytest.fixture(autouse=True)
def _close_clients() -> Iterator[None]:
    yield
    while CLIENTS:
        CLIENTS.pop().close()


@pytest.fixture
def clock():
    return SimulatorClock()


@pytest.fixture
def upstream(clock) -> Iterator[Upstream]:
    made = Upstream(Simulation(Reader(), SimulatorSettings(), clock))
    with serve_in_thread(server_of(made)) as url:
        made.url = url
        yield made


@pytest.fixture
def gateway(upstream, clock):
    """Start gateways in front of the simulator."""
    with ExitStack() as stack:

        def start(settings=None, **options):
            return stack.enter_context(gateway_to(upstream.url, settings, clock, **options))

        yield start
