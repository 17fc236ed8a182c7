"""What the model was told of servers and instruction files: by its frame, and by messages since."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.log.cursor import LogCursor
from holdfast.log.entries import AnyEntry, Framed, Said, Source


@dataclass(slots=True)
class Announced:
    """Follows a log; messages from before the frame in force count as part of it."""

    _said: list[Said] = field(default_factory=list)
    _cursor: LogCursor = field(default_factory=LogCursor)

    def follow(self, history: Sequence[AnyEntry]) -> None:
        for entry in self._cursor.advance(history):
            if isinstance(entry, Said) and (entry.sources or entry.servers):
                self._said.append(entry)

    def servers(self, frame: Framed) -> dict[str, str]:
        """Return a digest of what was said last of each MCP server; "" for one that left."""
        told = dict(frame.servers)
        for entry in self._since(frame):
            told |= entry.servers
        return told

    def files(self, frame: Framed) -> dict[str, Source]:
        """Return the instruction files the model was shown, as it was shown them last."""
        told = {source.file: source for source in frame.sources}
        for entry in self._since(frame):
            told |= {source.file: source for source in entry.sources}
        return told

    def _since(self, frame: Framed) -> list[Said]:
        return [entry for entry in self._said if entry.n > frame.n]
