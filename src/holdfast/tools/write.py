"""Write: give a file its whole content, new or in place of the old.

A file that is there must have been read and be what was read; its encoding, byte order
mark, line ends, final newline and mode are kept. Missing directories are made.
"""

from typing import Annotated

from msgspec import Meta

from holdfast.tools.context import ToolContext
from holdfast.tools.protocol import Input, Outcome, Tool, make_tool
from holdfast.tools.source import SourceText
from holdfast.tools.target import open_target


class WriteInput(Input, frozen=True, kw_only=True):
    """What Write takes."""

    file_path: Annotated[str, Meta(description="The file, absolute or from the working directory.")]
    content: Annotated[str, Meta(description="All that the file shall hold.")]


async def write(given: WriteInput, tool_context: ToolContext) -> Outcome:
    """Give a file its whole content."""
    target = open_target(tool_context.resolve(given.file_path), tool_context)
    source = (target.source or SourceText("")).rewritten(given.content)
    target.store(source, tool_context)
    lines = source.raw.count("\n") + (not source.ends_with_newline and bool(source.raw))
    verb = "Created" if target.status is None else "Replaced"
    said = f"{verb} {given.file_path} ({lines:,} lines)."
    return Outcome(content=said, note=f"{verb.lower()} {target.path.name}, {lines:,} lines")


WRITE: Tool = make_tool("Write", WriteInput, write, kind="write", path_inputs=("file_path",))
