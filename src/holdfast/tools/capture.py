"""The output of a command: its beginning and end in memory, the whole on disk.

Memory stays bounded however much a command prints: head and tail are kept, the middle is
counted. Longer output also goes to a file, from the first byte up to a limit of its own, so
that the middle can still be read; the text says where.
"""

from dataclasses import dataclass
from io import BufferedWriter
from pathlib import Path

from holdfast.settings.files import private_directory


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureLimits:
    head_bytes: int = 512 << 10
    """With the tail as much as a log entry holds; what the model sees of it is cut later."""
    tail_bytes: int = 512 << 10
    file_bytes: int = 64 << 20
    """Enough for any log that will be read; a disk has room for it."""


LIMITS = CaptureLimits()


class Capture:
    def __init__(
        self, file: Path, *, limits: CaptureLimits = LIMITS, is_filed: bool = False
    ) -> None:
        self.file = file
        self.total_bytes = 0
        self._limits = limits
        self._head = bytearray()
        self._tail = bytearray()
        self._sink: BufferedWriter | None = None
        self._filed_bytes = 0
        if is_filed:
            self._open()

    @property
    def is_filed(self) -> bool:
        return self._filed_bytes > 0 or self._sink is not None

    def feed(self, data: bytes) -> None:
        limits = self._limits
        over = self.total_bytes + len(data) > limits.head_bytes + limits.tail_bytes
        if over and not self.is_filed:
            self._open()
            self._file(bytes(self._head + self._tail))
        self._file(data)
        self.total_bytes += len(data)
        room = limits.head_bytes - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        if len(self._tail) > 2 * limits.tail_bytes:
            del self._tail[: -limits.tail_bytes]

    def text(self) -> str:
        """Return what is kept, with a line where the middle is missing."""
        head, tail = bytes(self._head), bytes(self._kept_tail())
        missing = self.total_bytes - len(head) - len(tail)
        if not missing:
            return (head + tail).decode("utf-8", "replace")
        gap = f"\n[{missing:,} bytes left out here; {self._where()}]\n"
        return head.decode("utf-8", "replace") + gap + tail.decode("utf-8", "replace")

    def last_line(self) -> str:
        """Return the last line so far, for a progress display."""
        end = bytes((self._tail or self._head)[-400:]).decode("utf-8", "replace").rstrip()
        return end.rpartition("\n")[2].rpartition("\r")[2]

    def close(self) -> None:
        if self._sink is not None:
            self._sink.close()
            self._sink = None

    def flush(self) -> None:
        if self._sink is not None:
            self._sink.flush()

    def _kept_tail(self) -> bytearray:
        return self._tail[-self._limits.tail_bytes :]

    def _where(self) -> str:
        if self.total_bytes > self._filed_bytes:
            return f"the first {self._filed_bytes:,} bytes are in {self.file}"
        return f"everything is in {self.file}"

    def _open(self) -> None:
        private_directory(self.file.parent)
        self._sink = self.file.open("wb")
        self.file.chmod(0o600)

    def _file(self, data: bytes) -> None:
        """Write to the file while it has room; a full disk costs the middle, not the command."""
        data = data[: self._limits.file_bytes - self._filed_bytes]
        if self._sink is None or not data:
            return
        try:
            self._sink.write(data)
            self._filed_bytes += len(data)
        except OSError:
            self._sink = None
