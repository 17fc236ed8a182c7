"""A substitute for ripgrep with the same features and output, for systems without it.

It runs as a process, because only a process can be stopped if a pattern takes hours.
"""

import json
import re
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from longhold.agent.tools.globs import walk
from longhold.agent.tools.source import NotText, decode

SEARCHED_BYTES = 64 << 20
"""Larger files are not searched; ripgrep gets the same limit."""


Write = Callable[[bytes], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    path: str
    pattern: str = ""
    """"" lists files."""
    wanted: str = ""
    """A regular expression for the path relative to `path`; "" accepts all."""
    only_names: bool = False
    ignore_case: bool = False
    is_multiline: bool = False
    before: int = 0
    after: int = 0

    @property
    def is_file(self) -> bool:
        """True for a single file, which is searched even if `.gitignore` excludes it."""
        return not Path(self.path).is_dir()

    @property
    def directory(self) -> Path:
        return Path(self.path).parent if self.is_file else Path(self.path)

    def file(self, name: str) -> Path:
        return self.directory / name

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def main(arguments: list[str], write: Write) -> int:
    """Answer one query; return ripgrep's exit status: 0 found, 1 nothing, 2 invalid pattern."""
    query = Query(**json.loads(arguments[0]))
    try:
        wanted = re.compile(query.wanted, re.DOTALL)
        pattern = _compile_pattern(query) if query.pattern else None
    except re.error as error:
        sys.stderr.write(str(error))
        return 2
    found = False
    for path in (Path(query.path).name,) if query.is_file else walk(query.directory):
        if query.wanted and not wanted.fullmatch(path):
            continue
        found = _answer(query, pattern, path, found, write) or found
    return 0 if found else 1


def _compile_pattern(query: Query) -> re.Pattern[str]:
    """Compile a pattern, translating ripgrep syntax that Python lacks."""
    pattern = query.pattern
    for theirs, ours in ((r"\<", r"\b(?=\w)"), (r"\>", r"\b(?<=\w)"), (r"\z", r"\Z")):
        written = r"\g<1>" + ours.replace("\\", r"\\")
        pattern = re.sub(rf"(?<!\\)((?:\\\\)*){re.escape(theirs)}", written, pattern)
    for name, chars in (("alpha", "a-zA-Z"), ("digit", "0-9"), ("alnum", "a-zA-Z0-9")):
        pattern = pattern.replace(f"[:{name}:]", chars)
    pattern = pattern.replace("[:space:]", r"\s").replace("[:word:]", r"\w")
    flags = re.IGNORECASE if query.ignore_case else 0
    return re.compile(pattern, flags | re.MULTILINE | (re.DOTALL if query.is_multiline else 0))


def _answer(
    query: Query, pattern: re.Pattern[str] | None, path: str, is_later: bool, write: Write
) -> bool:
    name = path.encode("utf-8", "surrogateescape")
    text = _text(query.file(path)) if pattern is not None else ""
    lines = text.removesuffix("\n").split("\n") if text else []
    matched = _match_lines(text, lines, pattern, query) if pattern is not None else {}
    if pattern is None or (matched and query.only_names):
        write(name + b"\0")
    elif matched:
        _print(name, lines, matched, query, is_later, write)
    return pattern is None or bool(matched)


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
        return _match_spans(text, pattern, query.only_names)
    if _is_local(pattern.pattern) and not pattern.search(text):
        return {}  # one search over the whole text is faster than one per line
    found: dict[int, None] = {}
    for number, line in enumerate(lines, start=1):
        if pattern.search(line):
            found[number] = None
            if query.only_names:
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
            break  # an empty match past the last newline is in no line
        number += text.count("\n", place, match.start())
        place = match.start()
        last = max(match.start(), match.end() - 1)
        found.update(dict.fromkeys(range(number, number + text.count("\n", place, last) + 1)))
        if only_first:
            break
    return found


def _print(
    name: bytes,
    lines: list[str],
    matched: dict[int, None],
    query: Query,
    is_later: bool,
    write: Write,
) -> None:
    has_context = bool(query.before or query.after)
    shown: dict[int, None] = {}
    for number in matched:
        first, last = max(1, number - query.before), min(len(lines), number + query.after)
        shown.update(dict.fromkeys(range(first, last + 1)))
    previous = 0
    for number in shown:
        is_gap = number != previous + 1 if previous else is_later
        if has_context and is_gap:
            write(b"--\n")
        mark = b":" if number in matched else b"-"
        line = lines[number - 1].encode("utf-8", "surrogatepass")
        write(name + b"\0" + str(number).encode() + mark + line + b"\n")
        previous = number
