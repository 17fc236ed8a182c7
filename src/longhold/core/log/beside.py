"""What lies beside a session's log, copied for a branch: all of it, or as it was at an entry.

Ledgers and agents' logs end where the branch does: lines carry their time. Results are kept if the
branch knows of their call, any other file if it was not written since. So a branch knows nothing
that came later, and what it has no page for is written anew.
"""

import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from longhold.core.log.entries import AnyEntry, Ran, Replied
from longhold.core.log.results import DIRECTORY, file_name
from longhold.core.messages import ToolUse
from longhold.core.settings.files import private_directory, write_private


class _Timed(msgspec.Struct):
    """What a line says of its time; the first line of a log says when the log was begun."""

    at: float = 0.0
    created: float = 0.0


_decoder = msgspec.json.Decoder(_Timed)


def copy_beside(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, ignore=_sockets)


def copy_upto(source: Path, target: Path, entries: Sequence[AnyEntry]) -> None:
    """Copy what was there when the last of these entries was written."""
    until, results = (entries[-1].at if entries else 0.0), result_names(entries)
    for path in _files(source):
        place = target / path.relative_to(source)
        if path.suffix == ".jsonl":
            if kept := _lines_until(path, until):
                write_private(place, kept)
        elif path.stem in results if path.parent.name == DIRECTORY else _mtime(path) <= until:
            private_directory(place.parent)
            shutil.copy2(path, place, follow_symlinks=False)


def _sockets(directory: str, names: list[str]) -> list[str]:
    return [one for one in names if stat.S_ISSOCK(Path(directory, one).lstat().st_mode)]


def _files(source: Path) -> Iterator[Path]:
    for directory, _, names in os.walk(source):
        for name in sorted(names):
            path = Path(directory, name)
            if stat.S_ISREG(path.lstat().st_mode):
                yield path


def _mtime(path: Path) -> float:
    return path.lstat().st_mtime


def result_names(entries: Iterable[AnyEntry]) -> set[str]:
    ids = {entry.tool_use_id for entry in entries if isinstance(entry, Ran)}
    for entry in entries:
        if isinstance(entry, Replied):
            ids |= {block.id for block in entry.content if isinstance(block, ToolUse)}
    return set(map(file_name, ids))


def _lines_until(path: Path, until: float) -> bytes:
    """Return the lines before the first later one; nothing of a log that was begun later."""
    kept: list[bytes] = []
    for line in path.read_bytes().splitlines(keepends=True):
        try:
            timed = _decoder.decode(line)
        except (msgspec.DecodeError, RecursionError):
            timed = _Timed()
        if max(timed.at, timed.created) > until:
            break
        kept.append(line)
    return b"".join(kept)
