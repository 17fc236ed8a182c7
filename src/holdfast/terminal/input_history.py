"""What was typed before, over all sessions of a project."""

from collections.abc import Iterable
from pathlib import Path

from prompt_toolkit.history import FileHistory, History

from holdfast.settings.files import private_directory

KEPT_CHARS = 10_000
"""Longer messages are pastes; nobody steps back to them key by key."""


class InputHistory(History):
    """Messages in a private file, or only in memory where there is no place for one."""

    def __init__(self, path: Path | None) -> None:
        super().__init__()
        self._file = FileHistory(path) if path is not None else None
        self._path = path

    def load_history_strings(self) -> Iterable[str]:
        return self._file.load_history_strings() if self._file is not None else ()

    def store_string(self, string: str) -> None:
        if self._file is None or self._path is None or len(string) > KEPT_CHARS:
            return
        private_directory(self._path.parent)
        self._path.touch(mode=0o600)
        self._file.store_string(string)
