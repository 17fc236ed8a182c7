"""Our own price table: today's published prices of the models we know by name.

A test compares it with the price package, figure by figure, and lists where they differ;
`CHECKED_AGAINST` is the version that was compared. Past prices are kept only where a premium
ended; the package has the rest.
"""

from dataclasses import replace
from datetime import date

from holdfast.models.prices.values import Prices, Tier

CHECKED_AGAINST = (0, 2, 1)
"""The price package this table agrees with; a newer one is asked first."""
LONG_PREMIUM_ENDED = date(2026, 3, 13)  # the 4.6 models cost more past 200K until this day


def from_table(name: str, at: date) -> Prices | None:
    if name in _LONG_PREMIUM and at < LONG_PREMIUM_ENDED:
        return replace(TABLE[name], tiers=(_LONG_PREMIUM[name],))
    return TABLE.get(name)


def _listed(
    input: float, read: float, output: float, *tiers: Tier, hour_ratio: float = 2.0
) -> Prices:
    """Writes cost 1.25 times the input; Claude's for an hour twice of it."""
    return Prices(
        input=input,
        write_5m=input * 1.25,
        write_1h=input * hour_ratio,
        read=read,
        output=output,
        tiers=tiers,
    )


def _gpt(input: float, read: float, output: float) -> Prices:
    return _listed(input, read, output, _GPT_LONG, hour_ratio=1.25)


_HAIKU_LONG = Tier(above_prompt_tokens=100_000, prompt_multiplier=5.0, output_multiplier=5.0)
_GPT_LONG = Tier(above_prompt_tokens=272_000, prompt_multiplier=2.0, output_multiplier=1.5)
_PREMIUM = Tier(above_prompt_tokens=200_000, prompt_multiplier=2.0, output_multiplier=1.5)
_LONG_PREMIUM = {"claude-opus-4-6": _PREMIUM, "claude-sonnet-4-6": _PREMIUM}

TABLE: dict[str, Prices] = {
    "claude-fable-5-1": _listed(10.0, 0.25, 50.0),
    "claude-mythos-5-1": _listed(10.0, 0.25, 50.0),
    "claude-fable-5": _listed(10.0, 1.0, 50.0),
    "claude-mythos-5": _listed(10.0, 1.0, 50.0),
    "claude-opus-5-5": _listed(4.0, 0.20, 20.0),
    "claude-opus-5": _listed(5.0, 0.50, 25.0),
    "claude-opus-4-8": _listed(5.0, 0.50, 25.0),
    "claude-opus-4-7": _listed(5.0, 0.50, 25.0),
    "claude-opus-4-6": _listed(5.0, 0.50, 25.0),
    "claude-opus-4-5": _listed(5.0, 0.50, 25.0),
    "claude-sonnet-5-5": _listed(2.0, 0.10, 10.0),
    "claude-sonnet-5": _listed(2.0, 0.20, 10.0),
    "claude-sonnet-4-6": _listed(3.0, 0.30, 15.0),
    "claude-sonnet-4-5": _listed(3.0, 0.30, 15.0, _PREMIUM),
    "claude-haiku-5-5": _listed(0.10, 0.01, 0.50, _HAIKU_LONG),
    "claude-haiku-4-5": _listed(1.0, 0.10, 5.0),
    "gpt-6.1-sol": _gpt(2.0, 0.10, 10.0),
    "gpt-6-sol": _gpt(2.0, 0.20, 10.0),
    "gpt-6-luna": _gpt(0.10, 0.01, 0.50),
    "gpt-6-astra": _gpt(10.0, 1.0, 50.0),
    "gpt-5.6-sol": _gpt(4.0, 0.40, 20.0),
}
