"""Caching and counting rules that differ between accounts, and sizes chosen here."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BillingSettings:
    acts_on_cache_edits: bool = True  # False imitates a server that accepts but ignores the blocks
    acts_on_context_management: bool = True  # the same for context management
    enforces_binding: bool = True  # the default of accounts created since 2026-08-31
    accepts_foreign_thinking: bool = False  # to replay recordings; the API refuses them
    image_tokens: int = 1_600  # Roughly a full-size image. The simulator does not look inside.
    document_tokens: int = 3_000  # Roughly two pages of a PDF. The simulator does not look inside.
    token_memo_blocks: int = 200_000  # stored counts; about 30 MB when full
    text_memo_chars: int = 50_000_000  # size of stored texts and digests: 500 sessions of 100 KB
