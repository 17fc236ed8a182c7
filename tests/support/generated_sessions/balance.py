"""Keeps a generated session in the shape of real ones: which role fills how much of it.

Every text is counted here; the next length of a role is scaled by how far it is behind its
share. So each seed lands near the measured shares without any length being fixed.
"""

from typing import Literal

Role = Literal["result", "assistant", "user"]

SHARES: dict[Role, float] = {"result": 0.68, "assistant": 0.29, "user": 0.03}
"""Shares of characters over the recorded coding sessions."""
START_CHARS = 20_000
"""Weight of the expectation against the first texts, so that the start does not swing."""
HASTE = 4
"""How hard a missed share pulls back."""
LEAST, MOST = 0.3, 3.0
"""A length is never scaled beyond this, or texts would look made to measure."""


class Balance:
    """Characters written so far, by role."""

    def __init__(self) -> None:
        """Start as if a perfectly shaped session had gone before."""
        self._chars: dict[Role, float] = {
            role: START_CHARS * share for role, share in SHARES.items()
        }

    def count(self, role: Role, chars: int) -> None:
        self._chars[role] += chars

    def appetite(self, role: Role) -> float:
        """Return by what the role's next length should be scaled; 1 is as planned."""
        share = self._chars[role] / sum(self._chars.values())
        return min(MOST, max(LEAST, (SHARES[role] / share) ** HASTE))
