"""The Edit and Write tools. A file must be unchanged since the agent last saw it. Encoding, byte
order mark, line endings and file mode are kept. Results are short, because the model knows what it
wrote.
"""

import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from longhold.agent.tools.source import NotEncodable, NotText, SourceText, decode, open_regular
from longhold.core.settings.private_files import Overtaken, replace_content
from longhold.core.tools.context import FILE_BYTES, SeenFile, Stamp, ToolContext, stamp_of
from longhold.core.tools.protocol import Input, Outcome, Refused, Tool, make_tool


@dataclass(frozen=True, slots=True, kw_only=True)
class EditTarget:
    path: Path
    real: Path
    """The path with symlinks followed, as they were when permissions were checked."""
    status: os.stat_result | None
    source: SourceText | None
    """The text, or None if the file does not exist or is not text."""

    def store(self, source: SourceText, tool_context: ToolContext) -> None:
        try:
            content = source.to_bytes()
            status = replace_content(self.real, content, self.status, follows_links=False)
        except NotEncodable as error:
            raise Refused(f"{self.path} was not changed: {error}.") from None
        except Overtaken:
            raise Refused(f"{self.path} changed while this ran. Read it again.") from None
        tool_context.files.record(SeenFile(path=self.real, stamp=stamp_of(status, content)))


def _open_target(path: Path, tool_context: ToolContext) -> EditTarget:
    real = tool_context.resolve_links(path)
    try:
        status = real.stat()
    except FileNotFoundError:
        return EditTarget(path=path, real=real, status=None, source=None)
    if not stat.S_ISREG(status.st_mode):
        kind = "a directory" if stat.S_ISDIR(status.st_mode) else "no regular file"
        raise Refused(f"{path} is {kind}; it cannot be written.")
    if status.st_size > FILE_BYTES:
        raise Refused(f"{path} has {status.st_size:,} bytes. Change it with a program in Bash.")
    with open_regular(real) as file:
        status, content = os.fstat(file.fileno()), file.read(FILE_BYTES)
    _check_known(path, real, stamp_of(status, content), tool_context)
    source = None
    with suppress(NotText):
        source = decode(content)
    return EditTarget(path=path, real=real, status=status, source=source)


def _check_known(path: Path, real: Path, now: Stamp, tool_context: ToolContext) -> None:
    """Refuse files that the agent has not seen, except empty ones."""
    seen = tool_context.files.of(real)
    if seen is None and now.size:
        raise Refused(f"{path} has not been read in this session. Read it before you change it.")
    if seen is not None and not seen.stamp.same_content(now):
        raise Refused(
            f"{path} has changed since you last read or wrote it, by someone else or by a "
            "command. Read it again before you change it."
        )


LISTED_PLACES = 10


class EditInput(Input, frozen=True, kw_only=True):
    file_path: Annotated[str, Meta(description="The file, absolute or from the working directory.")]
    old_string: Annotated[
        str, Meta(description="The text to replace, exactly as in the file; empty for a new file.")
    ]
    new_string: Annotated[str, Meta(description="The text to put in its place.")]
    replace_all: Annotated[bool, Meta(description="Replace every place, not just one.")] = False


async def edit(given: EditInput, tool_context: ToolContext) -> Outcome:
    old, new = (text.replace("\r\n", "\n") for text in (given.old_string, given.new_string))
    target = _open_target(tool_context.resolve(given.file_path), tool_context)
    if not old:
        if target.source is not None and target.source.raw:
            raise Refused(f"{target.path} is not empty: an empty old_string only makes a new file.")
        target.store((target.source or SourceText("")).rewrite(new), tool_context)
        return Outcome(content=f"Wrote {target.path}.", note=f"created {target.path.name}")
    if old == new:
        raise Refused("old_string and new_string are the same; there is nothing to do.")
    if target.status is None:
        raise Refused(f"{given.file_path} does not exist. Make it with Write, or check the path.")
    if (source := target.source) is None:
        raise Refused(f"{given.file_path} is a binary file; it cannot be edited as text.")
    spans = _spans(source.text, old, given)
    target.store(source.replace_spans(spans, new), tool_context)
    removed, added = (len(spans) * len(text.splitlines()) for text in (old, new))
    note = f"edited {target.path.name}: −{removed} +{added} lines"
    first = _line_at(source.text, spans[0][0])
    where = (
        f"line {first}" if len(spans) == 1 else f"{len(spans)} places, the first in line {first}"
    )
    return Outcome(content=f"Edited {given.file_path}: {where}.", note=note)


def _spans(text: str, old: str, given: EditInput) -> list[tuple[int, int]]:
    """Find the matches. Refuse if there are none, or several without `replace_all`."""
    ends = accumulate(len(part) + len(old) for part in text.split(old)[:-1])
    spans = [(end - len(old), end) for end in ends]
    if not spans:
        raise Refused(_explain_not_found(text, old, given.file_path))
    if len(spans) > 1 and not given.replace_all:
        places = ", ".join(str(_line_at(text, start)) for start, _ in spans[:LISTED_PLACES])
        raise Refused(
            f"old_string is in {given.file_path} {len(spans)} times (lines {places}). Give more "
            "of the text around the one you mean, or set replace_all."
        )
    return spans


def _explain_not_found(text: str, old: str, path: str) -> str:
    said = f"old_string is not in {path}."
    if re.match(r" *\d+\t", old):
        return f"{said} Leave out the line numbers that Read puts before each line."
    wanted = next((line.strip() for line in old.split("\n") if line.strip()), "")
    lines = [n for n, line in enumerate(text.split("\n"), 1) if wanted and wanted == line.strip()]
    if not lines:
        return f"{said} Read the part you mean again and copy it exactly."
    places = ", ".join(map(str, lines[:LISTED_PLACES]))
    return (
        f"{said} Its first line, apart from blanks, is line {places}; what follows there or the "
        "indentation differs. Read that part again and copy it exactly."
    )


def _line_at(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


EDIT: Tool = make_tool("Edit", EditInput, edit, kind="write", path_inputs=("file_path",))


class WriteInput(Input, frozen=True, kw_only=True):
    file_path: Annotated[str, Meta(description="The file, absolute or from the working directory.")]
    content: Annotated[str, Meta(description="All that the file shall hold.")]


async def write(given: WriteInput, tool_context: ToolContext) -> Outcome:
    target = _open_target(tool_context.resolve(given.file_path), tool_context)
    source = (target.source or SourceText("")).rewrite(given.content)
    target.store(source, tool_context)
    lines = source.raw.count("\n") + (not source.ends_with_newline and bool(source.raw))
    verb = "Created" if target.status is None else "Replaced"
    said = f"{verb} {given.file_path} ({lines:,} lines)."
    return Outcome(content=said, note=f"{verb.lower()} {target.path.name}, {lines:,} lines")


WRITE: Tool = make_tool("Write", WriteInput, write, kind="write", path_inputs=("file_path",))
