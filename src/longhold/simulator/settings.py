"""Settings of the simulator."""

from dataclasses import dataclass

from longhold.core.request.billing.billing_settings import BillingSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorSettings(BillingSettings):
    compaction_tool_references: int = 1_000
    """Distinct tools that a signed compaction may reference. The API's limit is not known."""
    accepts_unknown_models: bool = False
    """Accept unknown model names, for which the API answers 404."""
    requires_key: bool = True
    """Refuse requests without a key, as the API does. Any key is accepted."""
    requires_version: bool = True
    """Refuse requests without the version header, as the API does."""
    max_body_bytes: int = 32 * 1024 * 1024
    """The limit of the Messages API, above which it answers 413."""
    first_byte_delay_seconds: float = 0.0
    """Real time before an answer begins, for demonstrations and timing tests."""
    between_events_seconds: float = 0.0
    """Real time between streamed events. 0 sends them without delay."""
    delta_chars: int = 48
    """Characters per streamed delta: about a dozen tokens, as with real providers."""
    stalled_seconds: float = 3_600.0
    """How long a stalled stream stays silent: longer than any client's timeout."""
    remembered_requests: int = 10_000
    """Requests listed individually in the statistics. The totals cover all."""
    remembered_fingerprints: int = 500
    """Requests available to diagnostics. Each takes about 24 bytes per block."""
