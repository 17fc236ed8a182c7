"""The shared input of all digest sections: the facts, the limits and the age of each item.

The limits are for a 200K window. Text they cut is still in the log, under the cited number.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath

from longhold.core.stages.compact.digest.pieces import lower_by_age
from longhold.core.stages.facts.facts import AnswerFact, ChangeFact, Facts, Look, WordsFact
from longhold.core.stages.facts.gist import question

OLD_SHARE = 0.4
"""The share of its value that a message keeps after an earlier compaction."""
ROOT_SHARE = 0.6
"""A directory that contains this share of all paths is omitted from them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestLimits:
    base_tokens: int = 600
    """For the headings and the state, however short the segment is."""
    tokens_ratio: float = 0.098
    """Share of the segment's tokens on top of that. By most tokenizers the total is a tenth."""
    written_ratio: float = 0.08
    """Lower for a model's summary and its additions: the model has judged what matters."""
    least_tokens: int = 1_200
    """With less, the nine sections would contain only headings."""
    least_added_tokens: int = 400
    most_tokens: int = 16_000
    """Beyond this, readers skim and each later call pays for it again."""
    words_tokens: int = 60_000
    """The user's words cannot be recovered later. Recorded sessions have up to 6,900 tokens."""
    index_ratio: float = 0.075
    """The index of names gets this share of the budget left after the user's words."""
    message_tokens: int = 24
    """The size of a message's first words. It limits how many of the newest messages are read."""
    open_messages: int = 200
    usual_message_chars: int = 1_000
    """A longer message is added to the budget, or follows the short form of everything else."""
    first_words_chars: int = 80
    short_message_chars: int = 480
    """For a paste when space is short. The words typed around a paste are shorter."""
    long_message_chars: tuple[int, ...] = (2_000, 8_000, 24_000)
    answer_chars: int = 2_400
    """The last answer of a turn. 90% of the recorded ones are shorter."""
    long_answer_chars: int = 6_000
    """The same with space to spare, for reviews and designs that later turns cite by number."""
    short_answer_chars: int = 480
    brief_answer_chars: int = 200
    remark_chars: int = 240
    thought_chars: int = 320
    brief_command_chars: int = 90
    command_chars: int = 260
    """90% of recorded commands are shorter; the rest are scripts and commit messages."""
    outcome_chars: int = 220
    error_chars: tuple[int, ...] = (100, 220, 320)
    """The beginning, then the line that names the problem, then the location."""
    snippet_chars: int = 700
    demand_chars: tuple[int, ...] = (500, 1_500, 4_000)
    """The demands of a plan or document: the most binding lines, more of them, nearly all."""
    old_snippet_chars: int = 400
    brief_report_chars: int = 240
    report_chars: int = 700
    long_report_chars: int = 2_400
    prior_ratio: float = 0.2
    """Share of the digest for summaries of history that is not in the log."""
    recent_rounds: int = 50
    """Older commands and errors are listed only with space to spare."""
    current_rounds: int = 10
    current_messages: int = 5
    """The user's last messages, whose names the next steps will need."""


LIMITS = DigestLimits()

FINISHED = ("done", "cancelled", "replaced")


def is_finished(mark: str) -> bool:
    return mark.startswith(FINISHED)


@dataclass(frozen=True, kw_only=True)
class DigestContext:
    facts: Facts
    limits: DigestLimits = LIMITS
    marks: Mapping[int, str] = field(default_factory=dict)
    whole: frozenset[int] = frozenset()
    most_messages: int = 0
    """The most messages the budget could show; 0 means no limit."""
    is_tight: bool = False
    """Not all of the user's words fit, so messages compacted before are worth less."""

    @cached_property
    def root(self) -> str:
        paths = Counter(
            step.path
            for _, step in self.facts.steps()
            if isinstance(step, ChangeFact | Look) and step.path.startswith("/")
        )
        above = Counter[str]()
        for path, n in paths.items():
            above.update({str(parent): n for parent in PurePosixPath(path).parents})
        enough = paths.total() * ROOT_SHARE
        deep = [place for place, n in above.items() if n >= enough and place != "/"]
        return max(deep, key=len, default="")

    def short(self, path: str) -> str:
        return path.removeprefix(f"{self.root}/") if self.root else path

    def plain(self, text: str) -> str:
        return text.replace(f"{self.root}/", "") if self.root else text

    @cached_property
    def questions(self) -> dict[int, str]:
        """The agent's question, keyed by the number of the user's reply."""
        found: dict[int, str] = {}
        said = ""
        for turn in self.facts.turns:
            if turn.words is not None and said:
                found[turn.words.id] = question(said)
            said = next((s.text for s in reversed(turn.steps) if isinstance(s, AnswerFact)), "")
        return found

    @cached_property
    def left_out(self) -> list[tuple[int, WordsFact]]:
        said = list(self.facts.words())
        return said[: -self.most_messages] if self.most_messages and self.is_tight else []

    @cached_property
    def hidden_turns(self) -> frozenset[int]:
        ids = {words.id for _, words in self.left_out}
        turns = (turn for turn in self.facts.turns if turn.words and turn.words.id in ids)
        return frozenset(turn.number for turn in turns)

    @cached_property
    def read_texts(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for _, step in self.facts.find(Look):
            if step.kind == "read" and step.text:
                found.setdefault(step.path, []).insert(0, step.text)
        return found

    @cached_property
    def last_turn(self) -> int:
        return self.facts.turns[-1].number if self.facts.turns else 0

    def age(self, turn: int) -> float:
        """Return the age of a turn: 0 for the last one, approaching 1."""
        first = self.facts.turns[0].number if self.facts.turns else 0
        return (self.last_turn - turn) / (self.last_turn - first + 1)

    @cached_property
    def _places(self) -> dict[int, int]:
        rounds = self.facts.rounds
        return {id: len(rounds) - i for i, id in enumerate(rounds)}

    def is_old(self, id: int) -> bool:
        return id < self.facts.since

    def is_recent(self, id: int) -> bool:
        return self._places.get(id, 0) <= self.limits.recent_rounds

    def is_current(self, id: int) -> bool:
        return self._places.get(id, 0) <= self.limits.current_rounds

    def worth(self, worth: float, id: int) -> float:
        return lower_by_age(worth, self.staleness(id)) * (OLD_SHARE if self.is_old(id) else 1.0)

    def staleness(self, id: int) -> float:
        """Return the age of a round: 0 for the last one, approaching 1."""
        return (self._places.get(id, 1) - 1) / max(len(self.facts.rounds), 1)
