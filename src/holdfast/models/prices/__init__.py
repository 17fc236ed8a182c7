"""What tokens cost, per model and, where prices changed, per date.

A price comes from the user's file, from our table, or from the price package where it is installed:
for other models, for past days, and for all models once it is newer than our table. A model without
a published price has None, never a guess.
"""

from dataclasses import replace
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Literal

from holdfast.messages import Usage
from holdfast.models.capabilities import canonical_name
from holdfast.models.prices.library import from_library, is_newer_than
from holdfast.models.prices.overrides import from_overrides
from holdfast.models.prices.table import CHECKED_AGAINST, from_table
from holdfast.models.prices.values import TOKENS_PER_PRICE, Cost, Prices, Tier

__all__ = ["TOKENS_PER_PRICE", "Cost", "Prices", "Tier", "cost", "prices", "usage_cost"]

SEARCH_USD = 0.01
"""Ten dollars for a thousand web searches, whatever the model."""
FAST_MULTIPLIER = 2.0
FAST_MODELS = frozenset({"claude-opus-5", "claude-opus-5-5"})
"""Models that can be asked to answer faster, at a multiple of every price."""

_canonical = lru_cache(maxsize=512)(canonical_name)  # asked for every answer of a session
_FREE = Prices(input=0.0, write_5m=0.0, write_1h=0.0, read=0.0, output=0.0)


def prices(model: str, at: date | None = None) -> Prices | None:
    """Look up a model's prices of today or of a day; None if none are published."""
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
    at: date | None = None,
) -> Cost | None:
    listed = prices(model, at)
    if listed is None:
        return None
    prompt_tokens = uncached_tokens + read_tokens + write_5m_tokens + write_1h_tokens
    paid = listed.at_length(prompt_tokens)
    if speed == "fast" and _canonical(model) in FAST_MODELS:
        paid = paid.times(FAST_MULTIPLIER)
    return Cost(
        read=read_tokens * paid.read / TOKENS_PER_PRICE,
        write_5m=write_5m_tokens * paid.write_5m / TOKENS_PER_PRICE,
        write_1h=write_1h_tokens * paid.write_1h / TOKENS_PER_PRICE,
        uncached=uncached_tokens * paid.input / TOKENS_PER_PRICE,
        output=output_tokens * paid.output / TOKENS_PER_PRICE,
    )


def usage_cost(model: str, usage: Usage, at: date | None = None) -> Cost | None:
    """Price what one request used; writes that are not said to be for an hour are for 5 minutes."""
    paid = cost(
        model,
        uncached_tokens=usage.input_tokens,
        read_tokens=usage.cache_read_tokens,
        write_5m_tokens=usage.written_5m_tokens,
        write_1h_tokens=usage.written_1h_tokens,
        output_tokens=usage.output_tokens,
        at=at,
    )
    searches = usage.web_searches
    return replace(paid, searches=searches * SEARCH_USD) if paid and searches else paid
