"""Glob: find files by name, newest first; ignored files are left out.

Where to look is the `path` input alone, so that the permissions see it.
"""

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from holdfast.tools.context import ToolContext
from holdfast.tools.grep import existing, newest_first, path_filter, too_long
from holdfast.tools.protocol import Input, Outcome, Refused, Tool, make_tool
from holdfast.tools.scan import Query
from holdfast.tools.search import find_names

MAX_FILES = 100
"""Who finds more has asked too widely."""


class GlobInput(Input, frozen=True, kw_only=True):
    pattern: Annotated[str, Meta(description="Like `**/*.py` or `src/*.{ts,tsx}`.", min_length=1)]
    path: Annotated[str, Meta(description="Where to look; the working directory by default.")] = ""


async def glob(given: GlobInput, tool_context: ToolContext) -> Outcome:
    if given.pattern.startswith(("/", "~", "../")):
        raise Refused("A pattern counts from `path`: give the directory there.")
    top = existing(given.path, tool_context)
    if not top.is_dir():
        raise Refused(f"{given.path} is a file; name a directory to look in.")
    query = Query(path=str(top), wanted=path_filter(given.pattern))
    try:
        names = await find_names(query, tool_context)
    except TimeoutError:
        raise Refused(too_long(str(top))) from None
    found = newest_first(query, names)
    return _outcome(given, found, tool_context)


def _outcome(given: GlobInput, found: list[Path], tool_context: ToolContext) -> Outcome:
    if not found:
        where = given.path or "the working directory"
        return Outcome(content=f"No file in {where} is like {given.pattern}.", note="no file")
    lines = [tool_context.shown(path) for path in found[:MAX_FILES]]
    if len(found) > MAX_FILES:
        lines.append(f"[The {MAX_FILES} newest of {len(found):,} files; ask more narrowly.]")
    note = f"{len(found):,} file{'s' if len(found) != 1 else ''}"
    return Outcome(content="\n".join(lines), note=note)


GLOB: Tool = make_tool(
    "Glob", GlobInput, glob, kind="search", path_inputs=("path",), is_read_only=True
)
