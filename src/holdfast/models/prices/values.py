"""The shapes of prices and costs: dollars per million tokens, and dollars by what they bought."""

from dataclasses import dataclass, replace
from typing import Annotated

from msgspec import Meta, Struct

from holdfast.messages.usage import add_fields

TOKENS_PER_PRICE = 1_000_000  # prices are quoted per million tokens


Factor = Annotated[float, Meta(ge=0)]


class Tier(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Multiples of the prices for a request whose prompt is longer than a line."""

    above_prompt_tokens: Annotated[int, Meta(ge=0)]
    prompt_multiplier: Factor = 1.0
    output_multiplier: Factor = 1.0
    read_multiplier: Factor | None = None
    """For the rare model whose reads rise by another factor than the rest of the prompt."""
    write_multiplier: Factor | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """US dollars per million tokens."""

    input: float
    write_5m: float
    write_1h: float
    read: float
    output: float
    tiers: tuple[Tier, ...] = ()

    def at_length(self, prompt_tokens: int) -> "Prices":
        for tier in sorted(self.tiers, key=lambda tier: -tier.above_prompt_tokens):
            if prompt_tokens > tier.above_prompt_tokens:
                return self._in(tier)
        return replace(self, tiers=())

    def times(self, factor: float) -> "Prices":
        return self._in(
            Tier(above_prompt_tokens=0, prompt_multiplier=factor, output_multiplier=factor)
        )

    def _in(self, tier: Tier) -> "Prices":
        prompt, write, read = tier.prompt_multiplier, tier.write_multiplier, tier.read_multiplier
        return Prices(
            input=self.input * prompt,
            write_5m=self.write_5m * (prompt if write is None else write),
            write_1h=self.write_1h * (prompt if write is None else write),
            read=self.read * (prompt if read is None else read),
            output=self.output * tier.output_multiplier,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """US dollars for one request or for a sum of them, by what they were spent on."""

    read: float = 0.0
    write_5m: float = 0.0
    write_1h: float = 0.0
    uncached: float = 0.0
    output: float = 0.0
    searches: float = 0.0

    @property
    def total(self) -> float:
        tokens = self.read + self.write_5m + self.write_1h + self.uncached + self.output
        return tokens + self.searches

    def __add__(self, other: "Cost") -> "Cost":
        return add_fields(self, other)
