"""Monitor a session's cache: compare each call with the previous call of its source.

With `LONGHOLD_STRICT=1`, which all tests set, the monitor raises an error before sending a request
whose prefix changed without an announcing entry.
"""

import os
import time
from collections.abc import Callable, Sequence
from hashlib import blake2b

from msgspec import Struct
from msgspec.structs import replace

from longhold.core.log import entries as log
from longhold.core.messages import JsonObject, Usage
from longhold.core.models.capabilities import capabilities
from longhold.core.models.protocol import Request
from longhold.core.request.cache.breaks import (
    ANNOUNCED,
    SERVED,
    find_break,
    find_undeclared,
    has_read,
)
from longhold.core.request.cache.fingerprint import (
    Fingerprint,
    digest,
    find_first_moved,
    fingerprint,
    moves,
)
from longhold.core.request.markers import CachedPrefix, last_place
from longhold.core.request.request import Wire, first_messages
from longhold.core.request.server_side import is_shortened
from longhold.core.view import View, fold
from longhold.errors import PrefixMoved

SOURCES = 10  # More sources than a session has. Bounds memory if source names leak.


class SentCall(Struct, frozen=True, kw_only=True):
    sent: Fingerprint
    at: float
    position: int
    usage: Usage


class CacheMonitor:
    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self.clock = clock
        self._is_strict = os.environ.get("LONGHOLD_STRICT") == "1"
        self._answered: dict[str, SentCall] = {}
        self._pending: dict[str, SentCall] = {}

    def track_request(
        self,
        request: Request,
        history: Sequence[log.AnyEntry],
        *,
        source: str = "main",
        names: Sequence[str] = (),
    ) -> log.Asked:
        last = self._pending.get(source) or self._answered.get(source)
        call = self._fingerprint_call(request, history, last, names)
        _remember(self._pending, source, call)
        return _build_asked(call.sent, source, last.sent if last else None, at=call.at)

    def observe_reply(
        self,
        history: Sequence[log.AnyEntry],
        *,
        source: str = "main",
        diagnostics: JsonObject | None = None,
    ) -> log.CacheBroke | None:
        """Compare a call with the previous one, once the log has its usage."""
        pending = self._pending.get(source)
        if pending is None:
            return None
        since = (
            one for one in reversed(history[pending.position :]) if isinstance(one, log.Replied)
        )
        usage = next((one.usage for one in since if one.usage and one.usage.prompt_tokens), None)
        if usage is None:
            return None
        call = replace(pending, usage=usage)
        before = self._answered.get(source)
        _remember(self._answered, source, call)
        del self._pending[source]
        return _compare_calls(before, call, history, source, diagnostics)

    def last(self, source: str = "main") -> SentCall | None:
        return self._answered.get(source)

    def count_live(
        self, request: Request, *, source: str = "main", names: Sequence[str] = ()
    ) -> int | None:
        """Count the leading messages that the last answered call left in the cache, expired or not.

        Return None if no call was answered in this process.
        """
        last = self._answered.get(source)
        if last is None:
            return None
        sent = fingerprint(request, last.sent, names)
        if any(move.what not in ("message", "marker") for move in moves(last.sent, sent)):
            return 0
        first = find_first_moved(last.sent, sent)
        return sent.length if first is None else first

    def track_fork(
        self,
        request: Request,
        history: Sequence[log.AnyEntry],
        *,
        before: SentCall | None,
        names: Sequence[str] = (),
    ) -> SentCall:
        """Fingerprint a fork's call, which shares the prefix of `before` and is not a baseline."""
        call = self._fingerprint_call(request, history, before, names)
        if before is not None and call.sent.lifetimes >= before.sent.lifetimes:
            return replace(call, sent=replace(call.sent, markers=before.sent.markers))
        return call

    def observe_fork_reply(
        self,
        call: SentCall,
        history: Sequence[log.AnyEntry],
        *,
        before: SentCall | None,
        source: str,
        diagnostics: JsonObject | None = None,
    ) -> log.CacheBroke | None:
        """Compare a fork's call with its parent's. Reading the parent's cache renews it."""
        for name, done in self._answered.items():
            if before is not None and done.sent is before.sent and has_read(call.usage, done.usage):
                self._answered[name] = replace(done, at=max(done.at, call.at))
        return _compare_calls(before, call, history, source, diagnostics)

    def _fingerprint_call(
        self,
        request: Request,
        history: Sequence[log.AnyEntry],
        before: SentCall | None,
        names: Sequence[str],
    ) -> SentCall:
        known = before.sent if before else None
        sent = fingerprint(request, known, names, is_strict=self._is_strict)
        if self._is_strict and before is not None:
            move = find_undeclared(before.sent, sent, list_announced(history[before.position :]))
            if move is not None:
                raise PrefixMoved(f"{move.detail}, and no entry explains it:\n{move.diff()}")
        return SentCall(sent=sent, at=self.clock(), position=len(history), usage=Usage())


def _compare_calls(
    before: SentCall | None,
    call: SentCall,
    history: Sequence[log.AnyEntry],
    source: str,
    diagnostics: JsonObject | None,
) -> log.CacheBroke | None:
    if before is None:
        return None
    expected = list_announced(history[before.position : call.position])
    answers = (entry for entry in history[call.position :] if isinstance(entry, log.Replied))
    if any(is_shortened(answer.applied) for answer in answers):
        expected.append(SERVED)
    seconds = call.at - before.at
    broke = find_break(before.sent, call.sent, before.usage, call.usage, seconds, expected)
    if broke is None:
        return None
    reason = (diagnostics or {}).get("cache_miss_reason")
    said = str(reason.get("type", "")) if isinstance(reason, dict) else ""
    return replace(broke, source=source, provider=said)


def list_announced(entries: Sequence[log.AnyEntry]) -> list[str]:
    """List the kinds of announcing entries, newest first, except results spilled on arrival."""
    arrived = {entry.tool_use_id for entry in entries if isinstance(entry, log.Ran)}
    kinds = [
        type(entry).__name__.lower()
        for entry in reversed(entries)
        if not (isinstance(entry, log.Spilled) and entry.tool_use_id in arrived)
    ]
    return list(dict.fromkeys(kind for kind in kinds if kind in ANNOUNCED))


def keep_diff(broke: log.CacheBroke, keep: Callable[[str, str], str]) -> log.CacheBroke:
    """Store the diff in a file next to the log. If that fails, keep it in the entry."""
    if not broke.diff:
        return broke
    name = f"breaks/{blake2b(broke.diff.encode(), digest_size=6).hexdigest()}.diff"
    try:
        return replace(broke, diff=keep(name, broke.diff + "\n"))
    except OSError:
        return broke


def _build_asked(
    sent: Fingerprint, source: str, last: Fingerprint | None, *, at: float
) -> log.Asked:
    return log.Asked(
        at=at,
        source=source,
        options_hash=digest((sent.model, sent.betas, sent.options)),
        tool_hashes={} if last and last.tools == sent.tools else dict(sent.tools),
        section_hashes={} if last and last.sections == sent.sections else dict(sent.sections),
        chain_length=sent.length,
        chain_head=sent.head,
        markers=sent.marked,
    )


def _remember(calls: dict[str, SentCall], source: str, call: SentCall) -> None:
    calls.pop(source, None)
    calls[source] = call
    while len(calls) > SOURCES:
        del calls[next(iter(calls))]


def find_prior_cache(view: View, messages: Sequence[JsonObject]) -> tuple[CachedPrefix, int] | None:
    """Return the last answered request's cached prefix and the number of unchanged messages."""
    asked = view.answered
    if asked is None or not asked.markers:
        return None
    at = next(i for i in range(len(view.history) - 1, -1, -1) if view.history[i].n == asked.n)
    then = list(messages[: asked.chain_length])
    if any(_may_move(entry, view.model) for entry in view.history[at:]):
        past = fold(view.history[:at])
        then = first_messages(past.frame or log.Framed())
        then += Wire().render(past)
    place = last_place(then[: asked.markers[-1] + 1])
    if place is None:
        return None
    pairs = enumerate(zip(then, messages, strict=False))
    unmoved = next((i for i, (one, other) in pairs if one != other), len(then))
    return CachedPrefix(place=place, message=then[place.message]), unmoved


def _may_move(entry: log.AnyEntry, model: str) -> bool:
    if isinstance(entry, log.Said):  # ends a turn, whose thinking some models then drop
        return not capabilities(model).keeps_thinking
    return isinstance(entry, log.ViewChange | log.Undone | log.Redone | log.Framed | log.Switched)
