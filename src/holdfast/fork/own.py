"""What a fork says and does itself, apart from what it shares.

Entries come in, as an engine takes them; messages for the wire go out. They are folded to a view
of the fork's own and written to a log if one is to be kept; the parent's log and view never see
them.
"""

from msgspec import structs

from holdfast.cache.request import Wire
from holdfast.entries import AnyEntry, measured
from holdfast.log import Log
from holdfast.messages import JsonObject
from holdfast.view import View


class Own:
    """What a fork says and does: a view of its own, and a log if that is to be kept."""

    def __init__(self, log: Log | None) -> None:
        self._log = log
        self._view = View()
        self._wire = Wire()

    def record(self, entry: AnyEntry) -> AnyEntry:
        """Take an entry in, as an engine does."""
        if self._log is None:
            written = structs.replace(measured(entry), n=len(self._view.history) + 1)
        else:
            written = self._log.append(entry)
            self._log.entries.clear()
        self._view.apply(written)
        return written

    def messages(self) -> list[JsonObject]:
        """Give the fork's own messages as they go over the wire."""
        return self._wire.messages(self._view.messages())

    def close(self) -> None:
        """Let the log go."""
        if self._log is not None:
            self._log.close()
