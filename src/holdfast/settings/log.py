"""The log: how sessions are kept, and how much of the past is shown at once."""

from dataclasses import dataclass

from holdfast.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """How sessions are kept."""

    retention_days: int = setting(
        30, "sessions untouched for longer are removed by `sessions --prune`; 0 keeps all", low=0
    )
    body_limit_bytes: int = setting(
        1 << 20, "a result larger than this lies in a file beside the log", low=1_024
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySettings:
    """How much of the past is shown at once."""

    page_chars: int = setting(
        20_000, "a page for the model: about 5,000 tokens, a fortieth of a 200K window", low=500
    )
    hits: int = setting(12, "records listed at once; the best come first", low=1, high=200)
    snippet_chars: int = setting(200, "enough of a line to know it by", low=20, high=2_000)
    index_limit_chars: int = setting(
        8 << 20, "of a longer body only the beginning is searched by words", low=1_024
    )
