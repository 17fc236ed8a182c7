"""Automatic prefix caching of OpenAI-compatible services, in steps of 128 tokens.

Prefixes under 1,024 tokens are never cached. New steps become readable with `commit`.
"""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

STEP_TOKENS = 128  # published
MINIMUM_TOKENS = 1_024  # published
HASH_BYTES = 16
SWEEP_EVERY = 4_096  # commits between removals of expired prefixes


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixMatch:
    prompt_tokens: int
    cached_tokens: int
    steps: Sequence[bytes]


class PrefixCache:
    def __init__(self, lifetime_seconds: float) -> None:
        self._lifetime_seconds = lifetime_seconds
        self._expires: dict[bytes, float] = {}
        self._commits = 0

    def look_up(self, owner: str, tokens: "array[int]", now: float) -> PrefixMatch:
        steps = _steps(owner, tokens)
        cached = 0
        for count in range(len(steps), MINIMUM_TOKENS // STEP_TOKENS - 1, -1):
            if self._expires.get(steps[count - 1], 0.0) > now:
                cached = count * STEP_TOKENS
                break
        return PrefixMatch(prompt_tokens=len(tokens), cached_tokens=cached, steps=steps)

    def commit(self, match: PrefixMatch, now: float) -> None:
        if match.prompt_tokens >= MINIMUM_TOKENS:
            self._expires.update(dict.fromkeys(match.steps, now + self._lifetime_seconds))
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
