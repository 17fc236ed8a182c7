"""The Markdown files of a store on disk: written in one step each, private to the user.

Bytes and a place come in. A file appears whole under its name or not at all, whatever kills
the writer; what a killed writer left unfinished is swept away by the next one.
"""

import contextlib
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from holdfast.settings.private import private_directory

UNFINISHED = ".unfinished"
"""The ending of files that did not get their name yet."""


def write_private(
    path: Path,
    content: bytes,
    ready: Callable[[], None] = lambda: None,
    at: float | None = None,
    is_synced: bool = True,
) -> os.stat_result:
    """Give a file new content, and its time, in one step; a link in its place is not followed."""
    private_directory(path.parent)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}{UNFINISHED}")
    with contextlib.suppress(FileNotFoundError):
        unfinished.unlink()
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        if is_synced:
            os.fsync(file.fileno())
        # To the nanosecond: a change by hand in the same tick of a coarse clock still differs.
        moment = time.time_ns() if at is None else round(at * 1e9)
        os.utime(file.fileno(), ns=(moment, moment))
    ready()
    unfinished.replace(path)
    return path.lstat()


def remove(path: Path, root: Path) -> None:
    """Remove a file, and directories below the root that it leaves empty."""
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
    """List the Markdown files below a directory, as names in it; links and hidden ones are none."""
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
    """Read a plain file below a directory, no link on the way; a longer or other one is an error."""
    *directories, last = Path(name).parts
    place = os.open(above, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in directories:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
            below = os.open(part, flags, dir_fd=place)
            os.close(place)
            place = below
        # Not blocking: a pipe in a file's place is seen to be one instead of waited for.
        found = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=place)
    finally:
        os.close(place)
    with os.fdopen(found, "rb") as file:
        if not stat.S_ISREG(os.fstat(found).st_mode):
            raise OSError(f"{name} is no plain file")
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(f"{name} has more than {most_bytes:,} bytes")
    return content


def sweep(root: Path) -> None:
    """Remove what killed writers left unfinished."""
    for leftover in root.rglob(f".*{UNFINISHED}"):
        pid = leftover.name.removesuffix(UNFINISHED).rpartition(".")[2]
        if pid.isdigit() and int(pid) != os.getpid() and not is_running(int(pid)):
            with contextlib.suppress(OSError):
                leftover.unlink()


def is_running(pid: int) -> bool:
    """Tell whether a process of this number runs on this machine."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return pid > 0


def sha(text: str) -> str:
    """Hash a text as the store names it."""
    return hashlib.sha256(text.encode()).hexdigest()
