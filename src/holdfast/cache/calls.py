"""Every call of a session as its usage tells it, and why the cold ones were cold.

A history comes in, ours or imported; calls go out in order, each with what was read, written
and neither, what that cost, and what it would have cost with an ideal cache and with none. A
call is cold when it read less than half of what the one before it had left in the cache. Its
cause is what was found when it happened, if the log has it, else something the log shows
between the two calls (`clues`), else "provider". Calls of forks stand among the others under
their source; only what was found when they happened is told of them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime

from holdfast.cache.breaks import LIFETIME_SECONDS, has_read, lost_usd, readable_tokens
from holdfast.cache.clues import Clue, Seen, explain_cold
from holdfast.entries import AnyEntry, Asked, CacheBroke, Compacted, Forked, Ran, Replied, Said
from holdfast.messages import Content, Usage
from holdfast.prices import cost

COLD_RATIO = 0.5
"""A call is cold below this share of what it could have read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
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
    source: str = "main"
    """Who asked: the conversation itself, or a fork of it."""


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


def explain_calls(history: Iterable[AnyEntry]) -> list[Call]:
    """Tell every call of a history that reported its usage."""
    teller = _Teller()
    for entry in history:
        teller.take(entry)
    return teller.end()


def totals(calls: Sequence[Call]) -> Totals:
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


def expires_at(call: Call) -> float:
    """Say when the cache that a call left behind dies, in seconds since the epoch."""
    return call.at + LIFETIME_SECONDS[call.lifetime]


@dataclass(slots=True, kw_only=True)
class _Answer:
    """An answer as it is put together from its pieces."""

    first: Replied
    start: float
    usage: Usage
    content: Content
    between: list[AnyEntry]
    """The entries since the answer before."""
    broke: CacheBroke | None = None
    lifetime: str = "5m"
    asked: Asked | None = None
    """The request, with all hashes known by then."""
    renewed: float = 0.0
    """When a fork last read what this call had left, so that it lived on from then."""


@dataclass(slots=True)
class _Teller:
    calls: list[Call] = field(default_factory=list)
    _waiting: list[AnyEntry] = field(default_factory=list)
    _last: _Answer | None = None
    """The answer before the one that is coming in."""
    _answer: _Answer | None = None
    _forks: list[Call] = field(default_factory=list)
    """Calls of forks since the answer that is coming in."""

    def take(self, entry: AnyEntry) -> None:
        """Take one entry of the history."""
        if self._is_of_fork(entry):
            return
        current = self._answer
        if isinstance(entry, CacheBroke) and current is not None:
            current.broke = entry
        if not isinstance(entry, Replied):
            self._waiting.append(entry)
        elif current is not None and entry.response_id == current.first.response_id:
            current.content += entry.content
            current.usage = entry.usage if entry.usage else current.usage
        elif entry.usage and entry.usage.prompt_tokens:
            self._close()
            self._answer = self._begun(entry, entry.usage)
            self._waiting = []

    def _is_of_fork(self, entry: AnyEntry) -> bool:
        """Take what a fork did; it may come in the middle of an answer, and is told after it."""
        forks, shared = self._forks, self._answer or self._last
        if isinstance(entry, Forked):
            forks.append(_beside(entry, shared))
            if shared is not None and has_read(entry.usage, shared.usage):
                shared.renewed = max(shared.renewed, forks[-1].at)
            return True
        if isinstance(entry, CacheBroke) and forks and forks[-1].source == entry.source:
            forks[-1] = _told(forks[-1], entry)
            return True
        return False

    def end(self) -> list[Call]:
        """Give all calls."""
        self._close()
        return self.calls

    def _begun(self, entry: Replied, usage: Usage) -> _Answer:
        last = self._last
        return _Answer(
            first=entry,
            start=_start(entry, self._waiting),
            usage=usage,
            content=entry.content,
            between=self._waiting,
            lifetime=_lifetime(usage, last.lifetime if last else "5m"),
            asked=_known(last.asked if last else None, self._waiting),
        )

    def _close(self) -> None:
        """Tell the answer that is complete now, as seen from the one before it."""
        answer, last = self._answer, self._last
        if answer is not None:
            answer.lifetime = _lifetime(answer.usage, last.lifetime if last else "5m")
            call = _call(answer, last)
            self.calls.append(_blamed(call, answer, last) if last else call)
            self._last, self._answer = answer, None
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
    if usage.cache_write_1h_tokens:
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
    )


def _call(answer: _Answer, last: _Answer | None) -> Call:
    since = -1.0
    if last and answer.start and last.start:
        since = answer.start - max(last.start, last.renewed)
    call = _priced(answer.first, answer.usage, answer.start, answer.lifetime)
    return replace(call, seconds_since=since if since >= 0 else None)


def _beside(entry: Forked, last: _Answer | None) -> Call:
    """Tell a fork's call; it was made when its time had not passed yet."""
    start = entry.at - entry.seconds if entry.at else 0.0
    lifetime = _lifetime(entry.usage, last.lifetime if last else "5m")
    return replace(_priced(entry, entry.usage, start, lifetime), source=entry.source)


def _told(call: Call, broke: CacheBroke) -> Call:
    """Say of a fork's call what was found when it happened."""
    return replace(
        call,
        cause=broke.cause,
        detail=broke.detail,
        is_expected=bool(broke.expected),
        lost_tokens=broke.lost_tokens,
        lost_usd=broke.usd,
        is_cold=call.read_tokens < COLD_RATIO * (call.read_tokens + broke.lost_tokens),
    )


def _priced(entry: Replied | Forked, usage: Usage, start: float, lifetime: str) -> Call:
    # A split that does not add up to what was written says nothing of the rest.
    written_1h = min(usage.cache_write_1h_tokens, usage.cache_write_tokens)
    day, model = _day(start), entry.model
    paid = cost(
        model,
        uncached_tokens=usage.input_tokens,
        read_tokens=usage.cache_read_tokens,
        write_5m_tokens=usage.cache_write_tokens - written_1h,
        write_1h_tokens=written_1h,
        output_tokens=usage.output_tokens,
        at=day,
    )
    bare = cost(
        model, uncached_tokens=usage.prompt_tokens, output_tokens=usage.output_tokens, at=day
    )
    return Call(
        n=entry.n,
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


def _blamed(call: Call, answer: _Answer, last: _Answer) -> Call:
    """Say whether a call was cold or broke the cache, why, and what it would have cost otherwise."""
    readable = readable_tokens(last.usage)
    is_cold = answer.usage.cache_read_tokens < COLD_RATIO * readable
    clue = Clue(cause="")
    if answer.broke is not None:
        broke = answer.broke
        clue = Clue(cause=broke.cause, detail=broke.detail, is_expected=bool(broke.expected))
    elif is_cold:
        clue = explain_cold(_seen(last), _seen(answer), answer.between, call.seconds_since)
    lost = readable - answer.usage.cache_read_tokens if clue.cause else 0
    return replace(
        call,
        ideal_usd=call.ideal_usd if clue.is_expected else _ideal_usd(call, last.usage),
        is_cold=is_cold,
        cause=clue.cause,
        detail=clue.detail,
        is_expected=clue.is_expected,
        lost_tokens=max(0, lost),
        lost_usd=lost_usd(call.model, answer.usage, max(0, lost), _day(call.at)),
    )


def _seen(answer: _Answer) -> Seen:
    return Seen(
        model=answer.first.model,
        usage=answer.usage,
        content=answer.content,
        lifetime=answer.lifetime,
        asked=answer.asked,
    )


def _ideal_usd(call: Call, before: Usage) -> float:
    """Price a call that reads all that the one before it had sent, and writes the rest."""
    prompt = call.read_tokens + call.written_tokens + call.uncached_tokens
    read = min(prompt, max(call.read_tokens, before.prompt_tokens))
    written = min(call.written_tokens, prompt - read)
    is_long = call.lifetime == "1h"
    ideal = cost(
        call.model,
        read_tokens=read,
        write_1h_tokens=written if is_long else 0,
        write_5m_tokens=0 if is_long else written,
        uncached_tokens=prompt - read - written,
        output_tokens=call.output_tokens,
        at=_day(call.at),
    )
    return ideal.total if ideal else 0.0


def _day(at: float) -> date | None:
    return datetime.fromtimestamp(at, UTC).date() if at else None
