"""What Tab completes: `/commands` with their help, and `@files` of the project."""

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from holdfast.errors import StoreError
from holdfast.tools.git import run_git

SHOWN = 40
"""More is not looked through; another letter narrows it."""
LISTED = 50_000
"""Files that are known; a larger project is completed as far as that."""
FRESH_SECONDS = 5.0
LIST_SECONDS = 2.0
"""How old a list of files may be, and how long making one may take."""
_MENTION = re.compile(r"(?:^|\s)@([^\s@]*)$")


@dataclass(slots=True)
class ProjectFiles:
    """The files below a directory, without those that git ignores."""

    root: Path
    _listed: list[str] = field(default_factory=list)
    _at: float = 0.0

    def matching(self, part: str) -> list[str]:
        """Return paths with `part` in them: names that begin with it first, short ones first."""
        if time.monotonic() - self._at > FRESH_SECONDS or not self._at:
            self._listed, self._at = list(self._list())[:LISTED], time.monotonic()
        part = part.lower()
        found = [path for path in self._listed if part in path.lower()]
        found.sort(key=lambda path: (not Path(path).name.lower().startswith(part), len(path), path))
        return found[:SHOWN]

    def _list(self) -> Iterable[str]:
        words = ("ls-files", "--cached", "--others", "--exclude-standard", "-z")
        try:
            done = run_git(self.root, *words, timeout_seconds=LIST_SECONDS)
        except StoreError:
            return self._walk()
        if done.returncode:
            return self._walk()
        return filter(None, done.stdout.decode("utf-8", "replace").split("\0"))

    def _walk(self) -> Iterator[str]:
        end = time.monotonic() + LIST_SECONDS
        for place, directories, names in os.walk(self.root):
            directories[:] = sorted(name for name in directories if not name.startswith("."))
            yield from (os.path.relpath(Path(place) / name, self.root) for name in sorted(names))
            if time.monotonic() > end:
                return


class InputCompleter(Completer):
    """Completes the word before the cursor."""

    def __init__(self, commands: Mapping[str, str], files: ProjectFiles) -> None:
        self._commands = commands
        self._files = files

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterator[Completion]:
        before = document.text_before_cursor
        if before.startswith("/") and " " not in before:
            for name, help in self._commands.items():
                if name.startswith(before):
                    yield Completion(name, start_position=-len(before), display_meta=help)
        elif found := _MENTION.search(before):
            for path in self._files.matching(found[1]):
                shown = f'"{path}"' if " " in path else path
                yield Completion(shown, start_position=-len(found[1]), display=path)
