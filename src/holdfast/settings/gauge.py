"""How the size of the context is estimated between two reports of the provider."""

from dataclasses import dataclass

from holdfast.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class GaugeSettings:
    """How the size of the context is estimated between two reports of the provider."""

    calibrate: bool = setting(True, "learn from each answer's usage what a character weighs")
