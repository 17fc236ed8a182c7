"""A local server that implements the providers' APIs, including an accurate prompt cache."""

from typing import TYPE_CHECKING

from longhold.core.request.billing.cache import SimulatorClock
from longhold.simulator.brains import Brain, BrainAnswer, BrainRequest
from longhold.simulator.settings import SimulatorSettings

if TYPE_CHECKING:
    from longhold.simulator.server import RunningServer, run_simulator, serve

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


if not TYPE_CHECKING:  # otherwise a type checker would accept every name

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from longhold.simulator import server

        return getattr(server, name)
