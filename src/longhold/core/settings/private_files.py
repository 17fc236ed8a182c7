"""Atomic file writes, and files and directories that only the user can read.

Each function writes and syncs a temporary file in the target's directory, then renames it. A
process killed at any point leaves the old file or the new one.

- `write_private`: a file of Longhold, mode 0600, in directories of mode 0700
- `write_new`: a file that must not exist yet, from pieces
- `replace_content`: a user's file, whose mode, owner and symlinks are kept
"""

import contextlib
import errno
import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from longhold.errors import SessionExists, StoreError

MARK = ".longhold-"
PARTIAL = ".partial"
"""Temporary files are named `.<name>.longhold-<process>-<random>.partial`."""
_UNFINISHED = re.compile(rf"\..*{re.escape(MARK)}.*{re.escape(PARTIAL)}", re.DOTALL)
NAME_CHARS = 100
"""Number of characters kept of the target's name, because file names have a length limit."""

PRIVATE_FILE, PRIVATE_DIRECTORY = 0o600, 0o700
SECRET_BYTES = 32


def open_flags(*names: str) -> int:
    """Return these flags for `os.open`, combined. Windows lacks most of them."""
    return sum(getattr(os, name, 0) for name in names)


class Overtaken(Exception):
    """Another process changed the file while its new content was being prepared."""


@contextlib.contextmanager
def explain_errors(path: Path) -> Iterator[None]:
    """Convert `OSError` to a `StoreError` whose message explains how to fix the problem."""
    try:
        yield
    except StoreError:
        raise
    except OSError as error:
        raise store_error(path, error) from error


def store_error(path: Path, error: OSError) -> StoreError:
    advice = {
        errno.ENOSPC: "free some space and try again; nothing written before is lost",
        errno.EDQUOT: "free some space and try again; nothing written before is lost",
        errno.EFBIG: "the file has reached its size limit; nothing written before is lost",
        errno.EACCES: "check the permissions of the file and its directory",
        errno.EROFS: "the disk is read-only; set LONGHOLD_HOME to a writable directory",
        errno.EMFILE: "too many files are open; close sessions, or raise the limit (ulimit -n)",
        errno.ENFILE: "the system has too many files open; close some and try again",
        errno.EEXIST: "existing files are never overwritten; choose another id",
    }.get(error.errno or 0, "see the system's message")
    kind = SessionExists if error.errno == errno.EEXIST else StoreError
    return kind(f"{path}: {error.strerror or error}; {advice}")


def private_directory(path: Path) -> Path:
    """Create a directory and its missing parents, each with mode 0700."""
    with explain_errors(path):
        missing = [place for place in (path, *path.parents) if not place.exists()]
        for place in reversed(missing):  # `parents=True` would make the parents world-readable
            place.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
    return path


def write_private(
    path: Path,
    content: bytes | str,
    *,
    at: float | None = None,
    is_synced: bool = True,
    before_rename: Callable[[], None] = lambda: None,
) -> os.stat_result:
    """Replace a private file and set its mtime. A symlink is replaced and not followed."""
    private_directory(path.parent)
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    with explain_errors(path), _open_beside(path, PRIVATE_FILE) as (unfinished, file):
        file.write(data)
        file.flush()
        # The time is in nanoseconds, so that a manual edit in the same clock tick is detected.
        moment = time.time_ns() if at is None else round(at * 1e9)
        if is_synced:
            os.fsync(file.fileno())
        file.close()  # Windows does not rename an open file
        os.utime(unfinished, ns=(moment, moment))
        before_rename()
        unfinished.replace(path)
        return path.lstat()


def keep_secret(file: Path) -> str:
    """Return the random secret in a private file. The first call creates the file."""
    if not file.exists():
        private_directory(file.parent)
        with contextlib.suppress(FileExistsError):  # another process was first
            write_new(file, (secrets.token_hex(SECRET_BYTES).encode(),))
    return file.read_text(encoding="ascii").strip()


def write_new(path: Path, pieces: Iterable[bytes]) -> int:
    """Write a new private file and return its size, or raise `FileExistsError`."""
    if os.path.lexists(path):
        raise _exists_error(path)
    with _open_beside(path, PRIVATE_FILE) as (unfinished, file):
        written = sum(file.write(piece) for piece in pieces)
        file.flush()
        os.fsync(file.fileno())
        try:
            os.link(unfinished, path)  # unlike a rename, this never replaces a file
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            if os.path.lexists(path):
                raise _exists_error(path) from None
            unfinished.rename(path)
    return written


def replace_content(
    path: Path, content: bytes, expected: os.stat_result | None, *, follows_links: bool = True
) -> os.stat_result:
    """Replace a file if its status is still `expected`. With None, the file must not exist.

    Hard links and extended attributes are lost with the old file. Without `follows_links`, the path
    must already be resolved, and a symlink in it is an error.
    """
    target = Path(os.path.realpath(path)) if follows_links else path
    with _open_parent(target, makes=True) as parent:
        with _open_beside(target, 0o666, parent) as (unfinished, file):
            file.write(content)
            file.flush()
            if expected is not None:
                _take_mode_and_owner(file.fileno(), expected)
            os.fsync(file.fileno())
            if not _is_as_expected(target, expected, parent):
                raise Overtaken(str(path))
            names = (_at(unfinished, parent), _at(target, parent))
            os.replace(*names, src_dir_fd=parent, dst_dir_fd=parent)
            written = os.fstat(file.fileno())
        _settle_directory(parent)
    return written


def open_real(path: Path, flags: int) -> int:
    """Open a file by a resolved path. A symlink that was later put into the path is an error."""
    with _open_parent(path) as parent:
        return os.open(_at(path, parent), flags | open_flags("O_NOFOLLOW"), dir_fd=parent)


@contextlib.contextmanager
def _open_parent(path: Path, *, makes: bool = False) -> Iterator[int | None]:
    """Open a file's directory step by step from the root, because its path can change meanwhile.

    Windows cannot do this. There the function yields None, and `_at` returns the whole path.
    """
    if sys.platform == "win32":
        if makes:
            path.parent.mkdir(parents=True, exist_ok=True)
        yield None
        return
    flags = open_flags("O_PATH", "O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC")
    here = os.open(path.anchor, flags)
    try:
        for part in path.parts[1:-1]:
            try:
                below = os.open(part, flags, dir_fd=here)
            except FileNotFoundError:
                if not makes:
                    raise
                os.mkdir(part, dir_fd=here)
                below = os.open(part, flags, dir_fd=here)
            os.close(here)
            here = below
        yield here
    finally:
        os.close(here)


def _at(path: Path, parent: int | None) -> str:
    return str(path) if parent is None else path.name


def sweep(root: Path) -> None:
    """Remove temporary files of dead processes anywhere below a directory."""
    _remove_unfinished(map(str, root.rglob(f".*{MARK}*{PARTIAL}")))


def is_running(pid: int) -> bool:
    if sys.platform == "win32":  # on Windows, signal 0 interrupts the process
        return True
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return pid > 0


@contextlib.contextmanager
def _open_beside(
    target: Path, mode: int, parent: int | None = None
) -> Iterator[tuple[Path, BinaryIO]]:
    """Open a temporary file next to the target. Unless it is renamed, it is removed at the end."""
    name = f".{target.name[:NAME_CHARS]}{MARK}{os.getpid()}-{secrets.token_hex(4)}{PARTIAL}"
    unfinished = target.with_name(name)
    flags = open_flags("O_WRONLY", "O_CREAT", "O_EXCL", "O_BINARY")
    descriptor = os.open(_at(unfinished, parent), flags, mode, dir_fd=parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield unfinished, file
    finally:
        with contextlib.suppress(OSError):  # the first error is reported
            os.unlink(_at(unfinished, parent), dir_fd=parent)


def _exists_error(path: Path) -> FileExistsError:
    return FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))


def _remove_unfinished(leftovers: Iterable[str], parent: int | None = None) -> None:
    for leftover in leftovers:
        pid = leftover.rpartition(MARK)[2].partition("-")[0]
        if pid.isdigit() and not is_running(int(pid)):
            with contextlib.suppress(OSError):
                os.unlink(leftover, dir_fd=parent)


def _take_mode_and_owner(descriptor: int, like: os.stat_result) -> None:
    if sys.platform == "win32":
        return
    mine = os.fstat(descriptor)
    if (mine.st_uid, mine.st_gid) != (like.st_uid, like.st_gid):
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, like.st_uid, like.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(like.st_mode))  # after chown, which clears set-id bits


def _is_as_expected(target: Path, expected: os.stat_result | None, parent: int | None) -> bool:
    try:
        now = os.stat(_at(target, parent), dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return expected is None
    marks = ("st_ino", "st_size", "st_mtime_ns")
    return all(getattr(now, mark) == getattr(expected, mark, None) for mark in marks)


def _settle_directory(parent: int | None) -> None:
    """Sync a directory where possible, so that a rename survives power loss, and sweep it."""
    if parent is None:
        return
    with contextlib.suppress(OSError):
        descriptor = os.open(".", os.O_RDONLY, dir_fd=parent)
        try:
            os.fsync(descriptor)
            there = os.listdir(descriptor)  # noqa: PTH208 - a Path cannot be a descriptor
            _remove_unfinished(filter(_UNFINISHED.fullmatch, there), parent)
        finally:
            os.close(descriptor)
