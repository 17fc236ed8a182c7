"""Bodies of tool results stored outside the log, one write-once file each.

A result has such a body if it is too large for the log, or if the view shows only a preview. Ids
are untrusted, so files are only created in the session's directory, never overwritten, and never
reached through symlinks.
"""

import hashlib
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec import structs

from longhold.core.log.cursor import earliest_now
from longhold.core.log.entries import AnyEntry, Ran, Spilled, Swept
from longhold.core.messages import Document, Image, Opaque, ResultContent, Text, text_of
from longhold.core.settings import Settings, SpillSettings
from longhold.core.settings.private_files import open_flags
from longhold.errors import StoreError

DIRECTORY = "tool-results"
NAME_CHARS = 100
BODY_FILE_BYTES = 64 << 20
"""Larger bodies are cut to this size, because no reader needs more."""
DAY_SECONDS = 86_400

_DIRECTORY_FLAGS = open_flags("O_RDONLY", "O_DIRECTORY", "O_NOFOLLOW")
_READ_FLAGS = open_flags("O_RDONLY", "O_NOFOLLOW", "O_NONBLOCK")  # so that a pipe does not block
_CREATE_FLAGS = open_flags("O_WRONLY", "O_CREAT", "O_EXCL", "O_NOFOLLOW")

Blocks: TypeAlias = tuple[Text | Image | Document | Opaque, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    file: Path
    data: bytes
    bytes: int
    """Size of the whole result, even if the file has only part of it."""

    @property
    def is_whole(self) -> bool:
        return len(self.data) == self.bytes

    @property
    def sha256(self) -> str:
        return sha256_of(self.data)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBody:
    name: str
    bytes: int
    modified: float


class Results:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._readable: tuple[Path, ...] | None = None

    @property
    def place(self) -> Path:
        return self.directory / DIRECTORY

    def readable(self, history: Iterable[AnyEntry]) -> tuple[Path, ...]:
        """List the directories that previews may refer to: this one and those of parent sessions.

        A log may come from anyone, so only session directories next to this one are listed.
        """
        if self._readable is None:
            named = {
                Path(entry.file).parent
                for entry in history
                if isinstance(entry, Ran | Spilled) and entry.file
            }
            siblings = {
                place
                for place in named
                if place.name == DIRECTORY and place.parent.parent == self.directory.parent
            }
            self._readable = (self.place, *sorted(siblings - {self.place}))
        return self._readable

    def shorten(self, ran: Ran, settings: Settings) -> tuple[Body | None, Ran]:
        """Return the body to store, if any, and the result in the form that the log keeps."""
        limit = settings.log.body_limit_bytes
        text = text_of(ran.content)
        if len(text) <= limit // 4 or len(_encode(text)) <= limit:
            return None, ran
        body = self.body(ran.tool_use_id, ran.content, cap_bytes=BODY_FILE_BYTES)
        note = f"\n[{body.bytes:,} bytes in all; the whole is in {body.file}]"
        head = _cut(text, limit).decode() + note
        rest = () if isinstance(ran.content, str) else ran.content
        others = tuple(block for block in rest if not isinstance(block, Text))
        content = head if isinstance(ran.content, str) else (Text(text=head), *others)
        return body, structs.replace(ran, content=content, file=str(body.file), sha256=body.sha256)

    def body(self, tool_use_id: str, content: ResultContent, *, cap_bytes: int) -> Body:
        """Return the content and path of a result's body, without writing the file."""
        suffix, data = _suffix_and_data(content)
        whole_bytes = len(data)
        if whole_bytes > cap_bytes:
            suffix, data = ".txt", _cut(text_of(content), cap_bytes)
            whole_bytes = max(whole_bytes, len(data) + 1)
        file = self.place / f"{file_name(tool_use_id)}{suffix}"
        return Body(file=file, data=data, bytes=whole_bytes)

    def keep(self, body: Body, *, is_only_copy: bool) -> None:
        """Write a body once. If writing fails, no file remains."""
        try:
            with self._open_body(makes=True) as place:
                _put(place, body.file.name, body.data, syncs=is_only_copy)
        except OSError as error:
            raise StoreError(f"{body.file}: {error.strerror or error}") from error

    def read(self, name: str) -> ResultContent:
        body = self._read(name)
        try:
            if name.endswith(".json"):
                return msgspec.json.decode(body, type=Blocks)
            return body.decode("utf-8")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise StoreError(
                f"{self.place / name}: the file does not have the content that was written"
            ) from None

    def _read(self, name: str) -> bytes:
        try:
            if sys.platform == "win32":  # Windows has no directory descriptors
                return (self.place / Path(name).name).read_bytes()
            with self._open_body() as place, open(_open(name, place), "rb") as file:
                return file.read()
        except OSError as error:
            raise StoreError(f"{self.place / name}: {error.strerror or error}") from error

    def list_stored(self) -> list[StoredBody]:
        found = []
        with suppress(OSError), self._open_body() as place, os.scandir(place) as listing:
            for entry in listing:
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode):
                    found.append(
                        StoredBody(name=entry.name, bytes=status.st_size, modified=status.st_mtime)
                    )
        return sorted(found, key=lambda file: (file.modified, file.name))

    def remove(self, doomed: Iterable[StoredBody]) -> list[StoredBody]:
        gone = []
        with suppress(OSError), self._open_body() as place:
            for file in doomed:
                with suppress(OSError):
                    os.unlink(file.name, dir_fd=place)
                    gone.append(file)
        return gone

    def sweep(self, settings: SpillSettings, *, now: float | None = None) -> list[Swept]:
        """Remove expired and excess bodies. Return entries that record the removal."""
        expired, excess = plan_sweep(self.list_stored(), settings, now or earliest_now())
        cap = f"{settings.session_bytes / 1e6:,.0f} MB"
        reasons = {
            f"older than {settings.retention_days} days": expired,
            f"more than {cap} in all": excess,
        }
        removed = ((self.remove(doomed), why) for why, doomed in reasons.items())
        return [
            Swept(
                files=tuple(f"{DIRECTORY}/{file.name}" for file in gone),
                bytes=sum(file.bytes for file in gone),
                why=why,
            )
            for gone, why in removed
            if gone
        ]

    @contextmanager
    def _open_body(self, *, makes: bool = False) -> Iterator[int]:
        if makes:
            self.directory.mkdir(mode=0o700, exist_ok=True)
        above = os.open(self.directory, _DIRECTORY_FLAGS)
        try:
            if makes:
                with suppress(FileExistsError):
                    os.mkdir(DIRECTORY, 0o700, dir_fd=above)
            place = os.open(DIRECTORY, _DIRECTORY_FLAGS, dir_fd=above)
        finally:
            os.close(above)
        try:
            yield place
        finally:
            os.close(place)


def plan_sweep(
    files: Sequence[StoredBody], settings: SpillSettings, now: float
) -> tuple[tuple[StoredBody, ...], tuple[StoredBody, ...]]:
    """Choose expired files, then the oldest beyond the size limit. The newest is always kept."""
    days = settings.retention_days
    expired = [file for file in files if days and file.modified < now - days * DAY_SECONDS]
    rest = list(files[len(expired) :])
    over_bytes = sum(file.bytes for file in rest) - settings.session_bytes
    excess = []
    while over_bytes > 0 and len(rest) > 1:
        excess.append(rest.pop(0))
        over_bytes -= excess[-1].bytes
    return tuple(expired), tuple(excess)


def file_name(tool_use_id: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", tool_use_id)[:NAME_CHARS]
    if plain == tool_use_id and plain:
        return plain
    mark = hashlib.sha256(tool_use_id.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{plain}-{mark}"


def _suffix_and_data(content: ResultContent) -> tuple[str, bytes]:
    if isinstance(content, str):
        return ".txt", _encode(content)
    try:
        return ".json", msgspec.json.encode(content)
    except UnicodeEncodeError:  # a lone surrogate, which UTF-8 cannot encode
        return ".txt", _encode(text_of(content))


def _encode(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _cut(text: str, limit_bytes: int) -> bytes:
    return _encode(text[:limit_bytes])[:limit_bytes].decode("utf-8", "ignore").encode()


def _open(name: str, place: int) -> int:
    if "/" in name or name in ("", ".", ".."):
        raise StoreError("this is not a file name")
    descriptor = os.open(name, _READ_FLAGS, dir_fd=place)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StoreError("this is not a regular file")
    return descriptor


def _put(place: int, name: str, body: bytes, *, syncs: bool) -> None:
    """Create a file. If it exists with the same content, leave it unchanged."""
    try:
        descriptor = os.open(name, _CREATE_FLAGS, 0o600, dir_fd=place)
    except FileExistsError:
        if _has_body(place, name, body):
            return
        os.unlink(name, dir_fd=place)
        descriptor = os.open(name, _CREATE_FLAGS, 0o600, dir_fd=place)
    try:
        with open(descriptor, "wb") as file:
            file.write(body)
            file.flush()
            if syncs:
                os.fsync(descriptor)
    except OSError:
        with suppress(OSError):
            os.unlink(name, dir_fd=place)
        raise


def _has_body(place: int, name: str, body: bytes) -> bool:
    """Return whether a file has the whole body. Raise unless it has at least its beginning."""
    with open(_open(name, place), "rb") as file:
        there = file.read(len(body) + 1)
    if not body.startswith(there):
        raise StoreError("the file already exists with other content")
    return len(there) == len(body)


def sha256_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
