"""Replacing a file's content so that nobody ever sees half of it.

New bytes go to a file beside the old one, reach the disk, and take the old one's name in a
single step: whoever is killed at whatever point leaves the old file or the new one. Links
are followed to the file they name; the mode, and where allowed the owner, are kept. Hard
links and extended attributes of the old file are not: the name gets a new file.
"""

import contextlib
import os
import secrets
import stat
from pathlib import Path

MARK = ".holdfast-"
"""Part of the name of every unfinished file."""


class Overtaken(Exception):
    """The file was replaced or changed by somebody else while its new content was made."""


def replace_content(path: Path, content: bytes, expected: os.stat_result | None) -> os.stat_result:
    """Give a file new content in one step; `expected` is its status when it was read, or None for a new file."""
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    _sweep(target)
    unfinished = target.with_name(_unfinished_name(target.name))
    try:
        _write_through(unfinished, content, expected)
        if not _is_as_expected(target, expected):
            raise Overtaken(str(path))
        unfinished.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise
    _sync_directory(target.parent)
    return target.stat()


def _write_through(path: Path, content: bytes, like: os.stat_result | None) -> None:
    """Write a new file to the disk itself, with the mode and owner of the one it stands for."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        if like is not None:
            _take_after(file.fileno(), like)
        os.fsync(file.fileno())


def _take_after(descriptor: int, like: os.stat_result) -> None:
    mine = os.fstat(descriptor)
    if (mine.st_uid, mine.st_gid) != (like.st_uid, like.st_gid):
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, like.st_uid, like.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(like.st_mode))  # after chown, which takes set-id bits away


def _is_as_expected(target: Path, expected: os.stat_result | None) -> bool:
    try:
        now = target.stat()
    except FileNotFoundError:
        return expected is None
    if expected is None:
        return False
    return (now.st_ino, now.st_size, now.st_mtime_ns) == (
        expected.st_ino,
        expected.st_size,
        expected.st_mtime_ns,
    )


def _unfinished_name(name: str) -> str:
    # The name is cut so that the longest allowed file name still has room for the rest.
    return f".{name[:100]}{MARK}{os.getpid()}-{secrets.token_hex(4)}"


def _sweep(target: Path) -> None:
    """Remove what a killed process left unfinished beside this file."""
    for leftover in target.parent.glob(f".{_plain(target.name[:100])}{MARK}*"):
        pid = leftover.name.rpartition(MARK)[2].partition("-")[0]
        if pid.isdigit() and not _is_running(int(pid)):
            with contextlib.suppress(OSError):
                leftover.unlink()


def _plain(name: str) -> str:
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _sync_directory(directory: Path) -> None:
    """Make the new name last a power cut, where directories can be synced."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
