"""One line of the scorecard: a claim, the command that measures it, its figures and their goals."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

EACH = "*"
"""In the place of a key: of all values there, the worst."""


@dataclass(frozen=True, kw_only=True)
class ScoreLine:
    name: str
    claim: str
    words: Sequence[str]
    """The command, after `python`."""
    figures: Mapping[str, str]
    """What is shown of the result: a name, and where it is in the JSON (`ways.*.lost`)."""
    goals: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    """What a figure should be: `<=` or `>=`, and the value."""
    higher_is_better: frozenset[str] = frozenset()
    """Of the figures without a goal."""
    noise: float = 0.05
    """The share by which a figure may be worse before it is marked."""
    seconds: int = 240
    """After which the command is ended."""
    details: str = ""
    """A key of the result that is kept in the results whole, though the page does not show it."""
    needs_quiet: bool = False
    """Its goals are for cores that nothing else wants: on busy ones it is left out."""
    needs: str = ""
    """What it cannot be measured without, beyond the library and its development tools."""

    @property
    def command(self) -> str:
        return f"python {' '.join(self.words)}"

    def rises(self, name: str) -> bool:
        """Return whether more of a figure is better."""
        return name in self.higher_is_better or self.goals.get(name, ("<=",))[0] == ">="

    def read(self, found: Any) -> dict[str, float | None]:
        """Take the line's figures out of what its command printed; None where there is none."""
        read: dict[str, float | None] = {}
        for name, path in self.figures.items():
            values = list(_values(found, path.split(".")))
            worst = min if self.rises(name) else max
            read[name] = worst(values) if values else None
        return read

    def is_worse(self, name: str, value: float | None, before: float | None) -> bool:
        """Return whether a figure got worse by more than its noise."""
        if value is None or before is None:
            return False
        room = abs(before) * self.noise
        return value < before - room if self.rises(name) else value > before + room

    def missed(self, figures: Mapping[str, Any]) -> list[str]:
        """Name the figures that do not reach their goal."""
        return [
            name
            for name, (sign, goal) in self.goals.items()
            if (value := figures.get(name)) is not None
            and not (value <= goal if sign == "<=" else value >= goal)
        ]


def _values(found: Any, path: Sequence[str]) -> Iterator[float]:
    if not path:
        if isinstance(found, int | float):
            yield found
    elif isinstance(found, dict):
        key, rest = path[0], path[1:]
        for one in found.values() if key == EACH else [found.get(key)]:
            yield from _values(one, rest)
