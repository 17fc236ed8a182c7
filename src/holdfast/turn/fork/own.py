"""What a fork says and does itself, apart from what it shares.

Its entries are folded to a view of its own, and written to a log if one is kept; the parent's log
and view never see them.
"""

from msgspec import structs

from holdfast.log import Log
from holdfast.log.entries import AnyEntry, Ran, measured
from holdfast.messages import JsonObject
from holdfast.request.build import Wire
from holdfast.view import View, fold

INTERRUPTED = "The tool was interrupted: the fork ended while it ran. It was not run again."


class Own:
    def __init__(self, log: Log | None) -> None:
        self._log = log
        self._view = View()
        self._wire = Wire()
        if log is not None and log.entries:
            self._go_on(log)

    def _go_on(self, log: Log) -> None:
        """Continue a log; tools that were left open count as interrupted."""
        self._view = fold(log.entries)
        log.entries.clear()
        last = self._view.open_round()
        for use in last.missing() if last else ():
            self.record(Ran(tool_use_id=use.id, content=INTERRUPTED, is_error=True))

    def record(self, entry: AnyEntry) -> AnyEntry:
        if self._log is None:
            written = structs.replace(measured(entry), n=len(self._view.history) + 1)
        else:
            written = self._log.append(entry)
            self._log.entries.clear()
        self._view.apply(written)
        return written

    def messages(self) -> list[JsonObject]:
        """Return the fork's own messages in the API's form."""
        return self._wire.messages(self._view.messages())

    def close(self) -> None:
        if self._log is not None:
            self._log.close()
