"""When old tool results are cleared."""

from dataclasses import dataclass

from holdfast.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearSettings:
    """When old tool results are cleared."""

    on: bool = setting(True, "clear old results of tools whose output can be had again")
