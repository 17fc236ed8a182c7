"""Bodies that are too large for the log, brought back from the session's own directory.

A path comes in, as an entry recorded it; the result's content goes out, or a `Missing` that says
why not. Of the path only the last part counts, so a session that was branched or moved finds its
own copy and no id leads astray. What lies there must be what was written, by its hash; how files
are opened without following links is the business of `results`.
"""

import sys
from pathlib import Path

import msgspec

from holdfast.errors import StoreError
from holdfast.log.results import Results
from holdfast.messages import ResultContent


class Missing(Exception):
    """A body cannot be had; the message says why."""


class Shelf:
    """The bodies of one session."""

    def __init__(self, directory: Path | None) -> None:
        self._results = Results(directory) if directory is not None else None
        """None for a transcript that has nothing beside it."""

    def read(self, file: str, sha256: str = "") -> ResultContent:
        """Read a body by the path that was recorded for it, and check that it is the same."""
        name = file.replace("\\", "/").rpartition("/")[2]
        if self._results is None:
            raise Missing(f"{name!r} does not belong to this transcript")
        if name in ("", ".", "..") or "\0" in name:
            raise Missing(f"{file!r} is no name of a file")
        try:
            content = self._results.read(name)
        except StoreError as error:
            raise Missing(str(error)) from None
        except (UnicodeDecodeError, msgspec.DecodeError):
            content = ()
        if sha256 and self._results.body(name, content, cap_bytes=sys.maxsize).sha256 != sha256:
            raise Missing(f"{name!r} is not what was written there")
        return content
