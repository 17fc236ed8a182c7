"""The prompt cache: which parts of a prompt are read, written or neither.

`commit` makes new entries readable when the answer's first byte is sent. Before that, identical
parallel requests all miss the cache. OpenAI-compatible services cache prefixes automatically, in
steps of 128 tokens and never under 1,024.
"""

import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

from longhold.core.messages import Usage
from longhold.core.request.billing.pieces import Marker
from longhold.core.request.billing.prompt import Prompt
from longhold.core.request.lifetime import Lifetime, seconds_of

LOOKBACK_POSITIONS = 20  # per cache breakpoint, including its own block
EVERYONE = "*"  # the workspace of entries with global scope
SWEEP_EVERY = 4_096  # commits between removals of expired entries, to bound memory


class Key(NamedTuple):
    """The key of a cache entry. The hash includes the model's name."""

    workspace: str
    hash: bytes


@dataclass(frozen=True, slots=True)
class CacheEntry:
    lifetime: Lifetime
    expires: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePlan:
    read_tokens: int = 0
    write_5m_tokens: int = 0
    write_1h_tokens: int = 0
    uncached_tokens: int = 0
    deleted_tokens: int = 0  # tokens of results that cache edits removed from the read part
    writes: Sequence[tuple[Key, CacheEntry]] = ()

    @property
    def prompt_tokens(self) -> int:
        written = self.write_5m_tokens + self.write_1h_tokens
        return self.read_tokens + written + self.uncached_tokens

    def usage(self, output_tokens: int = 0, *, scale: float = 1.0) -> Usage:
        """Return the usage that a provider would report. `scale` corrects estimated counts."""
        short, long = round(self.write_5m_tokens * scale), round(self.write_1h_tokens * scale)
        return Usage(
            input_tokens=round(self.uncached_tokens * scale),
            output_tokens=output_tokens,
            cache_read_tokens=round(self.read_tokens * scale),
            cache_write_tokens=short + long,
            cache_write_5m_tokens=short,
            cache_write_1h_tokens=long,
        )


class PromptCache:
    def __init__(self) -> None:
        self._entries: dict[Key, CacheEntry] = {}
        self._commits = 0

    def look_up(self, prompt: Prompt, workspace: str, minimum_tokens: int, now: float) -> CachePlan:
        markers = [m for m in prompt.markers if prompt.totals[m[0]] >= minimum_tokens]
        hit = self._highest_hit(prompt, markers, workspace, now)
        writes: list[tuple[Key, CacheEntry]] = []
        for position, marker in markers:
            if position > hit or not self._renew(prompt.chain[position], workspace, now):
                key = Key(EVERYONE if marker.is_global else workspace, prompt.chain[position])
                writes.append((key, _fresh(marker.lifetime, now)))
        return _bill(prompt, markers, hit, writes)

    def commit(self, plan: CachePlan, now: float) -> None:
        for key, entry in plan.writes:
            present = self._entries.get(key)
            if present is None or present.expires < entry.expires:
                self._entries[key] = entry
        self._commits += 1
        if self._commits % SWEEP_EVERY == 0:
            self._entries = {k: e for k, e in self._entries.items() if e.expires > now}

    def clear(self) -> None:
        self._entries.clear()

    def _highest_hit(
        self, prompt: Prompt, markers: Sequence[tuple[int, Marker]], workspace: str, now: float
    ) -> int:
        for position, _ in reversed(markers):
            for candidate in range(position, max(position - LOOKBACK_POSITIONS, -1), -1):
                if self._renew(prompt.chain[candidate], workspace, now):
                    return candidate
        return -1

    def _renew(self, link: bytes, workspace: str, now: float) -> bool:
        for owner in (workspace, EVERYONE):
            key = Key(owner, link)
            entry = self._entries.get(key)
            if entry is not None and entry.expires > now:
                self._entries[key] = _fresh(entry.lifetime, now)
                return True
        return False


def _fresh(lifetime: Lifetime, now: float) -> CacheEntry:
    return CacheEntry(lifetime, now + seconds_of(lifetime))


def _bill(
    prompt: Prompt,
    markers: Sequence[tuple[int, Marker]],
    hit: int,
    writes: Sequence[tuple[Key, CacheEntry]],
) -> CachePlan:
    """Split the prompt at the hit (a), the last 1h breakpoint after it (b) and the last one (c)."""
    a = prompt.totals[hit] if hit >= 0 else 0
    hours = [p for p, marker in markers if marker.lifetime == "1h" and p > hit]
    b = prompt.totals[hours[-1]] if hours else a
    c = max(prompt.totals[markers[-1][0]] if markers else a, b)
    deleted = sum(tokens for position, tokens in prompt.deleted if position <= hit)
    return CachePlan(
        read_tokens=a - deleted,
        write_1h_tokens=b - a,
        write_5m_tokens=c - b,
        uncached_tokens=prompt.total_tokens - c,
        deleted_tokens=deleted,
        writes=writes,
    )


STEP_TOKENS = 128  # published
MINIMUM_TOKENS = 1_024  # published
HASH_BYTES = 16
IDLE_SECONDS = 600.0  # published as 5 to 10 minutes, for models without a specific lifetime


class PrefixMatch(NamedTuple):
    prompt_tokens: int
    cached_tokens: int
    steps: Sequence[bytes]
    lifetime_seconds: float = IDLE_SECONDS


class PrefixCache:
    def __init__(self) -> None:
        self._expires: dict[bytes, float] = {}
        self._commits = 0

    def look_up(
        self, owner: str, tokens: "array[int]", now: float, lifetime_seconds: float
    ) -> PrefixMatch:
        """Match a prompt and keep it for `lifetime_seconds`. With 0, keep it for the usual time."""
        steps = _steps(owner, tokens)
        cached = 0
        for count in range(len(steps), MINIMUM_TOKENS // STEP_TOKENS - 1, -1):
            if self._expires.get(steps[count - 1], 0.0) > now:
                cached = count * STEP_TOKENS
                break
        return PrefixMatch(
            prompt_tokens=len(tokens),
            cached_tokens=cached,
            steps=steps,
            lifetime_seconds=lifetime_seconds or IDLE_SECONDS,
        )

    def commit(self, match: PrefixMatch, now: float) -> None:
        if match.prompt_tokens >= MINIMUM_TOKENS:
            self._expires.update(dict.fromkeys(match.steps, now + match.lifetime_seconds))
        self._commits += 1
        if self._commits % SWEEP_EVERY == 0:
            self._expires = {k: e for k, e in self._expires.items() if e > now}

    def clear(self) -> None:
        self._expires.clear()


def _steps(owner: str, tokens: "array[int]") -> list[bytes]:
    raw, width = tokens.tobytes(), tokens.itemsize * STEP_TOKENS
    link, steps = owner.encode(), []
    for start in range(0, len(raw) - width + 1, width):
        link = blake2b(link + raw[start : start + width], digest_size=HASH_BYTES).digest()
        steps.append(link)
    return steps


class SimulatorClock:
    def __init__(self, *, is_frozen: bool = False) -> None:
        self._frozen_at = time.time() if is_frozen else None
        self._skipped_seconds = 0.0

    def now(self) -> float:
        real = time.time() if self._frozen_at is None else self._frozen_at
        return real + self._skipped_seconds

    def advance(self, seconds: float) -> float:
        if not seconds >= 0 or seconds == float("inf"):
            raise ValueError(f"cannot advance the clock by {seconds!r} seconds; give 0 or more")
        self._skipped_seconds += seconds
        return self.now()
