"""The Grep and Glob tools.

Lines are grouped under their file, so each path costs tokens only once. Only `path` decides where
to search, so that the permissions see it. `scan` searches in a separate process.
"""

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, field

from longhold.agent.tools import process
from longhold.agent.tools.globs import glob_expression
from longhold.agent.tools.scan import Query
from longhold.core.messages.text import pluralize
from longhold.core.tools.context import ToolContext
from longhold.core.tools.describe import MATCH_CHARS
from longhold.core.tools.protocol import Input, Outcome, Refused, Tool, make_tool

SEARCH_SECONDS = 30.0
FOUND_BYTES = 64 << 20
"""The size limit for the result of a search, about the paths of 500,000 files."""

_LOADER = """
import sys, types
package = types.ModuleType("longhold")
package.__path__ = [sys.argv[1]]
sys.modules["longhold"] = package
from longhold.agent.tools import scan
scan.main()
"""
"""Loads `scan` alone, because loading the whole package takes five times as long."""


async def search(query: Query) -> list[Any]:
    """Return what `scan.search` finds. Raise if the pattern is invalid or the search too slow."""
    package = Path(__file__).parents[2]
    ended = await process.run(
        (sys.executable, "-P", "-c", _LOADER, str(package)),
        given=query.to_json().encode(),
        cwd=query.directory,
        variables=os.environ,
        timeout_seconds=SEARCH_SECONDS,
        output_bytes=FOUND_BYTES,
    )
    if ended.is_timed_out:
        raise Refused(
            f"Searching {query.path} took over {SEARCH_SECONDS:g} s. Name a smaller path or a glob."
        )
    try:
        answer = json.loads(ended.stdout)
    except ValueError:
        raise Refused(f"Too much was found in {query.path}. Name a smaller path.") from None
    if "error" in answer:
        raise Refused(f"{query.pattern!r} is not a regular expression: {answer['error']}.")
    found: list[Any] = answer["found"]
    return found


HEAD_LIMIT = 250
MAX_CONTEXT_LINES = 100

_TYPES = {
    "c": "c,h",
    "cpp": "cc,cpp,cxx,h,hh,hpp,hxx",
    "css": "css,scss,sass,less",
    "html": "html,htm",
    "js": "js,cjs,mjs,jsx",
    "json": "json,jsonl",
    "kotlin": "kt,kts",
    "md": "md,markdown,mdx",
    "py": "py,pyi",
    "ruby": "rb,gemspec,rake",
    "rust": "rs",
    "sh": "sh,bash,zsh",
    "ts": "ts,cts,mts,tsx",
    "xml": "xml,xsd,xsl",
    "yaml": "yaml,yml",
}
"""The suffixes of each kind of file. Any other kind is itself a suffix."""

ContextLines = Annotated[int, Meta(ge=0, le=MAX_CONTEXT_LINES)]


class GrepInput(Input, frozen=True, kw_only=True):
    pattern: Annotated[str, Meta(description="A regular expression.", min_length=1)]
    path: Annotated[
        str, Meta(description="A directory or file; the working directory by default.")
    ] = ""
    glob: Annotated[str, Meta(description="Only files like this: `*.py`, `src/**/*.{ts,tsx}`.")] = (
        ""
    )
    type: Annotated[str, Meta(description="Only files of a kind: py, js, ts, go, rust, md …")] = ""
    output_mode: Annotated[
        Literal["files_with_matches", "content", "count"],
        Meta(description="File names (default), lines, or matching lines per file."),
    ] = "files_with_matches"
    ignore_case: Annotated[bool, Meta(description="Ignore case.")] = field(name="-i", default=False)
    with_numbers: Annotated[bool, Meta(description="Line numbers, on by default.")] = field(
        name="-n", default=True
    )
    before: Annotated[ContextLines, Meta(description="Lines before each match.")] = field(
        name="-B", default=0
    )
    after: Annotated[ContextLines, Meta(description="Lines after each match.")] = field(
        name="-A", default=0
    )
    around: Annotated[ContextLines, Meta(description="Lines before and after.")] = field(
        name="-C", default=0
    )
    multiline: Annotated[bool, Meta(description="Let the pattern cross lines.")] = False
    head_limit: Annotated[
        int, Meta(description="How many lines or files to give, 250 by default.", ge=1)
    ] = HEAD_LIMIT
    offset: Annotated[int, Meta(description="How many to skip first.", ge=0)] = 0


async def grep(given: GrepInput, tool_context: ToolContext) -> Outcome:
    query = _query(given, _require_existing(given.path, tool_context))
    found = [
        row
        for row in await search(query)
        if not tool_context.is_hidden(query.file(row if isinstance(row, str) else row[0]))
    ]
    if not found:
        where = given.path or "the working directory"
        files = f" (files like {given.glob})" if given.glob else ""
        said = f"Nothing matches {given.pattern!r} in {where}{files}."
        return Outcome(content=said, note="no match")
    match given.output_mode:
        case "files_with_matches":
            return _names(given, _sort_newest(query, found), tool_context)
        case "content":
            return _content(given, query, found, tool_context)
        case "count":
            return _counts(given, query, found, tool_context)


def _require_existing(path: str, tool_context: ToolContext) -> Path:
    top = tool_context.resolve(path) if path else tool_context.directory
    if not top.exists():
        raise Refused(f"{path} does not exist. The working directory is {tool_context.directory}.")
    if not top.is_file() and not top.is_dir():
        raise Refused(f"{path} is neither a file nor a directory.")
    return top


def _path_filter(pattern: str) -> str:
    expression = glob_expression(pattern)
    try:
        re.compile(expression)
    except re.error as error:
        raise Refused(f"{pattern!r} is not a path pattern: {error}.") from None
    return expression


def _query(given: GrepInput, top: Path) -> Query:
    suffixes = _TYPES.get(given.type, given.type)
    # Both must match, so the kind is a lookahead before the path pattern.
    kind = rf"(?=(?:{_path_filter(f'*.{{{suffixes}}}')})\Z)" if suffixes else ""
    wanted = _path_filter(given.glob) if given.glob else ".*" if kind else ""
    return Query(
        path=str(top),
        pattern=given.pattern,
        wanted=f"{kind}(?:{wanted})" if wanted else "",
        mode=given.output_mode,
        limit=given.offset + given.head_limit + 1 if given.output_mode == "content" else 0,
        ignore_case=given.ignore_case,
        is_multiline=given.multiline,
        before=max(given.before, given.around) if given.output_mode == "content" else 0,
        after=max(given.after, given.around) if given.output_mode == "content" else 0,
    )


def _names(given: GrepInput, found: list[Path], tool_context: ToolContext) -> Outcome:
    chosen = found[given.offset : given.offset + given.head_limit]
    lines = [tool_context.show_path(path) for path in chosen]
    if len(chosen) < len(found):
        lines.append(f"[{len(chosen)} of {len(found):,} files.]")
    return Outcome(content="\n".join(lines), note=f"{pluralize(len(found), 'file')} with a match")


def _content(
    given: GrepInput, query: Query, found: list[Any], tool_context: ToolContext
) -> Outcome:
    """Group lines under their file's name. A single file needs no name."""
    end = given.offset + given.head_limit
    rows = found[given.offset : end]
    shown: list[str] = []
    last = (Path(query.path).name if query.is_file else "", 0)
    for path, number, text, is_match in rows:
        if path != last[0]:
            heading = tool_context.show_path(query.file(path))
            shown += ["", heading] if shown else [heading]
        elif shown and number != last[1] + 1 and (query.before or query.after):
            shown.append("--")
        last = (path, number)
        mark = ":" if is_match else "-"
        shown.append(f"{number}{mark}{text}" if given.with_numbers else text)
    if len(found) > end:
        shown.append(f"[There is more; continue with offset {end}, or narrow the search.]")
    matches = sum(is_match for *_, is_match in rows)
    return Outcome(content="\n".join(shown), note=pluralize(matches, "matching line"))


def _counts(given: GrepInput, query: Query, found: list[Any], tool_context: ToolContext) -> Outcome:
    listed = [
        f"{tool_context.show_path(query.file(path))}:{count}" for path, count in sorted(found)
    ]
    chosen = listed[given.offset : given.offset + given.head_limit]
    lines = sum(count for _, count in found)
    total = f"[{lines:,} matching lines in {pluralize(len(found), 'file')}.]"
    return Outcome(content="\n".join([*chosen, total]), note=total.strip("[.]"))


def _sort_newest(query: Query, names: Iterable[str]) -> list[Path]:
    dated: list[tuple[int, str, Path]] = []
    for name in names:
        path = query.file(name)
        with contextlib.suppress(OSError):  # because it was deleted after it was found
            dated.append((-path.stat().st_mtime_ns, str(path), path))
    return [path for _, _, path in sorted(dated)]


GREP: Tool = make_tool(
    "Grep",
    GrepInput,
    grep,
    kind="search",
    path_inputs=("path",),
    is_read_only=True,
    limit_chars=MATCH_CHARS,
)


MAX_FILES = 100


class GlobInput(Input, frozen=True, kw_only=True):
    pattern: Annotated[str, Meta(description="Like `**/*.py` or `src/*.{ts,tsx}`.", min_length=1)]
    path: Annotated[str, Meta(description="Where to look; the working directory by default.")] = ""


async def glob(given: GlobInput, tool_context: ToolContext) -> Outcome:
    if given.pattern.startswith(("/", "~", "../")):
        raise Refused("A pattern counts from `path`: give the directory there.")
    top = _require_existing(given.path, tool_context)
    if not top.is_dir():
        raise Refused(f"{given.path} is a file; name a directory to look in.")
    query = Query(path=str(top), wanted=_path_filter(given.pattern))
    found = _sort_newest(query, await search(query))
    if not found:
        where = given.path or "the working directory"
        return Outcome(content=f"No file in {where} is like {given.pattern}.", note="no file")
    lines = [tool_context.show_path(path) for path in found[:MAX_FILES]]
    if len(found) > MAX_FILES:
        lines.append(f"[The {MAX_FILES} newest of {len(found):,} files; ask more narrowly.]")
    return Outcome(content="\n".join(lines), note=pluralize(len(found), "file"))


GLOB: Tool = make_tool(
    "Glob", GlobInput, glob, kind="search", path_inputs=("path",), is_read_only=True
)
