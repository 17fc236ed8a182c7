"""Counts over a session's history that clearing depends on.

Calls, cold calls, when the last call began, what has since invalidated the whole cache, and
whether the provider acts on cache edits. All of it comes from the log, so a resumed session
knows it too.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.log.cursor import LogCursor
from holdfast.log.entries import (
    AnyEntry,
    Asked,
    Compacted,
    Failed,
    Forked,
    Framed,
    Replied,
    Switched,
)
from holdfast.request.edits import deleted_tokens
from holdfast.request.server_side import cleared_tokens

EDITS_FAILED = "cache edits"
"""The subject of the `Failed` entry for a provider that ignores cache edits."""


@dataclass(slots=True)
class CallStats:
    """Counts over a session's history, kept up to date by `follow`."""

    calls: int = 0
    cold_calls: int = 0
    began: float = 0.0
    """When the last call that used the cache began; in imported sessions, when its answer arrived."""
    began_at: int = 0
    void_at: int = 0
    void_by: str = ""
    """The last entry that invalidated the whole cache, and why."""
    has_deleted: bool = False
    """Some answer reported that cache edits were applied."""
    edits_failed: bool = False
    last_applied: Replied | None = None
    """The last answer to a prompt that the provider shortened."""
    served_tokens: int = 0
    """How many more tokens it cleared there than in the prompt before."""
    _cursor: LogCursor = field(default_factory=LogCursor)
    _model: str = ""
    _response: str = ""

    def follow(self, history: Sequence[AnyEntry], lifetime_seconds: float) -> None:
        if self._cursor.is_past(history):
            self.__init__()  # type: ignore[misc]
        for entry in self._cursor.advance(history):
            self._count(entry, lifetime_seconds)

    def _count(self, entry: AnyEntry, lifetime_seconds: float) -> None:
        match entry:
            case Asked(at=at):
                self.cold_calls += self.began > 0 and at - self.began >= lifetime_seconds
                self.began, self.began_at = at, entry.n
            case Replied(at=at):
                self._answer(entry)
                if self.began_at == 0:
                    self.began = at
            case Forked(source=source) if not source.startswith("agent:"):
                if entry.usage.cache_read_tokens and self.began:  # reading renews its lifetime
                    self.began = max(self.began, entry.at - entry.seconds)
            case Switched(model=model):
                if model != self._model:
                    self.void_at, self.void_by = entry.n, "another model answers"
                self._model = model
            case Framed():
                self.void_at, self.void_by = entry.n, "the prompt's frame is new"
            case Compacted():
                self.void_at, self.void_by = entry.n, "the history was compacted"
            case Failed(what=what) if what == EDITS_FAILED:
                self.edits_failed = True

    def _answer(self, entry: Replied) -> None:
        self.calls += not entry.response_id or entry.response_id != self._response
        self._response = entry.response_id
        self.has_deleted = self.has_deleted or deleted_tokens(entry.usage) > 0
        if entry.applied:
            self._serve(entry)

    def _serve(self, entry: Replied) -> None:
        """Note what the provider cleared; it reports a running total per prompt."""
        last = self.last_applied
        if last is None or not entry.response_id or last.response_id != entry.response_id:
            before = cleared_tokens(last.applied) if last else 0
            self.served_tokens = max(0, cleared_tokens(entry.applied) - before)
        self.last_applied = entry

    def is_void(self) -> bool:
        """True if nothing that the last call left in the cache can be read."""
        return self.void_at > self.began_at
