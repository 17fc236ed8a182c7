"""What tokens cost, per model and, where prices changed, per date.

Token counts come in as plain integers, so nothing here depends on how a provider
spells its usage; a `Cost` in US dollars goes out, split into what was read from the
cache, written to it, sent uncached and answered. A model without a published price
has none: callers get None, never a guess. The table is ours; a maintained price
package can take its place behind `prices`.
"""

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Literal

from holdfast.capabilities import canonical_name

TOKENS_PER_PRICE = 1_000_000  # prices are quoted per million tokens
BATCH_MULTIPLIER = 0.5  # batches cost half, on top of the cache multipliers
US_ONLY_MULTIPLIER = 1.1  # inference confined to the United States
FAST_MULTIPLIER = 2.0  # fast mode on the models that have it
FAST_MODELS = frozenset({"claude-opus-5", "claude-opus-5-5"})
LONG_PREMIUM_ENDED = date(2026, 3, 13)  # the 4.6 models cost more past 200K until this day


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """Other prices for a whole request whose prompt is longer than a line."""

    above_prompt_tokens: int
    prompt_multiplier: float
    output_multiplier: float


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
        """Give the prices that hold for a prompt of this length."""
        for tier in sorted(self.tiers, key=lambda tier: -tier.above_prompt_tokens):
            if prompt_tokens > tier.above_prompt_tokens:
                return self.times(tier.prompt_multiplier, tier.output_multiplier)
        return replace(self, tiers=())

    def times(self, prompt: float, output: float) -> "Prices":
        """Multiply the prompt's and the output's prices."""
        return Prices(
            input=self.input * prompt,
            write_5m=self.write_5m * prompt,
            write_1h=self.write_1h * prompt,
            read=self.read * prompt,
            output=self.output * output,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """US dollars for one request or for a sum of them, by what they were spent on."""

    read: float = 0.0
    write_5m: float = 0.0
    write_1h: float = 0.0
    uncached: float = 0.0
    output: float = 0.0

    @property
    def total(self) -> float:
        """Sum the parts."""
        return self.read + self.write_5m + self.write_1h + self.uncached + self.output

    def __add__(self, other: "Cost") -> "Cost":
        """Add two costs part by part."""
        return Cost(
            read=self.read + other.read,
            write_5m=self.write_5m + other.write_5m,
            write_1h=self.write_1h + other.write_1h,
            uncached=self.uncached + other.uncached,
            output=self.output + other.output,
        )


def prices(model: str, at: date | None = None) -> Prices | None:
    """Look up a model's prices, today's or those of a day; None if none are published."""
    if model.strip().lower().startswith("local/"):
        return _FREE
    name = canonical_name(model)
    if name in _LONG_PREMIUM and (at or datetime.now(UTC).date()) < LONG_PREMIUM_ENDED:
        return replace(_TABLE[name], tiers=(_LONG_PREMIUM[name],))
    return _TABLE.get(name)


def cost(
    model: str,
    *,
    uncached_tokens: int = 0,
    read_tokens: int = 0,
    write_5m_tokens: int = 0,
    write_1h_tokens: int = 0,
    output_tokens: int = 0,
    speed: Literal["standard", "fast"] = "standard",
    is_batch: bool = False,
    is_us_only: bool = False,
    at: date | None = None,
) -> Cost | None:
    """Price one request; None when the model has no published price."""
    listed = prices(model, at)
    if listed is None:
        return None
    factor = _factor(model, speed=speed, is_batch=is_batch, is_us_only=is_us_only)
    prompt_tokens = uncached_tokens + read_tokens + write_5m_tokens + write_1h_tokens
    paid = listed.at_length(prompt_tokens).times(factor, factor)
    return Cost(
        read=read_tokens * paid.read / TOKENS_PER_PRICE,
        write_5m=write_5m_tokens * paid.write_5m / TOKENS_PER_PRICE,
        write_1h=write_1h_tokens * paid.write_1h / TOKENS_PER_PRICE,
        uncached=uncached_tokens * paid.input / TOKENS_PER_PRICE,
        output=output_tokens * paid.output / TOKENS_PER_PRICE,
    )


def _factor(model: str, *, speed: str, is_batch: bool, is_us_only: bool) -> float:
    fast = speed == "fast" and canonical_name(model) in FAST_MODELS
    return (
        (FAST_MULTIPLIER if fast else 1.0)
        * (BATCH_MULTIPLIER if is_batch else 1.0)
        * (US_ONLY_MULTIPLIER if is_us_only else 1.0)
    )


def _claude(input: float, read: float, output: float, *tiers: Tier) -> Prices:
    """Price a Claude model: writes are always 1.25 and 2 times the input, reads are not."""
    return Prices(
        input=input,
        write_5m=input * 1.25,
        write_1h=input * 2,
        read=read,
        output=output,
        tiers=tiers,
    )


def _gpt(input: float, read: float, output: float) -> Prices:
    """Price a GPT model: writes are 1.25 times the input whatever their lifetime."""
    return Prices(
        input=input,
        write_5m=input * 1.25,
        write_1h=input * 1.25,
        read=read,
        output=output,
        tiers=(_GPT_LONG,),
    )


_FREE = Prices(input=0.0, write_5m=0.0, write_1h=0.0, read=0.0, output=0.0)
_HAIKU_LONG = Tier(above_prompt_tokens=100_000, prompt_multiplier=5.0, output_multiplier=5.0)
_GPT_LONG = Tier(above_prompt_tokens=272_000, prompt_multiplier=2.0, output_multiplier=1.0)
_PREMIUM = Tier(above_prompt_tokens=200_000, prompt_multiplier=2.0, output_multiplier=1.5)
_LONG_PREMIUM = {"claude-opus-4-6": _PREMIUM, "claude-sonnet-4-6": _PREMIUM}

_TABLE: dict[str, Prices] = {
    "claude-fable-5-1": _claude(10.0, 0.25, 50.0),
    "claude-mythos-5-1": _claude(10.0, 0.25, 50.0),
    "claude-fable-5": _claude(10.0, 1.0, 50.0),
    "claude-mythos-5": _claude(10.0, 1.0, 50.0),
    "claude-opus-5-5": _claude(4.0, 0.20, 20.0),
    "claude-opus-5": _claude(5.0, 0.50, 25.0),
    "claude-opus-4-8": _claude(5.0, 0.50, 25.0),
    "claude-opus-4-7": _claude(5.0, 0.50, 25.0),
    "claude-opus-4-6": _claude(5.0, 0.50, 25.0),
    "claude-opus-4-5": _claude(5.0, 0.50, 25.0),
    "claude-sonnet-5-5": _claude(2.0, 0.10, 10.0),
    "claude-sonnet-5": _claude(2.0, 0.20, 10.0),
    "claude-sonnet-4-6": _claude(3.0, 0.30, 15.0),
    "claude-sonnet-4-5": _claude(3.0, 0.30, 15.0),
    "claude-haiku-5-5": _claude(0.10, 0.01, 0.50, _HAIKU_LONG),
    "claude-haiku-4-5": _claude(1.0, 0.10, 5.0),
    "gpt-6.1-sol": _gpt(2.0, 0.10, 10.0),
    "gpt-6-sol": _gpt(2.0, 0.20, 10.0),
    "gpt-6-luna": _gpt(0.10, 0.01, 0.50),
    "gpt-6-astra": _gpt(10.0, 1.0, 50.0),
    "gpt-5.6-sol": _gpt(4.0, 0.40, 20.0),
}
