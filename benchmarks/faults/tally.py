"""Counts of the results of injected faults, which can be added."""

from dataclasses import asdict, dataclass, field


@dataclass(slots=True)
class Tally:
    faults: int = 0
    data_lost: int = 0
    """Something acknowledged, or on an intact line, is not in the log."""
    false_statements: int = 0
    """A run said that it was completed and was not."""
    hangs: int = 0
    inputs: int = 0
    crashes: int = 0
    """An exception that is not one of ours, or a view that the API would refuse."""
    examples: list[str] = field(default_factory=list)

    def __add__(self, other: "Tally") -> "Tally":
        mine, theirs = asdict(self), asdict(other)
        return Tally(**{name: mine[name] + theirs[name] for name in mine})

    def crashed(self, where: str, error: BaseException) -> None:
        self.crashes += 1
        self.examples.append(f"{where}: {error!r}"[:200])
