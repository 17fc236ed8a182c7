"""The Grep and Glob tools.

Lines are grouped under their file, so each path costs tokens only once. Only `path` decides where
to search, so that the permissions see it. Ripgrep searches, or `scan` if it is not installed; its
process ends with the search, on timeout, or when the caller stops reading.
"""

import asyncio
import contextlib
import re
import signal
import sys
from asyncio import timeout
from collections import Counter
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, field

from longhold.agent.tools.globs import glob_expression
from longhold.agent.tools.process import signal_group
from longhold.agent.tools.scan import SEARCHED_BYTES, Query
from longhold.agent.tools.shells import shells_of
from longhold.agent.tools.source import SNIFFED_BYTES, is_binary
from longhold.core.messages.text import pluralize
from longhold.core.tools.context import ToolContext
from longhold.core.tools.describe import MATCH_CHARS
from longhold.core.tools.environment import find_program
from longhold.core.tools.protocol import Input, Outcome, Refused, Tool, make_tool

SEARCH_SECONDS = 30.0
RECORD_BYTES = 1 << 16
"""Per printed line; the rest of a longer line is skipped."""
CHUNK_BYTES = 1 << 16

_LOADER = """
import sys, types
package = types.ModuleType("longhold")
package.__path__ = [sys.argv[1]]
sys.modules["longhold"] = package
from longhold.agent.tools import scan
sys.exit(scan.main(sys.argv[2:], sys.stdout.buffer.write))
"""
"""Loads `scan` without the rest of the package, which takes five times as long."""


@dataclass(frozen=True, slots=True)
class MatchedLine:
    path: str
    number: int
    text: str
    is_match: bool


@dataclass(frozen=True, slots=True)
class Gap:
    """Lines were omitted between two shown ones."""


class _NotUnderstood(Exception):
    """The program rejected the pattern."""


async def find_names(query: Query, tool_context: ToolContext) -> list[str]:
    """Return the files, or those that contain the pattern, unsorted."""
    names: list[str] = []
    async with asyncio.timeout(SEARCH_SECONDS):
        async with contextlib.aclosing(_records(query, b"\0", tool_context)) as records:
            async for record in records:
                names.append(record.decode("utf-8", "surrogateescape"))
    return [name for name in names if _is_wanted(query, name)]


async def find_lines(
    query: Query, tool_context: ToolContext
) -> AsyncGenerator[MatchedLine | Gap, None]:
    """Yield matching lines and their context, sorted by file name."""
    path, is_wanted, has_gap, has_any = "", False, False, False
    async with contextlib.aclosing(_records(query, b"\n", tool_context)) as records:
        async for record in records:
            name, zero, rest = record.partition(b"\0")
            if not zero:
                has_gap = True
                continue
            line = _line(name.decode("utf-8", "surrogateescape"), rest)
            if line is None:
                continue
            if line.path != path:
                path, is_wanted = line.path, _is_wanted(query, line.path)
            if not is_wanted:
                continue
            if has_gap and has_any:
                yield Gap()
            has_gap, has_any = False, True
            yield line


def _line(path: str, rest: bytes) -> MatchedLine | None:
    parts = re.match(rb"(\d+)([:-])", rest)
    if parts is None:
        return None
    return MatchedLine(path, int(parts[1]), _decode_line(rest[parts.end() :]), parts[2] == b":")


def _decode_line(line: bytes) -> str:
    """Decode a line like its file; a cut line may end within a character."""
    line = line.removesuffix(b"\r")
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        is_cut = error.start > len(line) - 4 and len(line) > RECORD_BYTES // 2
        return line[: error.start].decode("utf-8") if is_cut else line.decode("latin-1")


def _is_wanted(query: Query, path: str) -> bool:
    if query.wanted and not re.fullmatch(query.wanted, path, re.DOTALL):
        return False
    if not query.pattern:
        return True
    try:
        with query.file(path).open("rb") as opened:
            return not is_binary(opened.read(SNIFFED_BYTES))
    except OSError:
        return False


async def _records(
    query: Query, end: bytes, tool_context: ToolContext
) -> AsyncGenerator[bytes, None]:
    package = Path(__file__).parents[2]
    searches = [[sys.executable, "-P", "-c", _LOADER, str(package), query.to_json()]]
    if ripgrep := find_program("rg", near=tool_context.root):
        searches.insert(0, _ripgrep(ripgrep, query))
    reason = ""
    for arguments in searches:
        try:
            async with contextlib.aclosing(_run(arguments, query, end, tool_context)) as records:
                async for record in records:
                    yield record.removeprefix(b"./")
            return
        except _NotUnderstood as error:  # ripgrep lacks look-around and the like
            reason = str(error)
    raise Refused(f"{query.pattern!r} is not a regular expression: {reason}.")


def _ripgrep(program: str, query: Query) -> list[str]:
    """Return arguments that make ripgrep behave like `scan`."""
    arguments = [program, "--no-config", "--no-messages", "--color=never", "--hidden", "--null"]
    arguments += ["--no-ignore-dot", "--no-ignore-global", "--no-require-git", "--glob=!.git"]
    arguments += [f"--glob=!{name}" for name in (".bzr", ".hg", ".jj", ".sl", ".svn")]
    arguments += [f"--max-filesize={SEARCHED_BYTES}"]
    target = Path(query.path).name if query.is_file else "."
    if not query.pattern:
        return [*arguments, "--files", "--", target]
    arguments += ["--text", "--crlf", "--no-heading", "--line-number", "--with-filename"]
    arguments += ["--files-with-matches"] if query.only_names else ["--sort=path"]
    arguments += ["--ignore-case"] if query.ignore_case else []
    arguments += ["--multiline", "--multiline-dotall"] if query.is_multiline else []
    arguments += [f"--before-context={query.before}"] if query.before else []
    arguments += [f"--after-context={query.after}"] if query.after else []
    return [*arguments, f"--regexp={query.pattern}", "--", target]


async def _run(
    arguments: list[str], query: Query, end: bytes, tool_context: ToolContext
) -> AsyncGenerator[bytes, None]:
    """Run a search and yield its records; closing the generator ends the process."""
    process = await asyncio.create_subprocess_exec(
        *arguments,
        cwd=query.directory,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None and process.stderr is not None
    shells_of(tool_context).hold(process.pid)
    try:
        async for record in _split(process.stdout, end):
            yield record
        complaint = (await process.stderr.read(RECORD_BYTES)).decode("utf-8", "replace").strip()
        if await process.wait() and complaint:
            raise _NotUnderstood(complaint.splitlines()[-1])
    finally:
        if process.returncode is None:
            signal_group(process.pid, signal.SIGKILL)
        shells_of(tool_context).release(process.pid)
        await process.communicate()  # drain the pipes so that they close


async def _split(stream: asyncio.StreamReader, end: bytes) -> AsyncGenerator[bytes, None]:
    """Split a stream at a byte; the rest of an overlong record is skipped."""
    rest, is_over = b"", False
    while piece := await stream.read(CHUNK_BYTES):
        *whole, last = (rest + piece).split(end)
        for record in whole:
            if not is_over:
                yield record[:RECORD_BYTES]
            is_over = False
        rest = last
        if len(rest) > RECORD_BYTES:
            if not is_over:
                yield rest[:RECORD_BYTES]
            rest, is_over = b"", True
    if rest and not is_over:
        yield rest


HEAD_LIMIT = 250
LINE_CHARS = 500
MAX_CONTEXT_LINES = 100

_TYPES = {
    "c": "*.{c,h}",
    "cpp": "*.{cc,cpp,cxx,h,hh,hpp,hxx}",
    "cs": "*.cs",
    "css": "*.{css,scss,sass,less}",
    "go": "*.go",
    "html": "*.{html,htm}",
    "java": "*.java",
    "js": "*.{js,cjs,mjs,jsx}",
    "json": "*.{json,jsonl}",
    "kotlin": "*.{kt,kts}",
    "md": "*.{md,markdown,mdx}",
    "php": "*.php",
    "py": "*.{py,pyi}",
    "ruby": "*.{rb,gemspec,rake}",
    "rust": "*.rs",
    "sh": "*.{sh,bash,zsh}",
    "sql": "*.sql",
    "swift": "*.swift",
    "toml": "*.toml",
    "ts": "*.{ts,cts,mts,tsx}",
    "txt": "*.txt",
    "xml": "*.{xml,xsd,xsl}",
    "yaml": "*.{yaml,yml}",
}

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
    top = _require_existing(given.path, tool_context)
    query = _query(given, top)
    try:
        match given.output_mode:
            case "files_with_matches":
                return await _names(given, query, tool_context)
            case "content":
                return await _content(given, query, tool_context)
            case "count":
                return await _counts(given, query, tool_context)
    except TimeoutError:
        raise Refused(_explain_too_long(given.path or ".")) from None


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


def _explain_too_long(path: str) -> str:
    return f"Searching {path} took over {SEARCH_SECONDS:g} s. Name a smaller path or a glob."


def _query(given: GrepInput, top: Path) -> Query:
    if given.type and given.type not in _TYPES:
        raise Refused(f"No kind of file is called {given.type!r}; there are {', '.join(_TYPES)}.")
    # Both must match: the kind is a lookahead before the path pattern.
    kind = rf"(?=(?:{glob_expression(_TYPES[given.type])})\Z)" if given.type else ""
    wanted = _path_filter(given.glob) if given.glob else ".*" if kind else ""
    return Query(
        path=str(top),
        pattern=given.pattern,
        wanted=f"{kind}(?:{wanted})" if wanted else "",
        only_names=given.output_mode == "files_with_matches",
        ignore_case=given.ignore_case,
        is_multiline=given.multiline,
        before=max(given.before, given.around) if given.output_mode == "content" else 0,
        after=max(given.after, given.around) if given.output_mode == "content" else 0,
    )


async def _names(given: GrepInput, query: Query, tool_context: ToolContext) -> Outcome:
    found = _sort_newest(query, await find_names(query, tool_context))
    if not found:
        return _report_nothing(given)
    chosen = found[given.offset : given.offset + given.head_limit]
    lines = [tool_context.shown(path) for path in chosen]
    if len(chosen) < len(found):
        lines.append(f"[{len(chosen)} of {len(found):,} files.]")
    return Outcome(content="\n".join(lines), note=f"{pluralize(len(found), 'file')} with a match")


async def _content(given: GrepInput, query: Query, tool_context: ToolContext) -> Outcome:
    end = given.offset + given.head_limit
    rows: list[MatchedLine | Gap] = []
    async with timeout(SEARCH_SECONDS):
        async with contextlib.aclosing(find_lines(query, tool_context)) as found:
            async for row in found:
                rows.append(row)
                if len(rows) > end:
                    break
    if not rows:
        return _report_nothing(given)
    shown = _render_rows(rows[given.offset : end], given, query, tool_context)
    if len(rows) > end:
        shown.append(f"[There is more; continue with offset {end}, or narrow the search.]")
    matches = sum(isinstance(row, MatchedLine) and row.is_match for row in rows[given.offset : end])
    return Outcome(content="\n".join(shown), note=pluralize(matches, "matching line"))


def _render_rows(
    rows: Iterable[MatchedLine | Gap], given: GrepInput, query: Query, tool_context: ToolContext
) -> list[str]:
    """Group lines under their file's name; a single file needs no name."""
    shown: list[str] = []
    path = Path(query.path).name if query.is_file else ""
    for row in rows:
        if isinstance(row, Gap):
            shown.append("--")
            continue
        if row.path != path:
            path = row.path
            if shown and shown[-1] == "--":
                shown.pop()
            heading = tool_context.shown(query.file(path))
            shown += ["", heading] if shown else [heading]
        mark = ":" if row.is_match else "-"
        number = f"{row.number}{mark}" if given.with_numbers else ""
        is_long = len(row.text) > LINE_CHARS
        shown.append(number + (f"{row.text[:LINE_CHARS]}… [long line]" if is_long else row.text))
    return shown


async def _counts(given: GrepInput, query: Query, tool_context: ToolContext) -> Outcome:
    counts: Counter[str] = Counter()
    async with timeout(SEARCH_SECONDS):
        async with contextlib.aclosing(find_lines(query, tool_context)) as found:
            async for row in found:
                if isinstance(row, MatchedLine):
                    counts[row.path] += 1
    if not counts:
        return _report_nothing(given)
    listed = [
        f"{tool_context.shown(query.file(path))}:{count}" for path, count in sorted(counts.items())
    ]
    chosen = listed[given.offset : given.offset + given.head_limit]
    total = f"[{counts.total():,} matching lines in {pluralize(len(counts), 'file')}.]"
    return Outcome(content="\n".join([*chosen, total]), note=total.strip("[.]"))


def _sort_newest(query: Query, names: Iterable[str]) -> list[Path]:
    dated: list[tuple[int, str, Path]] = []
    for name in names:
        path = query.file(name)
        with contextlib.suppress(OSError):  # deleted since it was found
            dated.append((-path.stat().st_mtime_ns, str(path), path))
    return [path for _, _, path in sorted(dated)]


def _report_nothing(given: GrepInput) -> Outcome:
    said = f"Nothing matches {given.pattern!r} in {given.path or 'the working directory'}"
    files = f" (files like {given.glob})" if given.glob else ""
    return Outcome(content=f"{said}{files}.", note="no match")


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
    try:
        names = await find_names(query, tool_context)
    except TimeoutError:
        raise Refused(_explain_too_long(str(top))) from None
    found = _sort_newest(query, names)
    if not found:
        where = given.path or "the working directory"
        return Outcome(content=f"No file in {where} is like {given.pattern}.", note="no file")
    lines = [tool_context.shown(path) for path in found[:MAX_FILES]]
    if len(found) > MAX_FILES:
        lines.append(f"[The {MAX_FILES} newest of {len(found):,} files; ask more narrowly.]")
    return Outcome(content="\n".join(lines), note=pluralize(len(found), "file"))


GLOB: Tool = make_tool(
    "Glob", GlobInput, glob, kind="search", path_inputs=("path",), is_read_only=True
)
