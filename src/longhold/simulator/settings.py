"""Settings of the simulator."""

from dataclasses import dataclass

from longhold.core.request.billing.tokens import BillingSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorSettings(BillingSettings):
    accepts_unknown_models: bool = False  # the API answers 404 for unknown model names
    first_byte_delay_seconds: float = 0.0  # real time before an answer begins, for timing tests
    between_events_seconds: float = 0.0  # real time between streamed events
    delta_chars: int = 48  # length of a streamed delta, about a dozen tokens as with real providers
    remembered_requests: int = 10_000  # number of requests that the statistics list individually
