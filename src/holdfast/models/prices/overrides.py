"""Prices the user states: `prices.toml` in the home directory, one table per model.

    ["my-model"]
    input = 1.0
    output = 4.0
    read = 0.1                  # left out: the input price
    write_5m = 1.25             # left out: the input price
    write_1h = 2.0              # left out: the five-minute price
    tiers = [{above_prompt_tokens = 100000, prompt_multiplier = 5.0, output_multiplier = 5.0}]

Only the user's own file is read: a project that sets a price could hide what it spends.
"""

import os
from functools import lru_cache
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from holdfast.errors import ConfigError
from holdfast.models.capabilities import canonical_name
from holdfast.models.prices.values import Prices, Tier
from holdfast.settings import home

FILE = "prices.toml"
READ_VERSIONS = 4  # the file as it was and as it is; tests have some more

Dollars = Annotated[float, Meta(ge=0)]


class Stated(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Prices as the file has them; what has no price of its own costs what input costs."""

    input: Dollars
    output: Dollars
    read: Dollars | None = None
    write_5m: Dollars | None = None
    write_1h: Dollars | None = None
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


def from_overrides(name: str) -> Prices | None:
    path = _path(os.environ.get("HOLDFAST_HOME"), os.environ.get("HOME"))
    try:
        changed = os.stat(path).st_mtime_ns  # noqa: PTH116 (asked for every answer; a tenth of the time)
    except OSError:
        return None
    return _read(path, changed).get(name)


@lru_cache(maxsize=READ_VERSIONS)
def _path(*_where: str | None) -> str:
    """Cached for each value of the variables that decide it."""
    return str(home() / FILE)


@lru_cache(maxsize=READ_VERSIONS)
def _read(path: str, changed: int) -> dict[str, Prices]:
    try:
        stated = msgspec.toml.decode(Path(path).read_bytes(), type=dict[str, Stated])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}; mend or remove it") from error
    return {canonical_name(model): row.prices() for model, row in stated.items()}
