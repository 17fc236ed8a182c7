"""How prompts are cached and counted, where the providers leave it open or we chose a size.

The published rules are constants in the modules that follow them. What the documentation leaves
open is a field here, set to the likeliest reading, so that a test or a what-if can take the other.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BillingSettings:
    long_entry_refreshed_by_short_marker: bool = True
    """Open: whether reading a 1h entry through a 5m marker renews its hour."""
    thinking_ahead_models: frozenset[str] = frozenset()
    """Open: the models that render thinking and effort before the tools; on these a change of
    either loses the tools and the system too."""
    lifetime_ratio: float = 1.0
    """Open: providers may evict early. Below 1.0, entries live only this share of their time."""
    trigger_is_inclusive: bool = False
    """Open: whether a trigger fires at its value (>=) or past it (>)."""
    cleared_placeholder: str = "[tool result cleared]"
    """Open: the text that stands where a result was cleared."""
    short_prefix_uses_slot: bool = True
    """Open: whether a marker on a prefix under the minimum counts towards the four."""
    default_effort: str = "high"
    """Effort equal to the default is the same as none; documented as `high`."""
    acts_on_cache_edits: bool = True
    """A proxy or an older server takes the header and the blocks, and leaves all as it is."""
    acts_on_context_management: bool = True
    """The same for edits of the prompt."""
    enforces_binding: bool = True
    """Accounts made since 2026-08-31 have thinking bound to its prefix by default."""
    accepts_foreign_thinking: bool = False
    """Take signatures we did not make, to replay recordings; the API refuses them."""
    scales_tokens: bool = True
    """Count newer models' tokens about 30 % higher, as their tokenizer does."""
    position_overhead_tokens: int = 3
    """Each block carries some framing of its own in the rendered prompt."""
    image_tokens: int = 1_600
    """About what a full-size image costs; the simulator does not look inside."""
    document_tokens: int = 3_000
    """About two pages of a PDF; the simulator does not look inside."""
    token_memo_blocks: int = 200_000
    """Counts remembered, so that a growing session is counted once; about 30 MB when full."""
    text_memo_chars: int = 50_000_000
    """Texts remembered with their digests: five hundred sessions of 100 KB."""
    openai_cache_seconds: float = 600.0
    """OpenAI keeps prefixes for five to ten idle minutes."""
    secret: bytes = b"longhold simulator"
    """Signs thinking and compactions; shared by default so that a restart still knows them."""
