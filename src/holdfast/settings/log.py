"""How sessions are kept."""

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
