"""Read: show lines of a text file, an image, or a notebook.

What was shown is remembered, so that the same lines are not sent twice and an unread file is
not overwritten. Results are never spilled: reading the spilled file would only be another Read.
"""

import asyncio
import difflib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from holdfast.messages import ResultContent, Text
from holdfast.tools.context import ToolContext
from holdfast.tools.files import HASHED_BYTES, SeenFile, stamp_of
from holdfast.tools.images import image_block, media_type_of, why_not_shown
from holdfast.tools.notebook import NotANotebook, show_notebook
from holdfast.tools.pages import FilePage, page_of_large, page_of_text
from holdfast.tools.protocol import Input, Outcome, Refused, Tool, make_tool
from holdfast.tools.source import NotText, decode, is_binary

MAX_LINES = 2_000
"""At once; longer files are read in parts."""
MAX_TOKENS = 25_000
"""At once: an eighth of a 200K window."""
UNCHANGED = "is unchanged since you read it; these lines stand above."
"""Instead of lines that the model has before it."""


class ReadInput(Input, frozen=True, kw_only=True):
    file_path: Annotated[str, Meta(description="The file, absolute or from the working directory.")]
    offset: Annotated[int, Meta(description="The first line to show, from 1.", ge=0)] = 1
    limit: Annotated[int, Meta(description="How many lines to show, 2000 by default.", ge=1)] = (
        MAX_LINES
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """The content of a read, and what the agent now knows."""

    content: ResultContent
    seen: SeenFile
    note: str


async def read(given: ReadInput, tool_context: ToolContext) -> Outcome:
    path = tool_context.resolve(given.file_path)
    known = tool_context.files.of(path)
    shown = await asyncio.to_thread(_read, path, given, known, tool_context)
    tool_context.files.record(shown.seen)
    return Outcome(content=shown.content, note=shown.note)


def _read(
    path: Path, given: ReadInput, known: SeenFile | None, tool_context: ToolContext
) -> _Shown:
    status = _status(path, tool_context)
    first = max(1, given.offset)
    if status.st_size > HASHED_BYTES:
        return _large(path, status, first, given.limit, tool_context)
    content = path.read_bytes()
    seen = SeenFile(path=path, stamp=stamp_of(status, content))
    if media_type_of(content):
        return _picture(path, content, seen)
    if path.suffix == ".ipynb":
        return _notebook(path, content, seen, given, tool_context)
    text = _text(path, content)
    page = page_of_text(text, first, min(given.limit, MAX_LINES), MAX_TOKENS, tool_context)
    if known and known.stamp.same_content(seen.stamp) and known.shows(page.lines):
        said = f"{given.file_path} {UNCHANGED}"
        return _Shown(content=said, seen=seen, note=f"unchanged {path.name}")
    seen = SeenFile(path=path, stamp=seen.stamp, ranges=(page.lines,))
    return _Shown(content=page.text, seen=seen, note=_note(path, page))


def _status(path: Path, tool_context: ToolContext) -> os.stat_result:
    """Stat a path; refuse what cannot be read."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise Refused(_missing(path, tool_context)) from None
    except OSError as error:
        raise Refused(f"{path} cannot be read: {os.strerror(error.errno or 0).lower()}.") from None
    if stat.S_ISDIR(status.st_mode):
        raise Refused(f"{path} is a directory. List it with Glob, or with `ls` in Bash.")
    if not stat.S_ISREG(status.st_mode):
        raise Refused(f"{path} is a device, a pipe or a socket, not a file with content.")
    return status


def _missing(path: Path, tool_context: ToolContext) -> str:
    said = f"{path} does not exist. The working directory is {tool_context.directory}."
    if path.is_symlink():
        return f"{path} is a link to {path.readlink()}, which does not exist."
    try:
        names = sorted(entry.name for entry in path.parent.iterdir())
    except OSError:
        return said
    close = difflib.get_close_matches(path.name, names, n=3)
    return f"{said} Did you mean {' or '.join(close)}?" if close else said


def _picture(path: Path, content: bytes, seen: SeenFile) -> _Shown:
    if reason := why_not_shown(content):
        raise Refused(f"{path} is a picture that cannot be shown: {reason}. Make it smaller first.")
    note = f"looked at {path.name} ({len(content):,} bytes)"
    return _Shown(content=(image_block(content),), seen=seen, note=note)


def _notebook(
    path: Path, content: bytes, seen: SeenFile, given: ReadInput, tool_context: ToolContext
) -> _Shown:
    try:
        text, pictures = show_notebook(content)
    except NotANotebook as error:
        raise Refused(f"{path} is called a notebook but is none: {error}.") from None
    limit = min(given.limit, MAX_LINES)
    page = page_of_text(text, max(1, given.offset), limit, MAX_TOKENS, tool_context)
    shown: ResultContent = (Text(text=page.text), *pictures) if pictures else page.text
    return _Shown(content=shown, seen=seen, note=_note(path, page))


def _text(path: Path, content: bytes) -> str:
    try:
        return decode(content).text
    except NotText:
        raise Refused(_binary(path, len(content))) from None


def _binary(path: Path, size: int) -> str:
    return (
        f"{path} is a binary file of {size:,} bytes and is not shown. "
        "Use a program that knows its format in Bash, or `xxd` for the bytes."
    )


def _large(
    path: Path, status: os.stat_result, first: int, limit: int, tool_context: ToolContext
) -> _Shown:
    """Show lines of a file too large to be read whole, in bounded memory."""
    with path.open("rb") as file:
        if is_binary(file.read(8_192)):
            raise Refused(_binary(path, status.st_size))
    page = page_of_large(path, first, min(limit, MAX_LINES), MAX_TOKENS, tool_context)
    seen = SeenFile(path=path, stamp=stamp_of(status, None), ranges=(page.lines,))
    return _Shown(content=page.text, seen=seen, note=_note(path, page))


def _note(path: Path, page: FilePage) -> str:
    return f"read {path.name}, {len(page.lines):,} lines"


READ: Tool = make_tool(
    "Read",
    ReadInput,
    read,
    kind="read",
    path_inputs=("file_path",),
    is_read_only=True,
    limit_chars=None,
)
