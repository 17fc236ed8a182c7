"""A local service that speaks the providers' APIs, with a faithful prompt cache.

`run_simulator` serves from a thread for tests and demonstrations, `serve` blocks for the command line.
A brain supplies the answers; billing, refusals and caching follow the published rules.
"""

from longhold.core.request.billing.clock import SimulatorClock
from longhold.simulator.brains import Brain, BrainAnswer, BrainRequest
from longhold.simulator.server import RunningServer, run_simulator, serve
from longhold.simulator.settings import SimulatorSettings

__all__ = [
    "Brain",
    "BrainAnswer",
    "BrainRequest",
    "RunningServer",
    "SimulatorClock",
    "SimulatorSettings",
    "run_simulator",
    "serve",
]
