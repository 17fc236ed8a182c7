"""Searches files with ripgrep, or with `scan` if it is not installed.

The process ends with the search, on timeout, or when the caller stops reading.
"""

import asyncio
import contextlib
import re
import shutil
import signal
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

from longhold.agent.tools.process import signal_group
from longhold.agent.tools.scan import SEARCHED_BYTES, Query
from longhold.agent.tools.shells import shells_of
from longhold.agent.tools.source import SNIFFED_BYTES, is_binary
from longhold.core.tools.context import ToolContext
from longhold.core.tools.protocol import Refused

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
    if ripgrep := shutil.which("rg", path=tool_context.variables.get("PATH")):
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
