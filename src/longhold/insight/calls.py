"""Every call of a session with its usage, and the causes of cold calls. A call is cold if it read
less than half of what the previous call cached. The log records the cause, or the module infers it
for calls of the conversation.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from msgspec import structs

from longhold.core.log.entries import (
    AnyEntry,
    Asked,
    CacheBroke,
    Compacted,
    Failed,
    Forked,
    Framed,
    Ran,
    Replied,
    Said,
)
from longhold.core.log.spending import MAIN, UniqueAnswer, answers_of, day_of, price
from longhold.core.messages import JsonObject, Usage, is_thought, text_of
from longhold.core.messages.usage import Tally
from longhold.core.models.capabilities import canonical_name, capabilities
from longhold.core.models.prices import price_call
from longhold.core.request.cache.breaks import (
    AFTER_EXPIRY,
    ANNOUNCED,
    count_readable,
    deleted_between,
    find_expired,
    has_read,
    price_lost,
)
from longhold.core.request.cache.fingerprint import find_change
from longhold.core.request.cache.monitor import list_announced
from longhold.core.request.lifetime import life_of, seconds_of, written_lifetime

RESTARTS = ("<command-name>/exit<", "<command-name>/quit<", "<command-name>/resume<")
"""Text in a transcript at a point where the user quit or resumed the agent."""


@dataclass(slots=True, kw_only=True)
class LoggedCall:
    answer: UniqueAnswer
    start: float
    lifetime: str
    between: Sequence[AnyEntry]
    asked: Asked | None
    broke: CacheBroke | None = None
    renewed: float = 0.0
    """When a fork last read this call's cache entries. Each read extends their lifetime."""

    @property
    def model(self) -> str:
        return self.answer.model

    @property
    def usage(self) -> Usage:
        return self.answer.usage

    def observe_break(self, broke: CacheBroke) -> None:
        self.broke = broke

    def renew(self, at: float) -> None:
        self.renewed = max(self.renewed, at)


def _explain_cold(before: LoggedCall, after: LoggedCall, seconds: float | None) -> CacheBroke:
    return (
        _check_announced(after.between, is_over=_check_idle(before, seconds) is not None)
        or _model(before, after)
        or _check_idle(before, seconds)
        or _check_asked(before.asked, after.asked)
        or _check_restart(after.between)
        or _thinking(before, after)
        or _check_shrinkage(before, after)
        or _describe_unknown(after.between)
    )


def _check_announced(between: Sequence[AnyEntry], *, is_over: bool) -> CacheBroke | None:
    kinds = list_announced(between)
    for kind in ANNOUNCED:
        if is_over and kind == AFTER_EXPIRY:
            continue
        if kind in kinds and kind != "switched":
            detail = f"history was {kind} before the call" if kind != "framed" else "a new frame"
            return CacheBroke(cause=ANNOUNCED[kind], detail=detail, expected=kind)
    return None


def _model(before: LoggedCall, after: LoggedCall) -> CacheBroke | None:
    if canonical_name(before.model) == canonical_name(after.model):
        return None
    detail = f"{after.model} answered instead of {before.model}"
    return CacheBroke(cause="model", detail=detail, expected="switched")


def _check_idle(before: LoggedCall, seconds: float | None) -> CacheBroke | None:
    over = find_expired(before.model, {before.lifetime}, seconds or 0.0)
    if not over:
        return None
    limit = seconds_of(over) / 60
    detail = f"{(seconds or 0) / 60:,.0f} minutes idle; the cache lives for {limit:.0f}"
    return CacheBroke(cause=f"lifetime_{over}", detail=detail)


def _check_asked(before: Asked | None, after: Asked | None) -> CacheBroke | None:
    if before is None or after is None:
        return None
    for cause, old, new in (
        ("tool", before.tool_hashes, after.tool_hashes),
        ("section", before.section_hashes, after.section_hashes),
    ):
        name, change = find_change(old, new)
        if old and name:
            return CacheBroke(cause=cause, detail=f"{cause} {name} {change}")
    if before.options_hash and before.options_hash != after.options_hash:
        return CacheBroke(cause="option", detail="the options or beta headers changed")
    if before.markers and not after.markers:
        detail = "the previous call set cache breakpoints on messages, this one set none"
        return CacheBroke(cause="marker", detail=detail)
    return None


def _check_restart(between: Sequence[AnyEntry]) -> CacheBroke | None:
    for entry in between:
        if isinstance(entry, Said) and any(word in text_of(entry.content) for word in RESTARTS):
            return CacheBroke(cause="resume", detail="the agent was restarted")
    return None


def _thinking(before: LoggedCall, after: LoggedCall) -> CacheBroke | None:
    able = capabilities(after.model)
    is_spoken = any(isinstance(entry, Said) for entry in after.between)
    has_thought = any(map(is_thought, before.answer.content))
    if has_thought and is_spoken and not able.keeps_thinking and _shrinkage(before, after):
        detail = "a new user message: the previous turn's thinking is no longer sent"
        return CacheBroke(cause="thinking", detail=detail, expected="said")
    # Only a recorded setting counts, because a model may answer without thinking.
    old, new = before.answer.first.thinking, after.answer.first.thinking
    if old and new and old != new:
        detail = f"thinking was switched from {old} to {new}"
        return CacheBroke(cause="thinking", detail=detail)
    return None


def _check_shrinkage(before: LoggedCall, after: LoggedCall) -> CacheBroke | None:
    """Detect removed content. A prompt that only grew cannot have fewer tokens than before."""
    gone = _shrinkage(before, after)
    if not gone:
        return None
    detail = f"the prompt has {gone:,} fewer tokens: something was removed"
    return CacheBroke(cause="history", detail=detail)


def _shrinkage(before: LoggedCall, after: LoggedCall) -> int:
    return max(0, before.usage.prompt_tokens - after.usage.prompt_tokens)


def _describe_unknown(between: Sequence[AnyEntry]) -> CacheBroke:
    failed = sum(isinstance(entry, Failed) for entry in between)
    refused = f" ({failed} calls failed in between)" if failed else ""
    detail = f"the log shows no reason{refused}: the provider, or an unrecorded change"
    return CacheBroke(cause="provider", detail=detail)


COLD_RATIO = 0.5  # a call that read less than this share of the readable tokens is cold


@dataclass(frozen=True, slots=True, kw_only=True)
class CallReport:
    n: int = 0
    at: float = 0.0
    model: str = ""
    tally: Tally = field(default_factory=Tally)
    ideal_usd: float = 0.0
    """The cost if the call had read everything that the previous call sent."""
    lifetime: str = ""
    seconds_since: float | None = None
    """Seconds since a call or a fork last read the cache, or None if unknown."""
    is_cold: bool = False
    cause: str = ""
    detail: str = ""
    is_expected: bool = False
    source: str = MAIN
    """`main` for the conversation, or the name of the fork."""
    renewed: float = 0.0

    def to_json(self) -> JsonObject:
        tally = self.tally
        return {
            "n": self.n,
            "at": self.at,
            "model": self.model,
            **_tokens_json(tally),
            "hit_share": tally.hit_share,
            "usd": tally.usd,
            "ideal_usd": self.ideal_usd,
            "bare_usd": tally.bare_usd,
            "is_priced": not tally.unpriced_calls,
            "lifetime": self.lifetime,
            "seconds_since": self.seconds_since,
            "is_cold": self.is_cold,
            "cause": self.cause,
            "detail": self.detail,
            "is_expected": self.is_expected,
            "lost_tokens": tally.lost_tokens,
            "lost_usd": tally.lost_usd,
            "source": self.source,
            "renewed": self.renewed,
        }


def _tokens_json(tally: Tally) -> JsonObject:
    return {
        "read_tokens": tally.cache_read_tokens,
        "written_tokens": tally.cache_write_tokens,
        "uncached_tokens": tally.input_tokens,
        "output_tokens": tally.output_tokens,
    }


def explain_calls(history: Iterable[AnyEntry]) -> list[CallReport]:
    entries = list(history)
    reader = _CallReader(answers_of(entries))
    for at, entry in enumerate(entries):
        reader.take(at, entry)
    reader.close()
    return reader.calls


def sum_calls(calls: Iterable[CallReport]) -> Tally:
    return sum((call.tally for call in calls), Tally())


def totals(calls: Sequence[CallReport]) -> JsonObject:
    """Add up calls for a page and `--json`. `lost_usd` includes expected cache breaks."""
    tally = sum_calls(calls)
    return {
        "calls": tally.calls,
        "cold_calls": sum(call.is_cold for call in calls),
        **_tokens_json(tally),
        "usd": tally.usd,
        "ideal_usd": sum(call.ideal_usd for call in calls),
        "bare_usd": tally.bare_usd,
        "lost_usd": tally.lost_usd,
        "unpriced_calls": tally.unpriced_calls,
    }


def expires_at(call: CallReport) -> float:
    return max(call.at, call.renewed) + seconds_of(call.lifetime)


def last_of_conversation(calls: Sequence[CallReport]) -> CallReport | None:
    """Return the call whose cache the next call would read. Forks write no cache entries."""
    mains = (call for call in reversed(calls) if call.source == MAIN)
    return next(mains, calls[-1] if calls else None)


@dataclass(slots=True)
class _CallReader:
    answers: dict[int, UniqueAnswer]
    calls: list[CallReport] = field(default_factory=list)
    _waiting: list[AnyEntry] = field(default_factory=list)
    _last: LoggedCall | None = None
    _current: LoggedCall | None = None
    _forks: list[CallReport] = field(default_factory=list)
    _lifetime: str = "5m"
    """The cache lifetime according to the frame, or according to the usage so far."""

    def take(self, at: int, entry: AnyEntry) -> None:
        """Read one entry. `answers` already contains the other pieces and copies of an answer."""
        if self._take_fork_entry(entry):
            return
        if isinstance(entry, Framed):
            self._lifetime = entry.lifetime
        if isinstance(entry, CacheBroke) and self._current is not None:
            self._current.observe_break(entry)
        if at in self.answers:
            self.close()
            self._current = self._begun(self.answers[at])
            self._waiting = []
        elif not isinstance(entry, Replied):
            self._waiting.append(entry)

    def _take_fork_entry(self, entry: AnyEntry) -> bool:
        """Read a fork's entry. An entry in the middle of an answer is reported after the answer."""
        forks, shared = self._forks, self._current or self._last
        if isinstance(entry, Forked):
            forks.append(_fork_call(entry, self._lifetime))
            if shared is not None and has_read(entry.usage, shared.usage):
                shared.renew(forks[-1].at)
            return True
        if isinstance(entry, CacheBroke) and forks and forks[-1].source == entry.source:
            forks[-1] = _mark_broken_fork(forks[-1], entry)
            return True
        return False

    def _begun(self, answer: UniqueAnswer) -> LoggedCall:
        self._lifetime = written_lifetime(answer.usage, self._lifetime)
        return LoggedCall(
            answer=answer,
            start=_start(answer.first, self._waiting),
            lifetime=life_of(answer.model, self._lifetime),
            between=self._waiting,
            asked=_complete_asked(self._last.asked if self._last else None, self._waiting),
        )

    def close(self) -> None:
        current, last = self._current, self._last
        if current is not None:
            call = _call(current, last)
            self.calls.append(_explain_call(call, current, last) if last else call)
            self._last = current if current.usage.prompt_tokens else last
            self._current = None
        self.calls += self._forks
        self._forks.clear()


def _start(entry: Replied, between: Sequence[AnyEntry]) -> float:
    for before in reversed(between):
        if isinstance(before, Asked | Said | Ran | Compacted) and before.at:
            return min(before.at, entry.at) if entry.at else before.at
    return entry.at


def _complete_asked(last: Asked | None, between: Sequence[AnyEntry]) -> Asked | None:
    asked = next((entry for entry in reversed(between) if isinstance(entry, Asked)), None)
    if asked is None or last is None:
        return asked or last
    return structs.replace(
        asked,
        tool_hashes=asked.tool_hashes or last.tool_hashes,
        section_hashes=asked.section_hashes or last.section_hashes,
    )


def _call(current: LoggedCall, last: LoggedCall | None) -> CallReport:
    since = -1.0
    if last and current.start and last.start:
        since = current.start - max(last.start, last.renewed)
    call = _price_call(current.answer, current.start, current.lifetime)
    return replace(call, seconds_since=since if since >= 0 else None, renewed=current.renewed)


def _fork_call(entry: Forked, lifetime: str) -> CallReport:
    start = entry.at - entry.seconds if entry.at else 0.0
    life = life_of(entry.model, written_lifetime(entry.usage, lifetime))
    return replace(_price_call(entry, start, life), source=entry.source)


def _price_call(answer: UniqueAnswer | Forked, start: float, lifetime: str) -> CallReport:
    tally = price(answer)
    return CallReport(
        n=answer.n,
        at=start,
        model=answer.model,
        tally=tally,
        ideal_usd=tally.usd,
        lifetime=lifetime,
    )


def _mark_broken_fork(call: CallReport, broke: CacheBroke) -> CallReport:
    read = call.tally.cache_read_tokens
    is_cold = read < COLD_RATIO * (read + broke.lost_tokens)
    return _mark_broken(call, broke, max(0.0, call.tally.usd - broke.usd), is_cold=is_cold)


def _mark_broken(
    call: CallReport, broke: CacheBroke, ideal_usd: float, *, is_cold: bool
) -> CallReport:
    return replace(
        call,
        tally=structs.replace(call.tally, lost_tokens=broke.lost_tokens, lost_usd=broke.usd),
        ideal_usd=call.ideal_usd if broke.expected else ideal_usd,
        cause=broke.cause,
        detail=broke.detail,
        is_expected=bool(broke.expected),
        is_cold=is_cold,
    )


def _explain_call(call: CallReport, current: LoggedCall, last: LoggedCall) -> CallReport:
    before, after = last.usage, current.usage
    readable = count_readable(before, after)
    is_cold = after.cache_read_tokens < COLD_RATIO * readable
    ideal_usd = _ideal_usd(call, before.prompt_tokens - deleted_between(before, after))
    broke = current.broke
    if broke is None and is_cold:
        broke = _explain_cold(last, current, call.seconds_since)
    if broke is None:
        return replace(call, ideal_usd=ideal_usd)
    lost = max(0, readable - after.cache_read_tokens)
    broken = structs.replace(
        broke, lost_tokens=lost, usd=price_lost(call.model, after, lost, day_of(call.at))
    )
    return _mark_broken(call, broken, ideal_usd, is_cold=is_cold)


def _ideal_usd(call: CallReport, sent_before: int) -> float:
    tally = call.tally
    read = min(tally.prompt_tokens, max(tally.cache_read_tokens, sent_before))
    written = min(tally.cache_write_tokens, tally.prompt_tokens - read)
    ideal = Usage(
        input_tokens=tally.prompt_tokens - read - written,
        output_tokens=tally.output_tokens,
        cache_read_tokens=read,
        cache_write_tokens=written,
        cache_write_1h_tokens=written if call.lifetime == "1h" else 0,
    )
    return price_call(call.model, ideal, day_of(call.at)).usd
