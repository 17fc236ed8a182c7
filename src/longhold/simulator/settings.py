"""Everything about the simulator that a user may change, each with its reason."""

from dataclasses import dataclass

from longhold.core.request.billing.settings import BillingSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorSettings(BillingSettings):
    """How the server behaves, in addition to how it caches and counts."""

    compaction_tool_references: int = 1_000
    """Open: how many distinct tools a signed compaction may refer to."""
    accepts_unknown_models: bool = False
    """Answer for unknown model names; the API says 404."""
    requires_key: bool = True
    """Refuse requests without a key, as the API does; any key will do."""
    requires_version: bool = True
    """Refuse requests without the version header, as the API does."""
    max_body_bytes: int = 32 * 1024 * 1024
    """The Messages API's limit, above which it answers 413."""
    first_byte_delay_seconds: float = 0.0
    """Real time before an answer begins, for demonstrations and timing tests."""
    between_events_seconds: float = 0.0
    """Real time between the events of a stream, for the same; 0 sends them at once."""
    delta_chars: int = 48
    """Characters per streamed delta: about a dozen tokens, as providers batch them."""
    stalled_seconds: float = 3_600.0
    """How long a stalled stream stays silent; longer than any client's patience."""
    remembered_requests: int = 10_000
    """Requests listed one by one in the statistics; the totals cover all."""
    remembered_fingerprints: int = 500
    """Requests that diagnostics can still compare with; about 24 bytes per block each."""
