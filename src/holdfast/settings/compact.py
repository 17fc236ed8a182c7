"""How history becomes a summary."""

from dataclasses import dataclass

from holdfast.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactSettings:
    """How history becomes a summary."""

    on: bool = setting(True, "compact at all, by hand or by itself")
