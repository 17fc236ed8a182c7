"""The provider's side of a generated session: how texts are counted, and the usage it reports.

A hidden tokenizer weighs each kind of character, with some noise; the prompt of a call is the
previous one plus what was appended since. The cache is read up to the previous prompt, unless too
much time passed or the history was rewritten before that point.
"""

from dataclasses import dataclass

from generated_sessions.chance import Chance

LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
BLANKS = b" \t\r"
DIGITS = b"0123456789"
BEYOND_ASCII = bytes(range(128, 256))

LETTER_TOKENS = 0.285
BLANK_TOKENS = 0.12
DIGIT_TOKENS = 0.66
BEYOND_ASCII_TOKENS = 0.36
"""Per byte of UTF-8; a Chinese or Japanese character has three."""
OTHER_TOKENS = 0.68
"""Punctuation and line ends. Together these give near 2.8 characters a token on code, as seen."""
BLOCK_TOKENS = 7
"""Wrapping of a block or message."""
NOISE = 0.025
"""Standard deviation of a text's weight around the sum of its characters."""
PIXELS_PER_TOKEN = 750
"""The published price of pictures."""

CACHE_SECONDS = 300
"""A prompt cache entry lives five minutes from its last use."""
SHARED_TOKENS = (12_000, 18_000)
"""System prompt and tools, cached across sessions."""
SHARED_WARM_SHARE = 0.7
"""Of cold calls that still find the shared part in the cache."""
OWN_TOKENS = (3_000, 24_000)
"""What only this session's first request holds: instructions, environment, more tools."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """Token counts of one call, without its output."""

    uncached: int
    created: int
    read: int

    @property
    def prompt(self) -> int:
        return self.uncached + self.created + self.read


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedPrompt:
    """A tool result in the prompt: where it begins and its tokens."""

    id: str
    at: int
    tokens: int


class Meter:
    """The prompt of one session as the provider counts it."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._shared = chance.between(*SHARED_TOKENS)
        self._frame = self._shared + chance.between(*OWN_TOKENS)
        self._warm = 0
        self._size = self._frame
        self._results: list[CachedPrompt] = []

    @property
    def size(self) -> int:
        return self._size

    def weigh(self, text: str) -> int:
        """Return the tokens of a text, noise included."""
        data = text.encode()
        letters, blanks, digits, beyond = (
            len(data) - len(data.translate(None, kind))
            for kind in (LETTERS, BLANKS, DIGITS, BEYOND_ASCII)
        )
        other = len(data) - letters - blanks - digits - beyond
        weight = (
            letters * LETTER_TOKENS
            + blanks * BLANK_TOKENS
            + digits * DIGIT_TOKENS
            + beyond * BEYOND_ASCII_TOKENS
            + other * OTHER_TOKENS
        )
        return BLOCK_TOKENS + max(0, round(weight * self._chance.gauss(1.0, NOISE)))

    def add(self, tokens: int) -> None:
        self._size += tokens

    def add_result(self, tool_id: str, tokens: int) -> None:
        self._results.append(CachedPrompt(id=tool_id, at=self._size, tokens=tokens))
        self._size += tokens

    def call(self, idle_seconds: float, *, uncached: int) -> Reported:
        if idle_seconds > CACHE_SECONDS:
            self._warm = self._shared if self._chance.odds(SHARED_WARM_SHARE) else 0
        reported = Reported(uncached=uncached, created=self._size - self._warm, read=self._warm)
        self._warm = self._size
        return reported

    def compact(self, kept_tokens: int) -> None:
        self._size = self._frame + kept_tokens
        self._warm = min(self._warm, self._frame)
        self._results.clear()

    def clear(self, keep: int) -> tuple[list[str], int]:
        cleared = self._results[:-keep] if keep else self._results[:]
        saved = sum(each.tokens for each in cleared)
        if cleared:
            self._warm = min(self._warm, cleared[0].at)
            self._size -= saved
            # Positions of the kept ones shift down with what went before them.
            self._results = [
                CachedPrompt(id=each.id, at=each.at - saved, tokens=each.tokens)
                for each in self._results[len(cleared) :]
            ]
        return [each.id for each in cleared], saved


def weigh_picture(width: int, height: int) -> int:
    return -(-width * height // PIXELS_PER_TOKEN)
