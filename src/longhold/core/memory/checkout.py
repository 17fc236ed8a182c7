"""The store's files on disk, which are written from the history and checked for manual edits.

Files are written after each commit, or after a crash when the store is opened. A memory edited by
hand is reported and never overwritten. The index is generated.
"""

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeAlias

from longhold.core.memory.commits import Database, sha
from longhold.core.memory.memory import MemoryRefused
from longhold.core.memory.paths import INDEX, check_place
from longhold.core.settings.private_files import sweep, write_private

CheckoutStep: TypeAlias = Callable[[str], None]
"""Called at each point where a process may die, so that tests can crash it there."""

SYNCED_EACH = 64
"""Above this number of files, one sync of the whole disk is faster than one sync per file."""


def no_step(_point: str) -> None:
    """Do nothing. This is the default `CheckoutStep`."""


class Checkout:
    def __init__(
        self, root: Path, database: Database, index: Callable[[], str], step: CheckoutStep
    ) -> None:
        self.root = root
        self._sql = database
        self._index = index
        self._step = step
        self.problems: dict[str, str] = {}

    def bring_up(self) -> None:
        """Write the files that commits changed. Calling this twice is harmless."""
        if not self._behind():
            return
        with self._sql.writing():
            behind = self._behind()
            is_few = len(behind) <= SYNCED_EACH
            for file, have, want in behind:
                text = self._text_of(file)
                if file in self.problems or (text is not None and sha(text) not in (have, want)):
                    continue  # the next commit adopts this manual edit
                self.put(file, want, is_synced=is_few)
                self._step(f"file {file}")
            if not is_few and sys.platform != "win32":
                os.sync()  # before the transaction that marks these files as written
            if index := self._index():
                write_private(self.root / INDEX, index)
            else:
                (self.root / INDEX).unlink(missing_ok=True)
        self._step("files")

    def recover(self) -> None:
        sweep(self.root)
        self.bring_up()

    def drift(self) -> dict[str, str | None]:
        """Return the text of each file that was edited by hand, or None if it was deleted."""
        known = {
            file: (have, size, mtime)
            for file, have, size, mtime in self._sql.all(
                "SELECT * FROM on_disk WHERE file != ?", INDEX
            )
        }
        found: dict[str, str | None] = {}
        self.problems.clear()
        for file, status in markdown_below(self.root):
            have, size, mtime = known.pop(file, ("", -1, -1))
            if file == INDEX or (status.st_size, status.st_mtime_ns) == (size, mtime):
                continue
            text = self._text_of(file)
            if text is not None and sha(text) != have:
                found[file] = text
        return found | dict.fromkeys(known)

    def changed_at(self, file: str) -> float:
        try:
            return check_place(self.root, file).stat().st_mtime
        except (MemoryRefused, OSError):
            return 0.0

    def _behind(self) -> list[tuple[str, str, str]]:
        rows = self._sql.all(
            "SELECT t.file, coalesce(d.sha, ''), t.sha FROM tree t LEFT JOIN on_disk d"
            " ON d.file = t.file WHERE d.sha IS NOT t.sha"
            " UNION ALL SELECT d.file, d.sha, '' FROM on_disk d LEFT JOIN tree t"
            " ON d.file = t.file WHERE t.file IS NULL AND d.file != ?",
            INDEX,
        )
        return [(file, have, want) for file, have, want in rows]

    def put(self, file: str, want: str, *, is_synced: bool = True) -> None:
        """Write a version of a file, even over a manual edit. With '', remove the file."""
        place = check_place(self.root, file)
        if not want:
            _remove(place, self.root)
            self._sql.all("DELETE FROM on_disk WHERE file = ?", file)
            return
        text: str = self._sql.one("SELECT text FROM texts WHERE sha = ?", want)[0]
        ready = partial(self._step, f"ready {file}")
        status = write_private(place, text.encode(), before_rename=ready, is_synced=is_synced)
        self._sql.all(
            "INSERT OR REPLACE INTO on_disk VALUES (?, ?, ?, ?)",
            *(file, want, status.st_size, status.st_mtime_ns),
        )

    def _text_of(self, file: str) -> str | None:
        """Read a file. Report a file that is not text or has a forbidden name as a problem."""
        try:
            return check_place(self.root, file).read_bytes().decode()
        except FileNotFoundError:
            return None
        except (MemoryRefused, UnicodeDecodeError, OSError) as error:
            self.problems[file] = str(error)
            return None


def _remove(path: Path, root: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    for parent in path.parents:
        if parent == root or not parent.is_relative_to(root):
            return
        try:
            parent.rmdir()
        except OSError:
            return


def markdown_below(root: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the Markdown files below a directory, without symlinks and hidden files."""
    places = [root]
    while places:
        with contextlib.suppress(FileNotFoundError), os.scandir(places.pop()) as found:
            for one in found:
                if one.name.startswith(".") or one.is_symlink():
                    continue
                if one.is_dir():
                    places.append(Path(one.path))
                elif one.name.endswith(".md") and one.is_file(follow_symlinks=False):
                    name = Path(one.path).relative_to(root).as_posix()
                    yield name, one.stat(follow_symlinks=False)
