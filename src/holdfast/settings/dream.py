"""When memories are consolidated."""

from dataclasses import dataclass

from holdfast.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamSettings:
    """When memories are consolidated."""

    on: bool = setting(True, "consolidate memories now and then")
    by: str = setting(
        "model",
        "'model' lets the session's model dream where it has one, 'engine' does what is safe"
        " without",
        form="model|engine",
        personal=True,
    )
    turns: int = setting(
        24, "answers of a model that dreams: four phases, and half a dozen looks in each", low=1
    )
    after_hours: float = setting(24.0, "once a day is enough for what changes in days", low=0)
    scan_minutes: float = setting(10.0, "sessions are not counted again before this", low=0)
    sessions: int = setting(5, "sessions touched since the last dream before another pays", low=0)
    stale_minutes: float = setting(
        60.0, "a lock this old whose process is gone belongs to nobody", low=1
    )
    alike_share: float = setting(
        0.9, "shingles two memories share before one may stand for both", low=0.5, high=1
    )
    removed_share: float = setting(
        0.3, "of all memories one dream may take away; a larger loss is a mistake", low=0, high=1
    )
    removed_floor: int = setting(
        3, "a few may always go, or a small store could never lose a duplicate", low=0
    )
    steps_shown: int = setting(
        30, "of what a dream does, kept to be looked at while it runs", low=1
    )
