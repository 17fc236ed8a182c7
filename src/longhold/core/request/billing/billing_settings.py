"""Caching and counting rules that providers leave open, and sizes chosen here.

Published rules are constants in the modules that follow them. Each open rule is a field set to its
likeliest reading, so that a test can choose another.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BillingSettings:
    long_entry_refreshed_by_short_marker: bool = True
    """Open: whether reading a 1h entry through a 5m breakpoint renews its hour."""
    thinking_ahead_models: frozenset[str] = frozenset()
    """Open: models on which changed thinking or effort also loses the cached tools and system."""
    lifetime_ratio: float = 1.0
    """Open: providers may evict early. Below 1.0, entries live only this share of their time."""
    trigger_is_inclusive: bool = False
    """Open: whether a trigger fires at its value (>=) or past it (>)."""
    cleared_placeholder: str = "[tool result cleared]"
    short_prefix_uses_slot: bool = True
    """Open: whether a breakpoint on a prefix under the minimum counts towards the four."""
    default_effort: str = "high"
    """Stating the default effort equals omitting it. Documented as `high`."""
    acts_on_cache_edits: bool = True
    """False imitates a proxy or older server, which accepts the blocks but ignores them."""
    acts_on_context_management: bool = True
    """The same for context management."""
    enforces_binding: bool = True
    """Accounts created since 2026-08-31 have thinking bound to its prefix by default."""
    accepts_foreign_thinking: bool = False
    """Accept foreign signatures, to replay recordings. The API refuses them."""
    scales_tokens: bool = True
    """Count newer models' tokens about 30 % higher, as their tokenizer does."""
    position_overhead_tokens: int = 3
    """Tokens that frame each block in the rendered prompt."""
    image_tokens: int = 1_600
    """Roughly a full-size image. The simulator does not look inside."""
    document_tokens: int = 3_000
    """Roughly two pages of a PDF. The simulator does not look inside."""
    token_memo_blocks: int = 200_000
    """Number of stored counts, so that a growing session is counted once; about 30 MB when full."""
    text_memo_chars: int = 50_000_000
    """Size of stored texts and digests: 500 sessions of 100 KB."""
    openai_cache_seconds: float = 0.0
    """How long unused prefixes are kept; 0 is the time of each model's provider."""
    secret: bytes = b"longhold simulator"
    """Signs thinking and compactions. The fixed default keeps them valid after a restart."""
