"""The Markdown files of a store on disk: listed, read without following links, removed."""

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path


def remove(path: Path, root: Path) -> None:
    """Remove a file, and directories below the root that become empty."""
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
    """Yield the Markdown files below a directory by relative name, without links and hidden ones."""
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


def read_unlinked(above: Path, name: str, most_bytes: int) -> bytes:
    """Read a plain file below a directory; links on the way and longer files raise `OSError`."""
    *directories, last = Path(name).parts
    place = os.open(above, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in directories:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
            below = os.open(part, flags, dir_fd=place)
            os.close(place)
            place = below
        # Non-blocking, so that a pipe in the file's place is noticed instead of waited for.
        found = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=place)
    finally:
        os.close(place)
    with os.fdopen(found, "rb") as file:
        if not stat.S_ISREG(os.fstat(found).st_mode):
            raise OSError(f"{name} is not a plain file")
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(f"{name} has more than {most_bytes:,} bytes")
    return content


def sha(text: str) -> str:
    """Return the version of a text."""
    return hashlib.sha256(text.encode()).hexdigest()
