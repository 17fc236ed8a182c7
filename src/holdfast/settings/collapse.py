"""When spans of finished work are shown as a line."""

from dataclasses import dataclass

from holdfast.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class CollapseSettings:
    """When spans of finished work are shown as a line."""

    on: bool = setting(False, "fold spans instead of compacting; the two exclude each other")
