"""Prices from the package `genai-prices`, where it is installed: many models, tiers, dates.

The package is imported only once our table cannot answer: it brings a validation and an HTTP
library and takes some 0.3 seconds. It is never asked to fetch anything.
"""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Protocol

from holdfast.models.prices.values import Prices, Tier

KNOWN_MODELS = 512
"""Cached prices: more models and days than sessions name."""


class _Step(Protocol):
    start: int
    price: Decimal


class _Tiered(Protocol):
    base: Decimal
    tiers: list[_Step]


@cache
def is_newer_than(checked: tuple[int, ...]) -> bool:
    if find_spec("genai_prices") is None:
        return False
    numbers = import_module("importlib.metadata").version("genai-prices").split(".")
    return tuple(int(n) for n in numbers if n.isdigit()) > checked


@lru_cache(maxsize=KNOWN_MODELS)
def from_library(model: str, at: date) -> Prices | None:
    """Look up a model's prices on a day; None without the package or the model."""
    if find_spec("genai_prices") is None:
        return None
    snapshot = import_module("genai_prices.data_snapshot").get_snapshot()
    try:
        _, found = snapshot.find_provider_model(model, None, None, None)
    except LookupError:
        return None
    noon = datetime.combine(at, time(12), tzinfo=UTC)
    listed: dict[str, Decimal | _Tiered | None] = vars(found.get_prices(noon))
    return _prices({name: price for name, price in listed.items() if price is not None})


def _prices(listed: dict[str, Decimal | _Tiered]) -> Prices | None:
    """Convert the package's prices; what has no price of its own costs what input costs."""
    if "input_mtok" not in listed or "output_mtok" not in listed:
        return None
    input = listed["input_mtok"]
    write_5m = listed.get("cache_write_mtok", input)
    write_1h = listed.get("cache_write_1h_mtok", write_5m)
    read, output = listed.get("cache_read_mtok", input), listed["output_mtok"]
    lines = sorted({start for price in (input, output) for start, _ in _steps(price)})
    return Prices(
        input=_at(input, 0),
        write_5m=_at(write_5m, 0),
        write_1h=_at(write_1h, 0),
        read=_at(read, 0),
        output=_at(output, 0),
        tiers=tuple(
            Tier(
                above_prompt_tokens=line,
                prompt_multiplier=_rise(input, line),
                output_multiplier=_rise(output, line),
                read_multiplier=_rise(read, line),
                write_multiplier=_rise(write_5m, line),
            )
            for line in lines
        ),
    )


def _steps(price: Decimal | _Tiered) -> list[tuple[int, float]]:
    if isinstance(price, Decimal):
        return []
    return [(step.start, float(step.price)) for step in price.tiers]


def _at(price: Decimal | _Tiered, line: int) -> float:
    """Return the price just past a line."""
    base = float(price if isinstance(price, Decimal) else price.base)
    return [base, *(cost for start, cost in _steps(price) if 0 < start <= line)][-1]


def _rise(price: Decimal | _Tiered, line: int) -> float:
    base = _at(price, 0)
    return round(_at(price, line) / base, 6) if base else 1.0
