"""The Read tool. Its results are never spilled to disk, because the file is already on disk."""

import asyncio
import base64
import difflib
import os
import stat
import struct
from pathlib import Path
from typing import Annotated, NamedTuple

from msgspec import Meta

from longhold.agent.tools.source import NotText, decode, open_regular
from longhold.core.messages import Image
from longhold.core.messages.text import count_fitting_lines
from longhold.core.tools.context import FILE_BYTES, SeenFile, ToolContext, stamp_of
from longhold.core.tools.protocol import Input, Outcome, Refused, Tool, make_tool
from longhold.core.tools.recovered import UNCHANGED
from longhold.core.view.window import scale_tokens

IMAGE_BYTES = 3_750_000
"""5 MB in base64, the provider limit for one image."""
IMAGE_SIDE_PIXELS = 8_000
"""Providers reject the whole request if a side is longer."""

_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def media_type_of(content: bytes) -> str:
    webp = "image/webp" if content[:4] == b"RIFF" and content[8:12] == b"WEBP" else ""
    return next((name for magic, name in _MAGIC if content.startswith(magic)), webp)


def image_block(content: bytes) -> Image:
    source = {
        "type": "base64",
        "media_type": media_type_of(content),
        "data": base64.b64encode(content).decode("ascii"),
    }
    return Image(source=source)


def explain_rejection(content: bytes) -> str:
    if len(content) > IMAGE_BYTES:
        return f"it has {len(content):,} bytes and {IMAGE_BYTES:,} are allowed"
    width, height = size_of(content)
    if max(width, height) > IMAGE_SIDE_PIXELS:
        return f"it is {width:,} by {height:,} pixels and a side may have {IMAGE_SIDE_PIXELS:,}"
    return ""


def size_of(content: bytes) -> tuple[int, int]:
    """Return width and height from an image's header, or zeros if unknown."""
    try:
        match media_type_of(content):
            case "image/png":
                return struct.unpack(">II", content[16:24])
            case "image/gif":
                return struct.unpack("<HH", content[6:10])
            case "image/jpeg":
                return _jpeg_size(content)
            case _:
                return 0, 0
    except (struct.error, IndexError):
        return 0, 0


def _jpeg_size(content: bytes) -> tuple[int, int]:
    place = 2
    while place + 9 < len(content):
        marker = content[place + 1]
        length, height, width = struct.unpack(">HxHH", content[place + 2 : place + 9])
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return width, height
        place += 2 + length
    return 0, 0


MAX_LINES = 2_000
MAX_TOKENS = 25_000
"""The limit per call: one eighth of a window of up to 200K tokens."""
LINE_CHARS = 2_000


class ReadInput(Input, frozen=True, kw_only=True):
    file_path: Annotated[str, Meta(description="The file, absolute or from the working directory.")]
    offset: Annotated[int, Meta(description="The first line to show, from 1.", ge=0)] = 1
    limit: Annotated[int, Meta(description="How many lines to show, 2000 by default.", ge=1)] = (
        MAX_LINES
    )


class FilePage(NamedTuple):
    text: str
    lines: range


async def read(given: ReadInput, tool_context: ToolContext) -> Outcome:
    path = tool_context.resolve(given.file_path)
    real = tool_context.resolve_links(path)
    known = tool_context.files.of(real)
    outcome, seen = await asyncio.to_thread(_read, path, real, given, known, tool_context)
    tool_context.files.record(seen)
    return outcome


def _read(
    path: Path, real: Path, given: ReadInput, known: SeenFile | None, tool_context: ToolContext
) -> tuple[Outcome, SeenFile]:
    _check_regular(path, real, tool_context)
    first = max(1, given.offset)
    with open_regular(real) as file:
        status = os.fstat(file.fileno())
        if status.st_size > FILE_BYTES:
            raise Refused(
                f"{path} has {status.st_size:,} bytes. Look at parts of it with `sed -n`, `head` or "
                "`tail` in Bash."
            )
        content = file.read(FILE_BYTES)
    seen = SeenFile(path=real, stamp=stamp_of(status, content))
    if media_type_of(content):
        if reason := explain_rejection(content):
            raise Refused(
                f"{path} is a picture that cannot be shown: {reason}. Make it smaller first."
            )
        note = f"looked at {path.name} ({len(content):,} bytes)"
        return Outcome(content=(image_block(content),), note=note), seen
    page = page_of_text(_text(path, content), first, min(given.limit, MAX_LINES), tool_context)
    is_same = known is not None and known.stamp.same_content(seen.stamp)
    if known and is_same and page.lines and known.shows(page.lines):
        said = f"{given.file_path} {UNCHANGED}"
        return Outcome(content=said, note=f"unchanged {path.name}"), seen
    seen = SeenFile(path=real, stamp=seen.stamp, ranges=(page.lines,))
    note = f"read {path.name}, {len(page.lines):,} lines"
    return Outcome(content=page.text, note=note), seen


def _check_regular(path: Path, real: Path, tool_context: ToolContext) -> None:
    """Refuse anything but a file before opening it, because opening a device has side effects."""
    try:
        status = real.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise Refused(_describe_missing(path, tool_context)) from None
    except OSError as error:
        raise Refused(f"{path} cannot be read: {os.strerror(error.errno or 0).lower()}.") from None
    if stat.S_ISDIR(status.st_mode):
        raise Refused(f"{path} is a directory. List it with Glob, or with `ls` in Bash.")
    if not stat.S_ISREG(status.st_mode):
        raise Refused(f"{path} is a device, a pipe or a socket, not a file with content.")


def _describe_missing(path: Path, tool_context: ToolContext) -> str:
    said = f"{path} does not exist. The working directory is {tool_context.directory}."
    if path.is_symlink():
        return f"{path} is a link to {path.readlink()}, which does not exist."
    try:
        names = sorted(entry.name for entry in path.parent.iterdir())
    except OSError:
        return said
    close = difflib.get_close_matches(path.name, names, n=3)
    return f"{said} Did you mean {' or '.join(close)}?" if close else said


def _text(path: Path, content: bytes) -> str:
    try:
        return decode(content).text
    except NotText:
        raise Refused(
            f"{path} is a binary file of {len(content):,} bytes and is not shown. "
            "Use a program that knows its format in Bash, or `xxd` for the bytes."
        ) from None


def page_of_text(text: str, first: int, limit: int, tool_context: ToolContext) -> FilePage:
    """Number as many lines as fit the budget, at least one, and add how to continue."""
    if not text:
        return FilePage("[The file is empty.]", range(1, 1))
    every = text.removesuffix("\n").split("\n")
    if first > len(every):
        said = f"[The file has {len(every):,} lines; there is no line {first:,}.]"
        return FilePage(said, range(first, first))
    chosen = enumerate(every[first - 1 : first - 1 + limit], start=first)
    shown = [f"{number:>6}\t{_shorten(line)}" for number, line in chosen]
    count = tool_context.count_tokens
    max_tokens = scale_tokens(MAX_TOKENS, tool_context.window_tokens())
    if count("\n".join(shown)) > max_tokens:
        shown = shown[: max(1, count_fitting_lines(shown, max_tokens, count))]
    last = first + len(shown) - 1
    if last < len(every):
        lines = f"Lines {first:,} to {last:,} of {len(every):,}"
        shown.append(f"[{lines}; continue with offset {last + 1}.]")
    return FilePage(text="\n".join(shown), lines=range(first, last + 1))


def _shorten(line: str) -> str:
    more = len(line) - LINE_CHARS
    return f"{line[:LINE_CHARS]}… [{more:,} more characters]" if more > 0 else line


READ: Tool = make_tool(
    "Read",
    ReadInput,
    read,
    kind="read",
    path_inputs=("file_path",),
    is_read_only=True,
    limit_chars=None,
)
