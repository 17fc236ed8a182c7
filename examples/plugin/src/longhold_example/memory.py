"""A memory backend: a folder with a file for each commit, such as a folder that machines share."""

import os
import re
import tempfile
from pathlib import Path

FOLDER = "LONGHOLD_EXAMPLE_FOLDER"


class Folder:
    def __init__(self, project: Path) -> None:
        """Open the memories of a project; machines that share them have it under the same name."""
        name = re.sub(r"[^A-Za-z0-9]+", "-", str(project)).strip("-")
        self._place = Path(os.environ.get(FOLDER, "~/.longhold-example")).expanduser() / name
        self._place.mkdir(parents=True, exist_ok=True, mode=0o700)

    def after(self, number: int) -> list[tuple[int, bytes]]:
        numbers = sorted(int(path.name) for path in self._place.iterdir() if path.name.isdecimal())
        return [(n, (self._place / str(n)).read_bytes()) for n in numbers if n > number]

    def add(self, number: int, commit: bytes) -> bool:
        with tempfile.NamedTemporaryFile(dir=self._place, prefix=".") as file:
            file.write(commit)
            file.flush()
            os.fsync(file.fileno())
            try:
                os.link(file.name, self._place / str(number))  # whole, or not at all
            except FileExistsError:
                return False
        return True
