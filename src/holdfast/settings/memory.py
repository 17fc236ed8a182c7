"""What is remembered between sessions."""

from dataclasses import dataclass

from holdfast.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings:
    """What is remembered between sessions."""

    on: bool = setting(True, "remember and recall")
