"""When memories are consolidated."""

from dataclasses import dataclass

from holdfast.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamSettings:
    """When memories are consolidated."""

    on: bool = setting(True, "consolidate memories now and then")
