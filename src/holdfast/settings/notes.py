"""How notes are kept while a session runs."""

from dataclasses import dataclass

from holdfast.settings.setting import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class NotesSettings:
    """How notes are kept while a session runs."""

    on: bool = setting(True, "keep notes beside the work")
