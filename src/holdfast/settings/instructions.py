"""Which instruction files are read."""

from dataclasses import dataclass

from holdfast.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionsSettings:
    """Which instruction files are read."""

    on: bool = setting(True, "read AGENTS.md and CLAUDE.md files")
