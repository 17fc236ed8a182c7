"""What every section is written from: the facts, the limits, and how recent things are.

Characters limit one text, tokens the whole. The limits are for a 200K window. What they cut is
still in the log, under the message number next to it.
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
"""Of its worth: what is left to a message that was compacted before."""
ROOT_SHARE = 0.6
"""A directory that contains this share of all paths is left out of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestLimits:
    base_tokens: int = 600
    """What the headings and the state take, however short the segment."""
    tokens_ratio: float = 0.098
    """Of the segment's tokens, beyond that: by most tokenizers the whole is a tenth."""
    written_ratio: float = 0.08
    """The same for a model's summary with all that is added to it: the model has judged what
    matters, and what it did not cover is added."""
    least_tokens: int = 1_200
    """A short segment gets this much: below it the nine sections hold nothing but headings."""
    least_added_tokens: int = 400
    """The same beside a model's summary."""
    most_tokens: int = 16_000
    """A long one no more: past it a reader skims, and each later call pays for it again."""
    words_tokens: int = 60_000
    """The user's own words get as much as they need, up to this: nothing later can recover them.
    The most in any recorded session is 6,900; a specification may be several times that."""
    index_ratio: float = 0.075
    """Of what stands beside the user's words, for the index of names."""
    message_tokens: int = 24
    """What the first words of a message take: as many messages as a budget can hold are looked
    at, the newest."""
    open_messages: int = 200
    """The newest, whose names are looked for in a summary."""
    usual_message_chars: int = 1_000
    """A longer message comes on top of the budget, or after the short form of everything else."""
    first_words_chars: int = 80
    short_message_chars: int = 480
    """What is kept of a paste when room is short: typed words before and after it are shorter."""
    long_message_chars: tuple[int, ...] = (2_000, 8_000, 24_000)
    """As much of a longer message as there is room for, if not all of it."""
    answer_chars: int = 2_400
    """The last answer of a turn: nine in ten of the recorded ones are shorter."""
    long_answer_chars: int = 6_000
    """The same with room to spare: reviews and designs that later turns refer to by number."""
    short_answer_chars: int = 480
    """Its short form: the three or four sentences that carry it."""
    brief_answer_chars: int = 200
    """Its shortest form: the one or two sentences that carry it."""
    remark_chars: int = 240
    """Any other answer: what it found, in a sentence or two."""
    thought_chars: int = 320
    """A conclusion drawn in thinking: the sentence and the one it rests on."""
    brief_command_chars: int = 90
    """Enough to recognise a command by."""
    command_chars: int = 260
    """Nine in ten recorded commands are shorter; the rest are scripts and commit messages."""
    outcome_chars: int = 220
    error_chars: tuple[int, ...] = (100, 220, 320)
    """Its beginning; with the line that names the problem; with the place."""
    snippet_chars: int = 700
    """Of what one recent edit put in."""
    demand_chars: tuple[int, ...] = (500, 1_500, 4_000)
    """What a plan or a document demands: the most binding lines, more of them, nearly all."""
    old_snippet_chars: int = 400
    brief_report_chars: int = 240
    """The sentences that carry it, or its verdict."""
    report_chars: int = 700
    """What a sub-agent, a page or a tool server reported."""
    long_report_chars: int = 2_400
    prior_ratio: float = 0.2
    """Of the digest, for a summary of history that is not in the log."""
    recent_rounds: int = 50
    """Commands and errors this recent are listed one by one; older ones only with room to spare."""
    current_rounds: int = 10
    current_messages: int = 5
    """The user's last messages, whose names the next steps will need."""


LIMITS = DigestLimits()

FINISHED = ("done", "cancelled", "replaced")


def is_finished(mark: str) -> bool:
    """True if a message with this mark asks for nothing any more."""
    return mark.startswith(FINISHED)


@dataclass(frozen=True, kw_only=True)
class DigestContext:
    facts: Facts
    limits: DigestLimits = LIMITS
    marks: Mapping[int, str] = field(default_factory=dict)
    """The state of a user's message, where it is not simply open."""
    whole: frozenset[int] = frozenset()
    """Messages of the user's that are kept whole, however long."""
    most_messages: int = 0
    """How many messages the budget could show at most; 0 is no limit."""
    is_tight: bool = False
    """Not all of the user's words fit, so messages that were compacted before come later."""

    @cached_property
    def root(self) -> str:
        """The directory that most files lie in, or ""."""
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
        """The question the agent had asked, by the number of the user's reply."""
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

    def worth(self, worth: float, id: int) -> float:
        return lower_by_age(worth, self.staleness(id)) * (OLD_SHARE if self.is_old(id) else 1.0)

    def staleness(self, id: int) -> float:
        """Return how old a round is: 0 for the last one, approaching 1."""
        return (self._places.get(id, 1) - 1) / max(len(self.facts.rounds), 1)
