"""Bodies that are too large for the log, read from the session's own directory and nowhere else.

A name comes in, as an entry recorded it; bytes go out, or a `Missing` that says why not. Of the
recorded path only the last part counts, so a session that was branched or moved finds its own
copy and no id leads astray. No link is followed: neither the file nor a directory on the way.
"""

import errno
import hashlib
import os
import stat
from pathlib import Path

RESULTS = "tool-results"

READ_LIMIT_BYTES = 256 << 20
"""No result of ours is larger: what a command may leave is cut at a quarter of this."""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe put in its place must not block
_REASONS = {
    errno.ENOENT: "is gone",
    errno.EACCES: "may not be read by you; check its permissions",
    errno.EPERM: "may not be read by you; check its permissions",
    errno.ELOOP: "is a link, and links are not followed",
    errno.ENOTDIR: "lies behind a link or in no directory, and links are not followed",
    errno.EISDIR: "is a directory",
}


class Missing(Exception):
    """A body cannot be had; the message says why."""


class Shelf:
    """The bodies of one session."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        """What belongs to the session; none for a transcript that has nothing beside it."""

    def read(self, file: str, sha256: str = "") -> str:
        """Read a body by the path that was recorded for it, and check that it is the same."""
        name = file.replace("\\", "/").rpartition("/")[2]
        if self._directory is None:
            raise Missing(f"{name!r} does not belong to this transcript")
        if name in ("", ".", "..") or "\0" in name:
            raise Missing(f"{file!r} is no name of a file")
        body = _read(self._directory, name)
        if sha256 and hashlib.sha256(body).hexdigest() != sha256:
            raise Missing(f"{RESULTS}/{name} is not what was written there")
        return body.decode("utf-8", "replace")


def _read(directory: Path, name: str) -> bytes:
    held: list[int] = []
    try:
        held.append(os.open(directory, _DIRECTORY))
        held.append(os.open(RESULTS, _DIRECTORY, dir_fd=held[-1]))
        held.append(os.open(name, _FILE, dir_fd=held[-1]))
        found = os.fstat(held[-1])
        if not stat.S_ISREG(found.st_mode):
            raise Missing(f"{RESULTS}/{name} is no plain file")
        if found.st_size > READ_LIMIT_BYTES:
            raise Missing(
                f"{RESULTS}/{name} has {found.st_size:,} bytes: more than is ever written"
            )
        with open(held.pop(), "rb") as file:
            return file.read()
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, f"cannot be read: {error.strerror or error}")
        raise Missing(f"{RESULTS}/{name} {reason}") from None
    finally:
        for descriptor in held:
            os.close(descriptor)
