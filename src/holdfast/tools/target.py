"""A file about to be changed: what it is now, whether that may be, and the change itself.

Opening one reads the file as it is; a tool decides on new content; storing puts it there in
one step. A file that the agent has not read, or that is no longer what it read, is refused
with the reason, and so is one that changes in the moment between.
"""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from holdfast.settings.files import Overtaken, replace_content
from holdfast.tools.context import ToolContext
from holdfast.tools.files import SeenFile, stamp_of
from holdfast.tools.protocol import Refused
from holdfast.tools.source import NotEncodable, NotText, SourceText, decode

EDITED_BYTES = 64 << 20
"""A larger file is not changed as a text; a program does that better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EditTarget:
    """A file about to be changed."""

    path: Path
    status: os.stat_result | None
    """None while there is no such file."""
    source: SourceText | None
    """Its text; None if it has none, or is no text."""

    def known(self, shown: str) -> SourceText:
        """Give the text of a file that must be there."""
        if self.status is None:
            raise Refused(f"{shown} does not exist. Make it with Write, or check the path.")
        if self.source is None:
            raise Refused(f"{shown} is a binary file; it cannot be edited as text.")
        return self.source

    def store(self, source: SourceText, tool_context: ToolContext) -> None:
        """Put new content in place, in one step, and remember it as seen."""
        try:
            content = source.to_bytes()
            status = replace_content(self.path, content, self.status)
        except NotEncodable as error:
            raise Refused(f"{self.path} was not changed: {error}.") from None
        except Overtaken:
            raise Refused(f"{self.path} changed while this ran. Read it again.") from None
        seen = SeenFile(
            path=self.path,
            stamp=stamp_of(status, content),
            text=source.text,
            at=tool_context.clock(),
        )
        tool_context.files.record(seen)


def open_target(path: Path, tool_context: ToolContext) -> EditTarget:
    """Read a file that is to be changed, and refuse if it must not be."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return EditTarget(path=path, status=None, source=None)
    if not stat.S_ISREG(status.st_mode):
        kind = "a directory" if stat.S_ISDIR(status.st_mode) else "no regular file"
        raise Refused(f"{path} is {kind}; it cannot be written.")
    if status.st_size > EDITED_BYTES:
        raise Refused(f"{path} has {status.st_size:,} bytes. Change it with a program in Bash.")
    content = path.read_bytes()
    _check_known(path, status, content, tool_context)
    try:
        return EditTarget(path=path, status=status, source=decode(content))
    except NotText:
        return EditTarget(path=path, status=status, source=None)


def _check_known(
    path: Path, status: os.stat_result, content: bytes, tool_context: ToolContext
) -> None:
    """Refuse to change what the agent has not seen; an empty file holds nothing to see."""
    seen = tool_context.files.of(path)
    if seen is None and content:
        raise Refused(f"{path} has not been read in this session. Read it before you change it.")
    if seen is not None and not seen.stamp.same_content(stamp_of(status, content)):
        raise Refused(
            f"{path} has changed since you last read or wrote it: somebody else, or a command, "
            "did that. Read it again before you change it."
        )
