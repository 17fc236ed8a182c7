"""What may be spent before a run ends cleanly; 0 is no limit."""

from dataclasses import dataclass

from holdfast.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetSettings:
    """What may be spent before a run ends cleanly; 0 is no limit."""

    max_usd: float = setting(0.0, "dollars per session", low=0, personal=True)
    max_tokens: int = setting(0, "tokens per session, read and written", low=0, personal=True)
    max_usd_per_day: float = setting(0.0, "dollars per day over all sessions", low=0, personal=True)
    max_tokens_per_day: int = setting(0, "tokens per day over all sessions", low=0, personal=True)
