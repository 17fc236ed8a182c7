"""What tokens cost, per model and, where prices changed, per date.

Token counts come in as plain integers, so nothing here depends on how a provider spells its
usage; a `Cost` in US dollars goes out, split into what was read from the cache, written to it,
sent uncached and answered. A price comes from the user's file, from our table, or from the
price package where it is installed: for other models, for past days, and for all models once
it is newer than our table. A model without a published price has none: None, never a guess.
"""

from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Literal

from holdfast.models.capabilities import canonical_name
from holdfast.models.prices.library import from_library, is_newer_than
from holdfast.models.prices.overrides import from_overrides
from holdfast.models.prices.table import CHECKED_AGAINST, from_table
from holdfast.models.prices.values import TOKENS_PER_PRICE, Cost, Prices, Tier

__all__ = ["TOKENS_PER_PRICE", "Cost", "Prices", "Tier", "cost", "prices"]

BATCH_MULTIPLIER = 0.5  # batches cost half, on top of the cache multipliers
US_ONLY_MULTIPLIER = 1.1  # inference confined to the United States
FAST_MULTIPLIER = 2.0  # fast mode on the models that have it
FAST_MODELS = frozenset({"claude-opus-5", "claude-opus-5-5"})

_canonical = lru_cache(maxsize=512)(canonical_name)  # asked for every answer of a session
_FREE = Prices(input=0.0, write_5m=0.0, write_1h=0.0, read=0.0, output=0.0)


def prices(model: str, at: date | None = None) -> Prices | None:
    """Look up a model's prices, today's or those of a day; None if none are published."""
    spelt = model.strip().lower()
    if spelt.startswith("local/"):
        return _FREE
    name = _canonical(model)
    if (stated := from_overrides(name)) is not None:
        return stated
    today = datetime.now(UTC).date()
    day = min(at or today, today)
    tabled = from_table(name, day)
    if tabled is not None and day == today and not is_newer_than(CHECKED_AGAINST):
        return tabled
    return from_library(name, day) or from_library(spelt, day) or tabled


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
    fast = speed == "fast" and _canonical(model) in FAST_MODELS
    return (
        (FAST_MULTIPLIER if fast else 1.0)
        * (BATCH_MULTIPLIER if is_batch else 1.0)
        * (US_ONLY_MULTIPLIER if is_us_only else 1.0)
    )
