"""When a tool's result goes to disk."""

from dataclasses import dataclass

from holdfast.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class SpillSettings:
    """When a tool's result goes to disk."""

    on: bool = setting(True, "put results that are over their budget on disk")
