"""Searches files for Grep and Glob.

It runs as a separate process, because only a process can be stopped if a pattern takes hours. The
process also ends itself, so that it does not outlive a killed agent.
"""

import json
import re
import signal
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from longhold.agent.tools.globs import walk
from longhold.agent.tools.source import NotText, decode

SEARCHED_BYTES = 64 << 20
LINE_CHARS = 500
LAST_SECONDS = 40
"""The process ends itself after this time. Its caller stops it earlier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    path: str
    pattern: str = ""
    wanted: str = ""
    """A regular expression for paths relative to `path`. "" accepts all paths."""
    mode: Literal["files_with_matches", "content", "count"] = "files_with_matches"
    limit: int = 0
    ignore_case: bool = False
    is_multiline: bool = False
    before: int = 0
    after: int = 0

    @property
    def is_file(self) -> bool:
        """Return whether `path` is one file, which is searched even if `.gitignore` excludes it."""
        return not Path(self.path).is_dir()

    @property
    def directory(self) -> Path:
        return Path(self.path).parent if self.is_file else Path(self.path)

    def file(self, name: str) -> Path:
        return self.directory / name

    def to_json(self) -> str:
        return json.dumps(asdict(self))


FoundRow = str | tuple[str, int] | tuple[str, int, str, bool]
"""A file, a file and its count, or a file with a line's number, its text and whether it matches."""


def main() -> None:
    """Answer the query on stdin with `found`, or with the `error` in its pattern."""
    signal.alarm(LAST_SECONDS)
    query = Query(**json.loads(sys.stdin.read()))
    try:
        answer: dict[str, object] = {"found": list(islice(search(query), query.limit or None))}
    except re.error as error:
        answer = {"error": str(error)}
    sys.stdout.write(json.dumps(answer))


def search(query: Query) -> Iterator[FoundRow]:
    wanted = re.compile(query.wanted, re.DOTALL)
    pattern = _compile_pattern(query)
    for path in (Path(query.path).name,) if query.is_file else walk(query.directory):
        if query.wanted and not wanted.fullmatch(path):
            continue
        if not query.pattern:
            yield path
            continue
        text = _text(query.file(path))
        lines = text.removesuffix("\n").split("\n") if text else []
        matched = _match_lines(text, lines, pattern, query)
        if query.mode == "content":
            yield from _show_lines(path, lines, matched, query)
        elif matched:
            yield path if query.mode == "files_with_matches" else (path, len(matched))


def _compile_pattern(query: Query) -> re.Pattern[str]:
    pattern = query.pattern
    for theirs, ours in ((r"\<", r"\b(?=\w)"), (r"\>", r"\b(?<=\w)"), (r"\z", r"\Z")):
        written = r"\g<1>" + ours.replace("\\", r"\\")
        pattern = re.sub(rf"(?<!\\)((?:\\\\)*){re.escape(theirs)}", written, pattern)
    for name, chars in (("alpha", "a-zA-Z"), ("digit", "0-9"), ("alnum", "a-zA-Z0-9")):
        pattern = pattern.replace(f"[:{name}:]", chars)
    pattern = pattern.replace("[:space:]", r"\s").replace("[:word:]", r"\w")
    flags = re.IGNORECASE if query.ignore_case else 0
    return re.compile(pattern, flags | re.MULTILINE | (re.DOTALL if query.is_multiline else 0))


def _text(file: Path) -> str:
    try:
        if not file.is_file() or file.stat().st_size > SEARCHED_BYTES:
            return ""
        return decode(file.read_bytes()).text
    except (OSError, NotText):
        return ""


def _match_lines(
    text: str, lines: list[str], pattern: re.Pattern[str], query: Query
) -> dict[int, None]:
    if query.is_multiline:
        return _match_spans(text, pattern, query.mode == "files_with_matches")
    if _is_local(pattern.pattern) and not pattern.search(text):
        return {}  # because one search over the whole text is faster than one per line
    found: dict[int, None] = {}
    for number, line in enumerate(lines, start=1):
        if pattern.search(line):
            found[number] = None
            if query.mode == "files_with_matches":
                break
    return found


def _is_local(pattern: str) -> bool:
    """Return whether every match within a line is also a match in the whole text."""
    return not re.search(r"\(\?|\\[ABZ]", pattern)


def _match_spans(text: str, pattern: re.Pattern[str], only_first: bool) -> dict[int, None]:
    found: dict[int, None] = {}
    place, number = 0, 1
    for match in pattern.finditer(text):
        if match.start() == len(text) and not text[-1:].strip("\n"):
            break  # because an empty match past the last newline is in no line
        number += text.count("\n", place, match.start())
        place = match.start()
        last = max(match.start(), match.end() - 1)
        found.update(dict.fromkeys(range(number, number + text.count("\n", place, last) + 1)))
        if only_first:
            break
    return found


def _show_lines(
    path: str, lines: list[str], matched: dict[int, None], query: Query
) -> Iterator[FoundRow]:
    shown: dict[int, None] = {}
    for number in matched:
        first, last = max(1, number - query.before), min(len(lines), number + query.after)
        shown.update(dict.fromkeys(range(first, last + 1)))
    for number in shown:
        line = lines[number - 1]
        text = line if len(line) <= LINE_CHARS else f"{line[:LINE_CHARS]}… [long line]"
        yield path, number, text, number in matched
