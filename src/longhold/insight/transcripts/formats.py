"""Detects, reads and writes transcript formats."""

import gzip
import importlib
import math
import os
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol, cast

from longhold.core.log.entries import AnyEntry
from longhold.core.log.reading import LOG_STARTS, open_to_read
from longhold.core.settings.installation import load_plugins
from longhold.core.view import View
from longhold.errors import TranscriptError
from longhold.session.importing.json_records import decode_record, number_lines
from longhold.session.importing.transcript_writer import ImportAccount, TranscriptWriter

SNIFF_BYTES = 64 << 10
"""Enough for several records, so that one unreadable record does not prevent detection."""

SNIFF_LINE_BYTES = 32 << 20
"""A session may begin with a pasted image or log. Few pastes reach a tenth of this."""

ORIGIN_LINES = 50  # records at the start that are searched for the session's id and directory

LINE_BYTES = 128 << 20
"""The limit for one line, which is ten times the longest line that we have seen."""
UNPACKED_TIMES, UNPACKED_FLOOR_BYTES = 200, 64 << 20
"""The limits for unpacking are a factor and a size that is always allowed. Transcripts compress to
a twentieth. A file that compresses to a thousandth was crafted as an attack."""

_UNREADABLE = (OSError, EOFError, zlib.error)

Progress = Callable[[int], None]  # called with the bytes read so far


class Format(Protocol):
    """The interface of each format's module, and of a plug-in for `longhold.transcripts`."""

    NAME: str

    def sniff(self, first: bytes) -> bool: ...
    def read(self, lines: Iterator[bytes], writer: TranscriptWriter) -> Iterator[AnyEntry]: ...
    def write(self, view: View, *, session: str = "", directory: str = "") -> Iterator[bytes]:
        """Write the view of a session. Clients that store sessions need the id and directory."""


CLIENTS = ("claude-code", "codex", "pi")
"""Formats of agents that store sessions. Their modules are imported on demand."""
FORMATS = (*CLIENTS, "anthropic", "openai")
"""All formats in the order of detection. The last two are lists of messages."""


@dataclass(frozen=True, slots=True)
class Transcript:
    format: str
    entries: Iterator[AnyEntry]
    account: ImportAccount
    session: str = ""
    """The client's session id. A sub-agent's file has the id of its parent."""
    directory: str = ""


def load_format(name: str) -> Format:
    if name in CLIENTS:
        module = f"longhold.insight.transcripts.{name.replace('-', '_')}"
        return cast(Format, importlib.import_module(module))
    if name in FORMATS:
        from longhold.session.importing import api_messages

        return cast(Format, getattr(api_messages, name.upper()))
    if found := load_plugins("transcripts", name).get(name):
        return cast(Format, found)
    raise TranscriptError(name, f"is not a format; there are {', '.join(FORMATS)}")


def is_log(path: Path) -> bool:
    if path.is_fifo():
        return False
    try:
        with path.open("rb") as file:
            return file.read(max(map(len, LOG_STARTS))).startswith(LOG_STARTS)
    except OSError:
        return False  # because opening it as a transcript reports the error


def losses(name: str, view: View) -> Counter[str]:
    count = getattr(load_format(name), "losses", None)
    return count(view) if count else Counter()


@contextmanager
def open_transcript(path: Path | str, progress: Progress | None = None) -> Iterator[Transcript]:
    path = Path(path)
    with _open_file(path) as raw, _open_unpacked(raw) as file:
        first = _peek(path, file)
        format = _recognise(path, first)
        beside = getattr(format, "calls_beside", None)
        writer = TranscriptWriter(beside(path) if beside else ())
        entries = _all(format, _lines(path, file, raw, progress), writer, path)
        session, directory = _origin(first)
        yield Transcript(format.NAME, entries, writer.account, session, directory)


def _origin(first: bytes) -> tuple[str, str]:
    session = directory = ""
    for _, line in number_lines(first.split(b"\n")[:ORIGIN_LINES]):
        record = decode_record(line)
        if not isinstance(record, dict):
            continue
        inner = record.get("payload")
        fields = record | inner if isinstance(inner, dict) else record
        is_head = record.get("type") in ("session", "session_meta") or "instructions" in record
        session = session or str(fields.get("sessionId") or (is_head and fields.get("id")) or "")
        directory = directory or str(fields.get("cwd") or "") or _told_directory(line)
        directory = "" if "\0" in directory else directory  # because the name cannot be a path
        if session and directory:
            break
    return session, directory


def _told_directory(line: bytes) -> str:
    """Return the directory of an old Codex session, which is only in the text for the model."""
    told = re.search(rb"<environment_context>.{0,200}?<cwd>([^<]{1,4096})</cwd>", line)
    return told[1].decode(errors="replace") if told else ""


def read_lines(lines: Iterable[bytes], name: str) -> Iterator[AnyEntry]:
    return load_format(name).read(iter(lines), TranscriptWriter())


def decode_path(path: Path | str) -> str:
    return os.fsencode(path).decode("utf-8", "replace")


def _all(
    format: Format, lines: Iterator[bytes], writer: TranscriptWriter, path: Path
) -> Iterator[AnyEntry]:
    yield from format.read(lines, writer)
    yield from writer.beside(math.inf)
    yield writer.write_import(format.NAME, decode_path(path))


def _open_file(path: Path) -> IO[bytes]:
    file = open_to_read(path, "transcript")
    if not file.seekable():
        file.close()
        raise TranscriptError(path, "is a stream, which cannot be read twice; save it to a file")
    return file


@contextmanager
def _open_unpacked(raw: IO[bytes]) -> Iterator[IO[bytes]]:
    is_gzip = raw.read(2) == b"\x1f\x8b"
    raw.seek(0)
    if is_gzip:
        with gzip.open(raw) as file:
            yield cast(IO[bytes], file)
    else:
        yield raw


def _peek(path: Path, file: IO[bytes]) -> bytes:
    try:
        first = file.read(SNIFF_BYTES)
        if first.lstrip()[:1] == b"{":  # because a truncated record cannot be recognised
            first += file.readline(SNIFF_LINE_BYTES)
        file.seek(0)
    except _UNREADABLE as error:
        raise TranscriptError(path, f"cannot be unpacked: {error}; fetch it again") from error
    return first


def _recognise(path: Path, first: bytes) -> Format:
    if not first.strip():
        raise TranscriptError(path, "is empty; there is nothing to read")
    for name in FORMATS:
        if (format := load_format(name)).sniff(first):
            return format
    for plugin in load_plugins("transcripts").values():
        with suppress(Exception):  # another plug-in may know the file
            if plugin.sniff(first):
                return cast(Format, plugin)
    if b"\0" in first:  # checked last, because a crash can leave zeroes in a transcript too
        raise TranscriptError(path, "is a binary file, not a transcript")
    if first.startswith(LOG_STARTS):
        raise TranscriptError(path, "is a Longhold log and not a transcript; pass it to a command")
    listed = ", ".join(FORMATS)
    raise TranscriptError(path, f"has an unknown format; expected {listed}, or a Longhold log")


def _lines(
    path: Path, file: IO[bytes], raw: IO[bytes], progress: Progress | None
) -> Iterator[bytes]:
    """Yield lines, and report the position in the file, which may be compressed."""
    most = max(UNPACKED_FLOOR_BYTES, UNPACKED_TIMES * os.fstat(raw.fileno()).st_size)
    left = most
    try:
        while line := file.readline(min(LINE_BYTES, left) + 1):
            left -= len(line)
            if left < 0:
                raise TranscriptError(
                    path, f"unpacks to more than {most:,} bytes; unpack it by hand"
                )
            if len(line) > LINE_BYTES:
                raise TranscriptError(path, f"has a line of more than {LINE_BYTES:,} bytes")
            yield line
            if progress is not None:
                progress(raw.tell())
    except _UNREADABLE as error:
        raise TranscriptError(path, f"cannot be read to its end: {error}") from error
