"""The simulator's own endpoints: clock, faults, statistics, reset.

They are HTTP endpoints so that a test in any language can move time or inject faults.
"""

from holdfast.simulator.errors import ApiError, invalid
from holdfast.simulator.request import JsonObject
from holdfast.simulator.simulation import Simulation


def control(simulation: Simulation, action: str, order: JsonObject) -> JsonObject:
    match action:
        case "stats":
            return simulation.stats.to_json()
        case "clock":
            return _clock(simulation, order)
        case "faults":
            return simulation.faults.plan(order)
        case "reset":
            simulation.reset()
            return {"reset": True}
        case _:
            raise ApiError(404, f"no control action {action!r}")


def advance(simulation: Simulation, seconds: object) -> None:
    """Move the clock; raise a 400 if the amount is invalid."""
    try:
        simulation.clock.advance(float(str(seconds)))
    except ValueError as error:
        raise invalid(f"advance_seconds: {error}") from error


def _clock(simulation: Simulation, order: JsonObject) -> JsonObject:
    if "advance_seconds" in order:
        advance(simulation, order["advance_seconds"])
    return {"now": simulation.clock.now()}
