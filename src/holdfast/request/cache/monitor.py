"""Watches over the cache of a session: a fingerprint before each call, a verdict after it.

The engine tells it what is about to be sent and when an answer has come; it gives back the
entries to record: an `Asked` with the request's hashes, and a `CacheBroke` when the answer read
less than it could have. Each source of calls is compared with itself only. A call that failed
is no baseline; nor is anything from before a restart, when no fingerprint is left of it.
With `HOLDFAST_STRICT=1`, as in our own tests, a prefix that moves without an entry that says so
is an error before anything is sent.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

import msgspec

from holdfast.errors import PrefixMoved
from holdfast.log.entries import AnyEntry, Asked, CacheBroke, Ran, Replied, Spilled
from holdfast.messages import Json, JsonObject, Usage
from holdfast.models.protocol import Request
from holdfast.request.cache.breaks import (
    ANNOUNCED,
    SERVED,
    find_break,
    has_read,
    undeclared,
)
from holdfast.request.cache.fingerprint import Fingerprint, digest, fingerprint
from holdfast.request.server_side import is_shortened
from holdfast.settings.files import write_private

SOURCES = 10
"""More kinds of calls than a session has; a leak of names must not become one of memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentCall:
    """One call: what was sent, when, and what its answer cost."""

    sent: Fingerprint
    at: float
    position: int
    """How many entries the log had when it went out."""
    usage: Usage


class CacheMonitor:
    """The last call of each source, and the one under way."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self._is_strict = os.environ.get("HOLDFAST_STRICT") == "1"
        self._done: dict[str, SentCall] = {}
        self._under_way: dict[str, SentCall] = {}

    def sending(
        self,
        request: Request,
        history: Sequence[AnyEntry],
        *,
        source: str = "main",
        names: Sequence[str] = (),
    ) -> Asked:
        """Take the fingerprint of a request that is about to go out."""
        last = self._under_way.get(source) or self._done.get(source)
        known = last.sent if last else None
        sent = fingerprint(request, known, names, is_strict=self._is_strict)
        if self._is_strict and last is not None:
            self._check(last, sent, history)
        call = SentCall(sent=sent, at=self.clock(), position=len(history), usage=Usage())
        self._under_way.pop(source, None)
        self._under_way[source] = call
        _forget_oldest(self._under_way)
        return _asked(sent, source, known, at=call.at)

    def _check(self, last: SentCall, sent: Fingerprint, history: Sequence[AnyEntry]) -> None:
        """Refuse a request that does not begin with the one before it, unless that was said."""
        move = undeclared(last.sent, sent, announced(history[last.position :]))
        if move is not None:
            raise PrefixMoved(f"{move.detail}, and no entry says so:\n{move.diff()}")

    def observe_reply(
        self,
        history: Sequence[AnyEntry],
        *,
        source: str = "main",
        diagnostics: JsonObject | None = None,
    ) -> CacheBroke | None:
        """Compare a call with the one before it, now that its usage is in the log."""
        call = self._under_way.get(source)
        usage = _usage_since(history, call.position) if call else None
        if call is None or usage is None:
            return None
        before = self._done.pop(source, None)
        self._done[source] = replace(call, usage=usage)
        del self._under_way[source]
        _forget_oldest(self._done)
        return _compared(before, replace(call, usage=usage), history, source, diagnostics)

    def last(self, source: str = "main") -> SentCall | None:
        """Give the last call of a source that was answered."""
        return self._done.get(source)

    def beside(
        self,
        request: Request,
        history: Sequence[AnyEntry],
        *,
        before: SentCall | None,
        names: Sequence[str] = (),
    ) -> SentCall:
        """Take the fingerprint of a call made beside the conversation, behind one it shares.

        Its marker stands where the other's stood, in the middle of a longer request now: as
        long as it lives as long, that is no move. It leaves no baseline behind.
        """
        known = before.sent if before else None
        sent = fingerprint(request, known, names, is_strict=self._is_strict)
        if self._is_strict and before is not None:
            self._check(before, sent, history)
        if before is not None and sent.lifetimes == before.sent.lifetimes:
            sent = replace(sent, markers=before.sent.markers)
        return SentCall(sent=sent, at=self.clock(), position=len(history), usage=Usage())

    def answered_beside(
        self,
        call: SentCall,
        history: Sequence[AnyEntry],
        *,
        before: SentCall | None,
        source: str,
        diagnostics: JsonObject | None = None,
    ) -> CacheBroke | None:
        """Compare a call made beside with the one it shares, whose life it renews by reading it."""
        for name, done in self._done.items():
            if before is not None and done.sent is before.sent and has_read(call.usage, done.usage):
                self._done[name] = replace(done, at=max(done.at, call.at))
        return _compared(before, call, history, source, diagnostics)


def _compared(
    before: SentCall | None,
    call: SentCall,
    history: Sequence[AnyEntry],
    source: str,
    diagnostics: JsonObject | None,
) -> CacheBroke | None:
    """Say whether a call read less than the one before it had left, and why."""
    if before is None:
        return None
    broke = find_break(
        before.sent,
        call.sent,
        before.usage,
        call.usage,
        call.at - before.at,
        announced(history[before.position : call.position])
        + ([SERVED] if _is_served(history[call.position :]) else []),
    )
    if broke is None:
        return None
    return msgspec.structs.replace(broke, source=source, provider=_reason(diagnostics))


def _is_served(entries: Sequence[AnyEntry]) -> bool:
    """Say whether an answer came with the word that its prompt was shortened."""
    return any(isinstance(entry, Replied) and is_shortened(entry.applied) for entry in entries)


def announced(entries: Sequence[AnyEntry]) -> list[str]:
    """List the kinds of entries that announce a change of the prefix, the last first.

    A result that was spilled as it came was never sent otherwise, so that announces nothing.
    """
    came = {entry.tool_use_id for entry in entries if isinstance(entry, Ran)}
    kinds = [
        type(entry).__name__.lower()
        for entry in reversed(entries)
        if not (isinstance(entry, Spilled) and entry.tool_use_id in came)
    ]
    return list(dict.fromkeys(kind for kind in kinds if kind in ANNOUNCED))


def keep_diff(broke: CacheBroke, directory: Path) -> CacheBroke:
    """Put what moved into a file beside the log; where that fails, it stays in the entry."""
    if not broke.diff:
        return broke
    file = directory / "breaks" / f"{blake2b(broke.diff.encode(), digest_size=6).hexdigest()}.diff"
    try:
        write_private(file, broke.diff + "\n", is_synced=False)
    except OSError:
        return broke
    return msgspec.structs.replace(broke, diff=str(file))


def _usage_since(history: Sequence[AnyEntry], position: int) -> Usage | None:
    """Find the usage of the last answer since a position, if it had a prompt."""
    for entry in reversed(history[position:]):
        if isinstance(entry, Replied) and entry.usage and entry.usage.prompt_tokens:
            return entry.usage
    return None


def _asked(sent: Fingerprint, source: str, last: Fingerprint | None, *, at: float) -> Asked:
    """Write down a request's hashes; those of tools and sections only where they changed."""
    return Asked(
        at=at,
        source=source,
        options_hash=digest((sent.model, sent.betas, sent.options)),
        tool_hashes={} if last and last.tools == sent.tools else dict(sent.tools),
        section_hashes={} if last and last.sections == sent.sections else dict(sent.sections),
        chain_length=sent.length,
        chain_head=sent.head,
        markers=sent.marked,
    )


def _reason(diagnostics: Mapping[str, Json] | None) -> str:
    """Read the provider's own word on a miss."""
    reason = (diagnostics or {}).get("cache_miss_reason")
    return str(reason.get("type", "")) if isinstance(reason, dict) else ""


def _forget_oldest(calls: dict[str, SentCall]) -> None:
    while len(calls) > SOURCES:
        del calls[next(iter(calls))]
