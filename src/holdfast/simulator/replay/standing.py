"""Where a policy of ours stands among the others of a replay, and to which of them it loses."""

from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.simulator.replay.result import PolicyFigures

ALIKE_SHARE = 0.05
"""Contexts that differ by less are of the same size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyStanding:
    fitting: int
    """How many of the others stay under the window."""
    cheaper: tuple[str, ...]
    """Those of them that cost less."""
    less_regret: tuple[str, ...]
    """Others whose mean context is as large, and that miss less."""

    def loses_by(self, name: str) -> tuple[str, ...]:
        """Say in which respects another policy is ahead."""
        found = {"cost": self.cheaper, "regret": self.less_regret}
        return tuple(respect for respect, names in found.items() if name in names)


def is_ours(name: str) -> bool:
    return name.startswith("ours")


def standing(ours: PolicyFigures, policies: Mapping[str, PolicyFigures]) -> PolicyStanding:
    """Compare a policy of ours with all that are not."""
    others = {name: one for name, one in policies.items() if not is_ours(name)}
    fit = {
        name: one for name, one in others.items() if not one.over_window_calls and not one.stopped
    }
    near = ALIKE_SHARE * ours.mean_context
    return PolicyStanding(
        fitting=len(fit),
        cheaper=tuple(name for name, one in fit.items() if one.usd < ours.usd),
        less_regret=tuple(
            name
            for name, one in others.items()
            if abs(one.mean_context - ours.mean_context) <= near and one.regret < ours.regret
        ),
    )


def standings(policies: Mapping[str, PolicyFigures]) -> dict[str, PolicyStanding]:
    """Compare each policy of ours."""
    return {name: standing(one, policies) for name, one in policies.items() if is_ours(name)}
