"""Seeded randomness: every id, length and choice of a generated session comes from here.

One stream of random numbers per session, so the same seed gives the same bytes on every run;
nothing depends on the clock, the operating system or the hash seed.
"""

import math
import random
from base64 import b64encode
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
"""Base 58, as the provider's ids use it."""


class Chance(random.Random):
    def pick(self, options: Sequence[T]) -> T:
        """Choose one; faster than `choice`, which guards against a bias far below ours."""
        return options[int(self.random() * len(options))]

    def between(self, least: int, most: int) -> int:
        """Choose a whole number, both ends included."""
        return least + int(self.random() * (most - least + 1))

    def odds(self, share: float) -> bool:
        return self.random() < share

    def length(self, median: float, spread: float, most: int) -> int:
        """Return a positive length with a long tail: log-normal around the median."""
        return max(1, min(most, int(median * math.exp(self.gauss(0.0, spread)))))

    def uuid(self) -> str:
        digits = f"{self.getrandbits(128):032x}"
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"

    def token(self, prefix: str, length: int = 22) -> str:
        return prefix + "".join(self.choices(ALPHABET, k=length))

    def hex(self, length: int) -> str:
        return f"{self.getrandbits(4 * length):0{length}x}"

    def signature(self, thinking_chars: int) -> str:
        """Return the opaque seal of a thinking block; it grows with what it seals."""
        return b64encode(self.randbytes(220 + thinking_chars)).decode()
