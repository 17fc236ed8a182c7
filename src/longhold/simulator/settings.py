"""Settings of the simulator."""

from dataclasses import dataclass

from longhold.core.request.billing.billing_settings import BillingSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorSettings(BillingSettings):
    accepts_unknown_models: bool = False
    """Accept unknown model names, for which the API answers 404."""
    first_byte_delay_seconds: float = 0.0
    """Real time before an answer begins, for demonstrations and timing tests."""
    between_events_seconds: float = 0.0
    """Real time between streamed events. 0 sends them without delay."""
    delta_chars: int = 48
    """Characters per streamed delta: about a dozen tokens, as with real providers."""
    remembered_requests: int = 10_000
    """Requests listed individually in the statistics. The totals cover all."""
