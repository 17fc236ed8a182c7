"""Every call of a session as its usage tells it, and why the cold ones were cold.

A history comes in, ours or imported; calls go out in order, each once, with what was read, written
and neither, what that cost, and what it would have cost with an ideal cache and with none. A
call is cold when it read less than half of what the one before it had left in the cache. Its
cause is what was found when it happened, if the log has it, else something the log shows
between the two calls (`clues`), else "provider". Calls of forks stand among the others under
their source; only what was found when they happened is told of them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from holdfast.log.answers import MAIN, UniqueAnswer, answers_of, day_of
from holdfast.log.entries import (
    AnyEntry,
    Asked,
    CacheBroke,
    Compacted,
    Forked,
    Framed,
    Ran,
    Replied,
    Said,
)
from holdfast.messages import Usage
from holdfast.models.prices import cost, usage_cost
from holdfast.request.cache.breaks import deleted_between, has_read, lost_usd, readable_between
from holdfast.request.cache.miss_causes import Clue, SeenBetween, explain_cold
from holdfast.request.lifetime import life_of, seconds_of

COLD_RATIO = 0.5
"""A call is cold below this share of what it could have read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallReport:
    """One answer and what its prompt cost."""

    n: int
    at: float
    """When it was asked."""
    model: str
    read_tokens: int
    written_tokens: int
    uncached_tokens: int
    output_tokens: int
    hit_share: float
    """The share of the prompt that was read from the cache."""
    usd: float
    ideal_usd: float
    """Its cost if everything the call before it had sent were read."""
    bare_usd: float
    """Its cost without any cache."""
    is_priced: bool
    seconds_since: float | None
    """Since the call before it, or a fork's that read the same; None where the log does not say."""
    lifetime: str
    is_cold: bool = False
    cause: str = ""
    detail: str = ""
    is_expected: bool = False
    lost_tokens: int = 0
    lost_usd: float = 0.0
    source: str = MAIN
    """Who asked: the conversation itself, or a fork of it."""
    renewed: float = 0.0
    """When a fork last read what this call had left, so that it lived on from then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """All calls together."""

    calls: int = 0
    cold_calls: int = 0
    read_tokens: int = 0
    written_tokens: int = 0
    uncached_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    ideal_usd: float = 0.0
    bare_usd: float = 0.0
    lost_usd: float = 0.0
    """What breaks and cold calls cost, expected ones included."""
    unpriced_calls: int = 0

    @property
    def hit_share(self) -> float:
        """The share of all prompts that was read from the cache."""
        prompt = self.read_tokens + self.written_tokens + self.uncached_tokens
        return self.read_tokens / prompt if prompt else 0.0


def explain_calls(history: Iterable[AnyEntry]) -> list[CallReport]:
    """Tell every call of a history that reported its usage."""
    entries = list(history)
    teller = _Teller(answers_of(entries))
    for at, entry in enumerate(entries):
        teller.take(at, entry)
    return teller.end()


def totals(calls: Sequence[CallReport]) -> Totals:
    """Add calls up."""
    return Totals(
        calls=len(calls),
        cold_calls=sum(call.is_cold for call in calls),
        read_tokens=sum(call.read_tokens for call in calls),
        written_tokens=sum(call.written_tokens for call in calls),
        uncached_tokens=sum(call.uncached_tokens for call in calls),
        output_tokens=sum(call.output_tokens for call in calls),
        usd=sum(call.usd for call in calls),
        ideal_usd=sum(call.ideal_usd for call in calls),
        bare_usd=sum(call.bare_usd for call in calls),
        lost_usd=sum(call.lost_usd for call in calls),
        unpriced_calls=sum(not call.is_priced for call in calls),
    )


def expires_at(call: CallReport) -> float:
    """Say when the cache that a call left behind dies, in seconds since the epoch."""
    return max(call.at, call.renewed) + seconds_of(call.lifetime)


def last_of_conversation(calls: Sequence[CallReport]) -> CallReport | None:
    """Give the call whose cache the next one would read; a fork leaves none of its own."""
    mains = (call for call in reversed(calls) if call.source == MAIN)
    return next(mains, calls[-1] if calls else None)


@dataclass(slots=True, kw_only=True)
class _Asking:
    """An answer, with what the log shows of how it was asked for."""

    answer: UniqueAnswer
    start: float
    lifetime: str
    between: list[AnyEntry]
    """The entries since the answer before."""
    broke: CacheBroke | None = None
    asked: Asked | None = None
    """The request, with all hashes known by then."""
    renewed: float = 0.0
    """When a fork last read what this call had left, so that it lived on from then."""

    @property
    def usage(self) -> Usage:
        """What the answer cost."""
        return self.answer.usage


@dataclass(slots=True)
class _Teller:
    answers: dict[int, UniqueAnswer]
    calls: list[CallReport] = field(default_factory=list)
    _waiting: list[AnyEntry] = field(default_factory=list)
    _last: _Asking | None = None
    """The answer before the one that is coming in."""
    _current: _Asking | None = None
    _forks: list[CallReport] = field(default_factory=list)
    """Calls of forks since the answer that is coming in."""
    _lifetime: str = "5m"
    """As the frame or the usages so far say."""

    def take(self, at: int, entry: AnyEntry) -> None:
        """Take one entry of the history; further pieces and copies of an answer are in it."""
        if self._is_of_fork(entry):
            return
        if isinstance(entry, Framed):
            self._lifetime = entry.lifetime
        if isinstance(entry, CacheBroke) and self._current is not None:
            self._current.broke = entry
        if at in self.answers:
            self._close()
            self._current = self._begun(self.answers[at])
            self._waiting = []
        elif not isinstance(entry, Replied):
            self._waiting.append(entry)

    def _is_of_fork(self, entry: AnyEntry) -> bool:
        """Take what a fork did; it may come in the middle of an answer, and is told after it."""
        forks, shared = self._forks, self._current or self._last
        if isinstance(entry, Forked):
            forks.append(_beside(entry, self._lifetime))
            if shared is not None and has_read(entry.usage, shared.usage):
                shared.renewed = max(shared.renewed, forks[-1].at)
            return True
        if isinstance(entry, CacheBroke) and forks and forks[-1].source == entry.source:
            forks[-1] = _told(forks[-1], entry)
            return True
        return False

    def end(self) -> list[CallReport]:
        """Give all calls."""
        self._close()
        return self.calls

    def _begun(self, answer: UniqueAnswer) -> _Asking:
        last = self._last
        self._lifetime = _lifetime(answer.usage, self._lifetime)
        return _Asking(
            answer=answer,
            start=_start(answer.first, self._waiting),
            lifetime=life_of(answer.model, self._lifetime),
            between=self._waiting,
            asked=_known(last.asked if last else None, self._waiting),
        )

    def _close(self) -> None:
        """Tell the answer that is complete now, as seen from the one before it."""
        current, last = self._current, self._last
        if current is not None:
            call = _call(current, last)
            self.calls.append(_blamed(call, current, last) if last else call)
            self._last = current if current.usage.prompt_tokens else last
            self._current = None
        self.calls += self._forks
        self._forks.clear()


def _start(entry: Replied, between: Sequence[AnyEntry]) -> float:
    """Find when an answer was asked for: with the last thing that came before it."""
    for before in reversed(between):
        if isinstance(before, Asked | Said | Ran | Compacted) and before.at:
            return min(before.at, entry.at) if entry.at else before.at
    return entry.at


def _lifetime(usage: Usage, last: str) -> str:
    """Read off the usage how long its entries live; where it does not say, as before."""
    if usage.written_1h_tokens:
        return "1h"
    return "5m" if usage.cache_write_5m_tokens else last


def _known(last: Asked | None, between: Sequence[AnyEntry]) -> Asked | None:
    """Give the last request in a span, with the hashes it left out because they had not changed."""
    asked = next((entry for entry in reversed(between) if isinstance(entry, Asked)), None)
    if asked is None or last is None:
        return asked or last
    return Asked(
        n=asked.n,
        tool_hashes=asked.tool_hashes or last.tool_hashes,
        section_hashes=asked.section_hashes or last.section_hashes,
        options_hash=asked.options_hash,
        markers=asked.markers,
    )


def _call(asking: _Asking, last: _Asking | None) -> CallReport:
    since = -1.0
    if last and asking.start and last.start:
        since = asking.start - max(last.start, last.renewed)
    call = _priced(asking.answer.first.n, asking.answer, asking.start, asking.lifetime)
    return replace(call, seconds_since=since if since >= 0 else None, renewed=asking.renewed)


def _beside(entry: Forked, lifetime: str) -> CallReport:
    """Tell a fork's call; it was made when its time had not passed yet."""
    start = entry.at - entry.seconds if entry.at else 0.0
    life = life_of(entry.model, _lifetime(entry.usage, lifetime))
    return replace(_priced(entry.n, entry, start, life), source=entry.source)


def _told(call: CallReport, broke: CacheBroke) -> CallReport:
    """Say of a fork's call what was found when it happened."""
    ideal = call.usd if broke.expected else max(0.0, call.usd - broke.usd)
    return replace(
        call,
        ideal_usd=ideal if call.is_priced else 0.0,
        cause=broke.cause,
        detail=broke.detail,
        is_expected=bool(broke.expected),
        lost_tokens=broke.lost_tokens,
        lost_usd=broke.usd,
        is_cold=call.read_tokens < COLD_RATIO * (call.read_tokens + broke.lost_tokens),
    )


def _priced(n: int, answer: UniqueAnswer | Forked, start: float, lifetime: str) -> CallReport:
    usage, day, model = answer.usage, day_of(start), answer.model
    paid = usage_cost(model, usage, day)
    bare = cost(
        model, uncached_tokens=usage.prompt_tokens, output_tokens=usage.output_tokens, at=day
    )
    return CallReport(
        n=n,
        at=start,
        model=model,
        read_tokens=usage.cache_read_tokens,
        written_tokens=usage.cache_write_tokens,
        uncached_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        hit_share=usage.cache_read_tokens / usage.prompt_tokens if usage.prompt_tokens else 0.0,
        usd=paid.total if paid else 0.0,
        ideal_usd=paid.total if paid else 0.0,
        bare_usd=bare.total if bare else 0.0,
        is_priced=paid is not None,
        seconds_since=None,
        lifetime=lifetime,
    )


def _blamed(call: CallReport, asking: _Asking, last: _Asking) -> CallReport:
    """Say whether a call was cold or broke the cache, why, and what it would have cost otherwise."""
    readable = readable_between(last.usage, asking.usage)
    is_cold = asking.usage.cache_read_tokens < COLD_RATIO * readable
    clue = Clue(cause="")
    if asking.broke is not None:
        broke = asking.broke
        clue = Clue(cause=broke.cause, detail=broke.detail, is_expected=bool(broke.expected))
    elif is_cold:
        clue = explain_cold(_seen(last), _seen(asking), asking.between, call.seconds_since)
    lost = readable - asking.usage.cache_read_tokens if clue.cause else 0
    return replace(
        call,
        ideal_usd=call.ideal_usd
        if clue.is_expected
        else _ideal_usd(call, _left(last.usage, asking.usage)),
        is_cold=is_cold,
        cause=clue.cause,
        detail=clue.detail,
        is_expected=clue.is_expected,
        lost_tokens=max(0, lost),
        lost_usd=lost_usd(call.model, asking.usage, max(0, lost), day_of(call.at)),
    )


def _seen(asking: _Asking) -> SeenBetween:
    return SeenBetween(
        model=asking.answer.model,
        usage=asking.usage,
        content=asking.answer.content,
        lifetime=asking.lifetime,
        asked=asking.asked,
    )


def _left(before: Usage, after: Usage) -> int:
    """Count what the call before had sent and nobody deleted since."""
    return before.prompt_tokens - deleted_between(before, after)


def _ideal_usd(call: CallReport, left_tokens: int) -> float:
    """Price a call that reads all that the one before it had left, and writes the rest."""
    prompt = call.read_tokens + call.written_tokens + call.uncached_tokens
    read = min(prompt, max(call.read_tokens, left_tokens))
    written = min(call.written_tokens, prompt - read)
    is_long = call.lifetime == "1h"
    ideal = cost(
        call.model,
        read_tokens=read,
        write_1h_tokens=written if is_long else 0,
        write_5m_tokens=0 if is_long else written,
        uncached_tokens=prompt - read - written,
        output_tokens=call.output_tokens,
        at=day_of(call.at),
    )
    return ideal.total if ideal else 0.0
