"""Token prices per model and date, from the user's file, this table or `genai-prices`.

The optional package `genai-prices` has more models and past prices. It is searched last, or before
the table if it is newer. An unpublished price is None.
"""

import os
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, structs
from msgspec.toml import decode as decode_toml

from longhold.core.messages import Usage
from longhold.core.messages.usage import Tally, Tokens, add_fields
from longhold.core.models.capabilities import canonical_name
from longhold.core.settings import home
from longhold.errors import ConfigError

TOKENS_PER_PRICE = 1_000_000  # prices are quoted per million tokens

Amount = Annotated[float, Meta(ge=0)]


class Tier(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Price multipliers for requests whose prompt exceeds a length."""

    above_prompt_tokens: Annotated[int, Meta(ge=0)]
    prompt_multiplier: Amount = 1.0
    output_multiplier: Amount = 1.0
    read_multiplier: Amount | None = None  # set if cache reads rise by another factor than input
    write_multiplier: Amount | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """US dollars per million tokens."""

    input: float
    write_5m: float
    write_1h: float
    read: float
    output: float
    tiers: tuple[Tier, ...] = ()

    def select_tier(self, prompt_tokens: int) -> "Prices":
        for tier in sorted(self.tiers, key=lambda tier: -tier.above_prompt_tokens):
            if prompt_tokens > tier.above_prompt_tokens:
                return self._apply_tier(tier)
        return replace(self, tiers=())

    def without_cache(self) -> "Prices":
        """Return the prices for a client without caching, which pays full price for all input."""
        flat = tuple(
            structs.replace(tier, read_multiplier=None, write_multiplier=None)
            for tier in self.tiers
        )
        return replace(self, write_5m=self.input, write_1h=self.input, read=self.input, tiers=flat)

    def price(self, tokens: Tokens) -> Cost:
        paid = self.select_tier(tokens.prompt_tokens)
        return Cost(
            read=tokens.cache_read_tokens * paid.read / TOKENS_PER_PRICE,
            write_5m=tokens.written_5m_tokens * paid.write_5m / TOKENS_PER_PRICE,
            write_1h=tokens.written_1h_tokens * paid.write_1h / TOKENS_PER_PRICE,
            uncached=tokens.input_tokens * paid.input / TOKENS_PER_PRICE,
            output=tokens.output_tokens * paid.output / TOKENS_PER_PRICE,
        )

    def _apply_tier(self, tier: Tier) -> "Prices":
        prompt, write, read = tier.prompt_multiplier, tier.write_multiplier, tier.read_multiplier
        return Prices(
            input=self.input * prompt,
            write_5m=self.write_5m * (prompt if write is None else write),
            write_1h=self.write_1h * (prompt if write is None else write),
            read=self.read * (prompt if read is None else read),
            output=self.output * tier.output_multiplier,
        )


KNOWN_MODELS = 512


@cache
def is_newer_than(checked: tuple[int, ...]) -> bool:
    if find_spec("genai_prices") is None:
        return False
    numbers = import_module("importlib.metadata").version("genai-prices").split(".")
    return tuple(int(n) for n in numbers if n.isdigit()) > checked


@lru_cache(maxsize=KNOWN_MODELS)
def from_library(model: str, at: date) -> Prices | None:
    if find_spec("genai_prices") is None:
        return None
    snapshot = import_module("genai_prices.data_snapshot").get_snapshot()
    try:
        _, found = snapshot.find_provider_model(model, None, None, None)
    except LookupError:
        return None
    noon = datetime.combine(at, time(12), tzinfo=UTC)
    listed = vars(found.get_prices(noon))
    return _prices({name: price for name, price in listed.items() if price is not None})


def _prices(listed: dict[str, Any]) -> Prices | None:
    """Convert the package's prices. Each is a `Decimal` or a base price with tiers."""
    if "input_mtok" not in listed or "output_mtok" not in listed:
        return None
    names = {
        "input": "input_mtok",
        "output": "output_mtok",
        "read": "cache_read_mtok",
        "write_5m": "cache_write_mtok",
        "write_1h": "cache_write_1h_mtok",
    }
    known = {ours: listed[theirs] for ours, theirs in names.items() if theirs in listed}
    read, write = known.get("read", known["input"]), known.get("write_5m", known["input"])
    lines = {step.start for kind in ("input", "output") for step in _steps(known[kind])}
    tiers = tuple(
        Tier(
            above_prompt_tokens=line,
            prompt_multiplier=_rise(known["input"], line),
            output_multiplier=_rise(known["output"], line),
            read_multiplier=_rise(read, line),
            write_multiplier=_rise(write, line),
        )
        for line in sorted(lines)
    )
    base = {kind: float(getattr(price, "base", price)) for kind, price in known.items()}
    return Stated(**base, tiers=tiers).prices()


def _steps(price: Any) -> list[Any]:
    return [] if isinstance(price, Decimal) else price.tiers


def _rise(price: Any, line: int) -> float:
    base = getattr(price, "base", price)
    reached = [base, *(step.price for step in _steps(price) if 0 < step.start <= line)][-1]
    return round(float(reached) / float(base), 6) if base else 1.0


CHECKED_AGAINST = (0, 2, 1)  # the version that agrees with this table
LONG_PREMIUM_ENDED = date(2026, 3, 13)  # until then, the 4.6 models cost more beyond 200K tokens


def from_table(name: str, at: date) -> Prices | None:
    if name in _LONG_PREMIUM and at < LONG_PREMIUM_ENDED:
        return replace(TABLE[name], tiers=(_LONG_PREMIUM[name],))
    return TABLE.get(name)


def _build_prices(
    input: float, read: float, output: float, *tiers: Tier, hour_ratio: float = 2.0
) -> Prices:
    """Build prices. Cache writes cost 1.25 times the input, 1-hour writes `hour_ratio` times."""
    return Prices(
        input=input,
        write_5m=input * 1.25,
        write_1h=input * hour_ratio,
        read=read,
        output=output,
        tiers=tiers,
    )


def _gpt(input: float, read: float, output: float) -> Prices:
    return _build_prices(input, read, output, _GPT_LONG, hour_ratio=1.25)


_HAIKU_LONG = Tier(above_prompt_tokens=100_000, prompt_multiplier=5.0, output_multiplier=5.0)
_GPT_LONG = Tier(above_prompt_tokens=272_000, prompt_multiplier=2.0, output_multiplier=1.5)
_PREMIUM = Tier(above_prompt_tokens=200_000, prompt_multiplier=2.0, output_multiplier=1.5)
_LONG_PREMIUM = {"claude-opus-4-6": _PREMIUM, "claude-sonnet-4-6": _PREMIUM}

TABLE: dict[str, Prices] = {
    "claude-fable-5-1": _build_prices(10.0, 0.25, 50.0),
    "claude-mythos-5-1": _build_prices(10.0, 0.25, 50.0),
    "claude-fable-5": _build_prices(10.0, 1.0, 50.0),
    "claude-mythos-5": _build_prices(10.0, 1.0, 50.0),
    "claude-opus-5-5": _build_prices(4.0, 0.20, 20.0),
    "claude-opus-5": _build_prices(5.0, 0.50, 25.0),
    "claude-opus-4-8": _build_prices(5.0, 0.50, 25.0),
    "claude-opus-4-7": _build_prices(5.0, 0.50, 25.0),
    "claude-opus-4-6": _build_prices(5.0, 0.50, 25.0),
    "claude-opus-4-5": _build_prices(5.0, 0.50, 25.0),
    "claude-sonnet-5-5": _build_prices(2.0, 0.10, 10.0),
    "claude-sonnet-5": _build_prices(2.0, 0.20, 10.0),
    "claude-sonnet-4-6": _build_prices(3.0, 0.30, 15.0),
    "claude-sonnet-4-5": _build_prices(3.0, 0.30, 15.0, _PREMIUM),
    "claude-haiku-5-5": _build_prices(0.10, 0.01, 0.50, _HAIKU_LONG),
    "claude-haiku-4-5": _build_prices(1.0, 0.10, 5.0),
    "gpt-6.1-sol": _gpt(2.0, 0.10, 10.0),
    "gpt-6-sol": _gpt(2.0, 0.20, 10.0),
    "gpt-6-luna": _gpt(0.10, 0.01, 0.50),
    "gpt-6-astra": _gpt(10.0, 1.0, 50.0),
    "gpt-5.6-sol": _gpt(4.0, 0.40, 20.0),
}


FILE = "prices.toml"
READ_VERSIONS = 4  # enough for the old and the new version of the file, and for tests


class Stated(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices in the user's file. A missing price defaults to the input price."""

    input: Amount
    output: Amount
    read: Amount | None = None
    write_5m: Amount | None = None
    write_1h: Amount | None = None
    tiers: tuple[Tier, ...] = ()

    def prices(self) -> Prices:
        write_5m = self.input if self.write_5m is None else self.write_5m
        return Prices(
            input=self.input,
            write_5m=write_5m,
            write_1h=write_5m if self.write_1h is None else self.write_1h,
            read=self.input if self.read is None else self.read,
            output=self.output,
            tiers=self.tiers,
        )


def _from_overrides(name: str) -> Prices | None:
    path = _path(os.environ.get("LONGHOLD_HOME"), os.environ.get("HOME"))
    try:
        changed = os.stat(path).st_mtime_ns  # noqa: PTH116 (asked for every answer; a tenth of the time)
    except OSError:
        return None
    return _read(path, changed).get(name)


@lru_cache(maxsize=READ_VERSIONS)
def _path(*_where: str | None) -> str:
    """Return the path of the user's file, cached per value of the variables that determine it."""
    return str(home() / FILE)


@lru_cache(maxsize=READ_VERSIONS)
def _read(path: str, changed: int) -> dict[str, Prices]:
    try:
        stated = decode_toml(Path(path).read_bytes(), type=dict[str, Stated])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}; fix or remove the file") from error
    return {canonical_name(model): row.prices() for model, row in stated.items()}


SEARCH_USD = 0.01  # 10 dollars per 1,000 web searches, for every model


def prices(model: str, at: date | None = None) -> Prices | None:
    """Look up a model's prices for a day (default: today), or return None if unpublished."""
    spelt = model.strip().lower()
    name = canonical_name(model)
    if (stated := _from_overrides(name)) is not None:
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
    at: date | None = None,
) -> Cost | None:
    """Price a request that is hypothetical or does not report its usage."""
    usage = Usage(
        input_tokens=uncached_tokens,
        cache_read_tokens=read_tokens,
        cache_write_tokens=write_5m_tokens + write_1h_tokens,
        cache_write_1h_tokens=write_1h_tokens,
        output_tokens=output_tokens,
    )
    return usage_cost(model, usage, at)


def usage_cost(model: str, usage: Usage, at: date | None = None) -> Cost | None:
    """Price the usage of one request. Cache writes without a lifetime count as 5-minute writes."""
    listed = prices(model, at)
    return None if listed is None else _usage_cost(listed, usage)


def _usage_cost(listed: Prices, usage: Usage) -> Cost:
    paid, searches = listed.price(usage), usage.web_searches
    return replace(paid, searches=searches * SEARCH_USD) if searches else paid


def price_call(model: str, usage: Usage, at: date | None = None) -> Tally:
    """Price one call at a day's prices. A model without a published price adds 0 dollars."""
    listed, prompt = prices(model, at), usage.prompt_tokens
    bare = Tokens(input_tokens=prompt, output_tokens=usage.output_tokens)
    return Tally(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        cache_write_5m_tokens=usage.written_5m_tokens,
        cache_write_1h_tokens=usage.written_1h_tokens,
        calls=1,
        unpriced_calls=int(listed is None),
        usd=_usage_cost(listed, usage).total if listed else 0.0,
        bare_usd=listed.price(bare).total if listed else 0.0,
    )
