"""A local server that speaks the providers' APIs, with a faithful prompt cache.

A brain supplies the answers. Billing, refusals and caching follow the published rules.
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
