"""Log entries as text, and the result types of history questions.

A result's text is verbatim. A body on disk is found by its file name alone, so that a branched or
moved session finds its own copy. The hash of the body must match the log.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

from longhold.core.log.cursor import clamp_time
from longhold.core.log.entries import AnyEntry, Collapsed, Compacted, Ran, Replied, Restored, Said
from longhold.core.log.results import Results
from longhold.core.messages import (
    Block,
    Document,
    Image,
    Opaque,
    RedactedThinking,
    ResultContent,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    block_to_wire,
)
from longhold.core.messages.text import clean_text, one_line
from longhold.core.tools.describe import description_of
from longhold.core.tools.history.pages import RecordPage
from longhold.errors import StoreError


def call_text(use: ToolUse) -> str:
    return "\n".join([f"[calls {use.name}, id {use.id}]", *_inputs(use)])


def _inputs(use: ToolUse) -> Iterator[str]:
    known = description_of(use.name)
    for key, value in use.input.items():
        if key == known.command_input and isinstance(value, str):
            yield f"$ {value}"
        elif isinstance(value, str):
            yield f"{key}:\n{value}" if "\n" in value else f"{key}: {value}"
        else:
            yield f"{key}: {_json_text(value)}"


def _json_text(value: object) -> str:
    return msgspec.json.encode(value).decode()


RecordKind: TypeAlias = Literal["user", "aside", "answer", "result", "summary", "line", "restored"]
Media: TypeAlias = tuple[Image | Document, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    n: int
    kind: RecordKind
    text: str
    media: Media = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Searchable:
    text: str
    body: int = 0
    """Offset of the record's text, after the call."""


def record_of(entry: AnyEntry) -> Record | None:
    match entry:
        case Said(content=content):
            kind: RecordKind = "aside" if entry.hidden or entry.role == "system" else "user"
            return _record(entry.n, kind, content)
        case Replied(content=content):
            return _record(entry.n, "answer", content)
        case Ran(content=str() as text):
            return Record(n=entry.n, kind="result", text=text)
        case Ran(content=tuple() as content):
            return _record(entry.n, "result", content)
        case Compacted(summary=content):
            return _record(entry.n, "summary", content)
        case Collapsed(text=text):
            return Record(n=entry.n, kind="line", text=text)
        case Restored(content=content):
            return _record(entry.n, "restored", content)
    return None


def answer_text(entry: Replied, leave_out: Callable[[ToolUse], bool]) -> str:
    kept = (b for b in entry.content if not (isinstance(b, ToolUse) and leave_out(b)))
    return "\n".join(map(_write_block, kept))


def _record(n: int, kind: RecordKind, content: Iterable[Block]) -> Record:
    blocks = tuple(content)
    return Record(
        n=n,
        kind=kind,
        text="\n".join(map(_write_block, blocks)),
        media=tuple(block for block in blocks if isinstance(block, Image | Document)),
    )


def _write_block(block: Block) -> str:
    match block:
        case Text(text=text):
            return text
        case Thinking(thinking=text):
            return f"[thinking]\n{text}"
        case RedactedThinking():
            return "[thinking that the provider keeps to itself]"
        case ToolUse():
            return call_text(block)
        case Image(source=source):
            return f"[an image was here: {source.get('media_type', 'of unknown type')}]"
        case Document():
            return "[a document was here]"
        case ToolResult() | Opaque():
            return _json_text(block_to_wire(block))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordHit:
    n: int
    kind: RecordKind
    at: float
    tool: str = ""
    tool_use_id: str = ""
    target: str = ""
    is_error: bool = False
    is_shown: bool = False
    """The model's view shows all of the record, so it need not be opened."""
    chars: int = 0
    lines: int = 0
    line: int = 0
    """The line with the most words of the question, or 0."""
    snippet: str = ""
    passage: str = ""

    def describe(self, *, marks_view: bool = True) -> str:
        call = f" of {self.tool} {self.tool_use_id}" if self.tool else ""
        target = f": {self.target}" if self.target else ""
        when = (
            f", {time.strftime('%Y-%m-%d %H:%M', time.gmtime(clamp_time(self.at)))} UTC"
            if self.at
            else ""
        )
        facts = f"{self.lines:,} lines, {self.chars:,} characters{when}"
        marks = ", an error" if self.is_error else ""
        marks += ", in view" if self.is_shown and marks_view else ""
        place = f" line {self.line:,}:" if self.line else ""
        line = f"#{self.n} {self.kind}{call}{target} ({facts}{marks}){place}"
        return one_line(clean_text(line))

    def quote_passage(self) -> str:
        """Quote the passage with "| ", so that it cannot imitate Longhold's output."""
        return "\n".join(f"| {clean_text(line)}" for line in self.passage.splitlines())


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRecords:
    hits: tuple[RecordHit, ...]
    total: int
    reached: int = 0
    """Number of matches examined, which the next page skips."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedRecord:
    title: str
    page: RecordPage
    media: Media = ()
    """Images and documents of the record. Only the first page has them."""
    trouble: str = ""


class Missing(Exception):
    """A body cannot be read. The message gives the reason."""


def read_body(results: Results | None, file: str, sha256: str = "") -> ResultContent:
    """Read a body by its recorded path. `results` is None if the log has no directory."""
    name = file.replace("\\", "/").rpartition("/")[2]
    if results is None:
        raise Missing(f"{name!r} does not belong to this transcript")
    if name in ("", ".", "..") or "\0" in name:
        raise Missing(f"{file!r} is not a file name")
    try:
        content = results.read(name)
    except StoreError as error:
        raise Missing(str(error)) from None
    except (UnicodeDecodeError, msgspec.DecodeError):
        content = ()
    if sha256 and results.body(name, content, cap_bytes=sys.maxsize).sha256 != sha256:
        raise Missing(f"{name!r} does not have the content that was written")
    return content
