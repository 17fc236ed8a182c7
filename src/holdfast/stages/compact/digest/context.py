"""What every teller of a section looks at: the facts, the limits, and where things stand.

The directory that most paths lie in is found once, so that lists can be short; how recent a
turn or a round is decides what is told when room is short.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath

from holdfast.stages.compact.digest.limits import LIMITS, DigestLimits
from holdfast.stages.facts.facts import AnswerFact, ChangeFact, Facts, Look
from holdfast.stages.facts.gist import question

ROOT_SHARE = 0.6
"""A directory that this share of all paths lies in is the one people mean."""

Mask = Callable[[str], str]


@dataclass(frozen=True, kw_only=True)
class DigestContext:
    """The facts, the limits, and how recent and how deep things are."""

    facts: Facts
    limits: DigestLimits = LIMITS
    marks: Mapping[int, str] = field(default_factory=dict)
    """What stands beside a user's message: its state, where it is not simply open."""
    is_tight: bool = False
    """There is no room for all the user's words and the rest: what was compacted before yields."""

    @cached_property
    def root(self) -> str:
        """The directory that most files lie in, or ""."""
        paths = [
            step.path
            for _, step in self.facts.steps()
            if isinstance(step, ChangeFact | Look) and step.path.startswith("/")
        ]
        above = Counter(str(parent) for path in paths for parent in PurePosixPath(path).parents)
        enough = len(paths) * ROOT_SHARE
        deep = [place for place, n in above.items() if n >= enough and place != "/"]
        return max(deep, key=len, default="")

    def short(self, path: str) -> str:
        """Write a path relative to the common directory."""
        return path.removeprefix(f"{self.root}/") if self.root else path

    def plain(self, text: str) -> str:
        """Shorten the paths within a text."""
        return text.replace(f"{self.root}/", "") if self.root else text

    @cached_property
    def questions(self) -> dict[int, str]:
        """The question the agent had asked, by the number of the user's reply."""
        found: dict[int, str] = {}
        said = ""
        for turn in self.facts.turns:
            if turn.words is not None and said:
                found[turn.words.id] = question(said)
            said = next((s.text for s in reversed(turn.steps) if isinstance(s, AnswerFact)), "")
        return found

    @cached_property
    def last_turn(self) -> int:
        return self.facts.turns[-1].number if self.facts.turns else 0

    def age(self, turn: int) -> float:
        """Return how old a turn is: 0 for the last one, approaching 1."""
        first = self.facts.turns[0].number if self.facts.turns else 0
        return (self.last_turn - turn) / (self.last_turn - first + 1)

    @cached_property
    def _places(self) -> dict[int, int]:
        rounds = self.facts.rounds
        return {id: len(rounds) - i for i, id in enumerate(rounds)}

    def is_old(self, id: int) -> bool:
        """True if a message was compacted before."""
        return id < self.facts.since

    def is_recent(self, id: int) -> bool:
        return self._places.get(id, 0) <= self.limits.recent_rounds

    def is_current(self, id: int) -> bool:
        return self._places.get(id, 0) <= self.limits.current_rounds

    def staleness(self, id: int) -> float:
        """Return how old a round is: 0 for the last one, approaching 1."""
        return (self._places.get(id, 1) - 1) / max(len(self.facts.rounds), 1)
