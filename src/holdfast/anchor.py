"""The last size a provider reported: what everything since is estimated from."""

from dataclasses import dataclass

from holdfast.measure import Measure
from holdfast.messages import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """The last size a provider reported, and what the view weighed when it was asked."""

    n: int
    model: str
    usage: Usage
    then: Measure
    """The view's measure before the answer that carried the usage."""
