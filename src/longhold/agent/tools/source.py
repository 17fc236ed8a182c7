"""A text file as a model sees it and as it is stored.

The model sees plain newlines. The encoding, byte order mark and line endings are remembered. Edits
map positions back to the stored text, so the bytes of untouched text do not change, even with mixed
line endings.
"""

import codecs
import errno
import os
import re
import stat
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from io import BufferedReader
from pathlib import Path

from longhold.core.settings.private_files import open_flags, open_real
from longhold.core.tools.protocol import Refused

SNIFFED_BYTES = 8_192
"""A zero byte within this many leading bytes makes a file binary, as in git."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def open_regular(real: Path) -> BufferedReader:
    """Open a file by the path that was checked, with its links followed."""
    flags = open_flags("O_RDONLY", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY")
    try:
        file = os.fdopen(open_real(real, flags), "rb")
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise Refused(f"A link was put into {real} after it was checked. Try again.") from None
        raise
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise Refused(f"{real} is not a file any more. Try again.")
    return file


class NotText(Exception):
    """The bytes are not text in a known encoding."""


class NotEncodable(Exception):
    """The file's encoding lacks a character of the new text."""


@dataclass(frozen=True)
class SourceText:
    raw: str
    """The stored text, with original line endings and without the byte order mark."""
    encoding: str = "utf-8"
    mark: bytes = b""

    @cached_property
    def text(self) -> str:
        return self.raw.replace("\r\n", "\n")

    @cached_property
    def line_end(self) -> str:
        windows = self.raw.count("\r\n")
        return "\r\n" if windows * 2 > self.raw.count("\n") else "\n"

    @property
    def ends_with_newline(self) -> bool:
        return self.raw.endswith("\n")

    def replace_spans(self, spans: list[tuple[int, int]], new: str) -> "SourceText":
        stored = self._as_stored(new)
        parts: list[str] = []
        end = 0
        for start, stop in spans:
            parts += (self.raw[end : self._locate_stored(start)], stored)
            end = self._locate_stored(stop)
        return SourceText("".join((*parts, self.raw[end:])), self.encoding, self.mark)

    def rewrite(self, text: str) -> "SourceText":
        """Replace the whole text, but keep the line endings and the final newline."""
        if self.ends_with_newline and text and not text.endswith("\n"):
            text += "\n"
        return SourceText(self._as_stored(text), self.encoding, self.mark)

    def to_bytes(self) -> bytes:
        try:
            return self.mark + self.raw.encode(self.encoding)
        except UnicodeEncodeError as error:
            lacking = error.object[error.start : error.end][:8]
            raise NotEncodable(f"{lacking!r} cannot be written in {self.encoding}") from None

    @cached_property
    def _returns(self) -> list[int]:
        found = re.finditer("\r\n", self.raw)
        return [match.start() - index for index, match in enumerate(found)]

    def _locate_stored(self, place: int) -> int:
        # The position of a newline maps to the position before its carriage return.
        return place + bisect_left(self._returns, place)

    def _as_stored(self, text: str) -> str:
        if self.line_end == "\n" or "\r\n" in text:
            return text
        return text.replace("\n", "\r\n")


def decode(content: bytes) -> SourceText:
    """Decode a file's bytes. Raise `NotText` if they are binary."""
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            try:
                return SourceText(content[len(mark) :].decode(encoding), encoding, mark)
            except UnicodeDecodeError:
                raise NotText from None
    if is_binary(content):
        raise NotText
    try:
        return SourceText(content.decode("utf-8"))
    except UnicodeDecodeError:
        # Latin-1 maps every byte, so nothing is lost.
        return SourceText(content.decode("latin-1"), "latin-1")


def is_binary(content: bytes) -> bool:
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return False
    return b"\0" in content[:SNIFFED_BYTES]
