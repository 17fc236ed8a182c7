"""What to expect of the rest of a session: calls, pauses, growth.

The number of further calls is modelled as geometric and pauses as equally likely on any call:
in the recorded sessions about as many calls follow after 10 calls as after 100, and a pause
says nothing about the next one. `payback` needs only the mean.
"""

from dataclasses import dataclass

from holdfast.request.lifetime import Lifetime

USUAL_CALLS = 100.0
"""Calls still to come, however many came before: 82 to 135 over 48 recorded sessions."""
SESSION_WEIGHT = 10.0
"""How many sessions the usual figure counts for against the current one."""
USUAL_COLD_SHARE: dict[Lifetime, float] = {"5m": 0.033, "1h": 0.005}
"""Share of 3,880 recorded calls that came after the lifetime had ended."""
COLD_WEIGHT_CALLS = 30.0
"""How many calls the usual share counts for; recorded sessions range from 0 to 0.19."""
USUAL_GROWTH_TOKENS = 1_200.0
"""What a call adds to the next prompt, averaged over the recorded sessions."""
GROWTH_WEIGHT_CALLS = 5.0
"""How many calls the usual growth counts for: few, as it soon shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    calls: float = USUAL_CALLS
    """Mean number of calls after the next one."""
    cold_share: float = USUAL_COLD_SHARE["5m"]
    """Share of calls that will find the cache dead."""
    growth_tokens: float = USUAL_GROWTH_TOKENS
    """What each call adds to the prompt."""
    removable_tokens: float = 0.0
    """How much of that growth a later edit of the same kind could remove again."""

    @property
    def stays_warm(self) -> float:
        """The probability that another call comes and finds the cache alive."""
        return self.calls / (1 + self.calls) * (1 - self.cold_share)

    @property
    def warm_calls(self) -> float:
        """Mean number of further calls before the session ends or the cache dies."""
        return self.stays_warm / (1 - self.stays_warm)


def expect(
    *,
    calls: int,
    cold_calls: int = 0,
    grown_tokens: int = 0,
    removable_tokens: int = 0,
    lifetime: Lifetime = "5m",
) -> Forecast:
    """Forecast the rest of a session from the calls it has made.

    `grown_tokens` is what all calls added together, `removable_tokens` the part of it that can
    be removed sooner or later.
    """
    usual_cold = USUAL_COLD_SHARE[lifetime]
    grown = GROWTH_WEIGHT_CALLS * USUAL_GROWTH_TOKENS + grown_tokens
    growth = grown / (GROWTH_WEIGHT_CALLS + calls)
    return Forecast(
        calls=USUAL_CALLS + calls / SESSION_WEIGHT,
        cold_share=(COLD_WEIGHT_CALLS * usual_cold + cold_calls) / (COLD_WEIGHT_CALLS + calls),
        growth_tokens=growth,
        removable_tokens=growth * min(1.0, removable_tokens / grown_tokens)
        if grown_tokens
        else 0.0,
    )
