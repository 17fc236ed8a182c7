"""A local service that speaks the providers' APIs, with a faithful prompt cache.

`running` serves from a thread for tests and demonstrations, `serve` blocks for the command line.
A brain supplies the answers; billing, refusals and caching follow the published rules.
"""

from holdfast.simulator.brains import Brain, BrainAnswer, BrainRequest
from holdfast.simulator.clock import SimulatorClock
from holdfast.simulator.server import RunningServer, running, serve
from holdfast.simulator.settings import SimulatorSettings

__all__ = [
    "Brain",
    "BrainAnswer",
    "BrainRequest",
    "RunningServer",
    "SimulatorClock",
    "SimulatorSettings",
    "running",
    "serve",
]
