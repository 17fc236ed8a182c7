"""The shared input of all digest sections: the facts, the limits and the age of each item.

The limits apply to a 200K window. The log still has the text that they cut, under the cited number.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import PurePosixPath
from posixpath import relpath

from longhold.core.messages.text import one_line, sentences, without_code
from longhold.core.stages.compact.digest.pieces import lower_by_age
from longhold.core.stages.facts.facts import (
    AnswerFact,
    Call,
    ChangeFact,
    CommandFact,
    Facts,
    Look,
    Thought,
    WordsFact,
    cite,
    error_of,
    subject_of,
)
from longhold.core.stages.facts.gist import (
    DOUBTS,
    add_reason,
    conclusions,
    is_strong,
    question,
    remark,
)
from longhold.core.stages.facts.outcome import (
    HEAD_CHARS,
    error_head,
    find_total,
    kind_of,
    without_pipes,
)

OLD_SHARE = 0.4
"""The share of its value that a message keeps if an earlier compaction covered it."""
CURRENT_SHARE, FINISHED_SHARE = 2.0, 0.3
"""Weights of requirements in documents, for the current task and for finished tasks."""
REPLY_CHARS = 60
"""A message this short is shown with the question it answers."""
ROOT_CHARS = 300
ROOT_LEVELS = 16
ROOT_SHARE = 0.6
"""If a directory contains this share of all paths, they are written relative to it."""

SHORT_ERROR_CHARS = 220

MOST_CAUSES, FEWEST_CAUSES = 6, 2
"""Limits for the number of explanations listed in order. One explanation needs no list."""

_DIGITS = re.compile(r"\d+")
_CAUSE = re.compile(
    r"root cause|turns out|\bactual(?:ly)? (?:cause|issue|problem|bug|reason)"
    r"|\b(?:bug|issue|problem|cause|reason|culprit)(?:\*\*)? (?:is|was)\b"
    r"|\b(?:bug|issue|problem|cause|reason)(?: is)?:(?:\*\*)?\s",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestLimits:
    base_tokens: int = 400
    """Tokens for the headings and the state, even for a short segment."""
    tokens_ratio: float = 0.0915
    """Share of the segment's tokens that is added. With most tokenizers the total is a tenth."""
    written_ratio: float = 0.077
    """Share for a model's summary and its additions. It is lower, because a model selects."""
    least_tokens: int = 1_200
    """The minimum. With fewer tokens, the nine sections would contain only headings."""
    least_added_tokens: int = 400
    most_tokens: int = 16_000
    """The maximum without the user's words. Readers skim longer texts, which also cost more."""
    words_tokens: int = 60_000
    """Limit for the user's words, which cannot be recovered. Recorded sessions need up to 6,900."""
    words_ratio: float = 1.0
    """If the user's words exceed this share of the segment, long messages lose their middle."""
    index_ratio: float = 0.02
    """Share of the budget, after the user's words, that the index of names gets."""
    index_tokens: int = 1_500
    """Maximum size of the index next to a model's summary, which has fewer names than a digest."""
    message_tokens: int = 24
    """Size of a message's first words. It limits how many of the newest messages are read."""
    open_messages: int = 200
    usual_message_chars: int = 1_000
    """If a longer message is not kept whole, its middle competes with the work."""
    first_words_chars: int = 80
    short_message_chars: int = 480
    """Limit for a paste when space is short. The typed words around a paste are shorter."""
    long_message_chars: tuple[int, ...] = (2_000, 8_000, 24_000)
    answer_chars: int = 2_400
    """Limit for the last answer of a turn. Of the recorded answers, 90 % are shorter."""
    long_answer_chars: int = 6_000
    """The same limit if space is left, for reviews and designs that later turns cite."""
    short_answer_chars: int = 480
    brief_answer_chars: int = 280
    standing_chars: int = 200
    remark_chars: int = 240
    short_remark_chars: int = 80
    """A shorter remark mostly repeats an outcome."""
    thought_chars: int = 320
    brief_command_chars: int = 90
    command_chars: int = 260
    """Of the recorded commands, 90 % are shorter. The rest are scripts and commit messages."""
    brief_outcome_chars: int = 60
    """A shorter output is shown even before the whole command, because it was its purpose."""
    outcome_chars: int = 220
    error_chars: tuple[int, ...] = (120, 190, 320)
    """Limits for the line that names the problem, then with the beginning and the location."""
    snippet_chars: int = 700
    demand_chars: tuple[int, ...] = (500, 1_500, 4_000)
    """Limits for the requirements of a document: the most binding lines, more, nearly all."""
    old_snippet_chars: int = 400
    brief_report_chars: int = 240
    report_chars: int = 700
    long_report_chars: int = 2_400
    prior_ratios: tuple[float, ...] = (0.08, 0.2)
    """Minimum and maximum share of the digest for summaries of history that is not in the log."""
    spoken_ratio: float = 0.4
    """If the user's words take a larger share, messages from before are shortened."""
    open_ratio: float = 0.1
    """If the open turn's calls take a larger share without reserved space, they compete too."""
    recent_rounds: int = 50
    """Older commands and errors are listed only if space is left."""
    current_rounds: int = 10
    current_messages: int = 5
    """Number of last user messages, whose names the next steps will need."""


LIMITS = DigestLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One error. It counts as fixed if the same command or change succeeded later."""

    turn: int
    id: int
    what: str
    error: str
    times: int = 1
    mended: int = 0
    is_refusal: bool = False
    """The user refused the call. Section 6 quotes the user's words."""
    explained: int = 0
    """The next round, if the agent explained the error there, or 0."""
    explanation: str = ""


def find_failures(facts: Facts) -> list[Failure]:
    found: dict[tuple[str, str], Failure] = {}
    calls = [(turn, step, without_pipes(subject_of(step))) for turn, step in facts.steps()]
    passed = defaultdict[str, list[int]](list)
    for _, step, what in calls:
        if what and not error_of(step):
            passed[what].append(step.id)
    for turn, step, what in calls:
        error = error_of(step)
        if not error:
            continue
        key = what, _DIGITS.sub("", error_head(error, SHORT_ERROR_CHARS)[HEAD_CHARS:])
        before = found.pop(key, None)
        found[key] = Failure(
            turn=turn,
            id=step.id,
            what=what,
            error=error,
            times=before.times + 1 if before else 1,
            mended=next((id for id in passed[what] if id > step.id), 0),
            is_refusal=isinstance(step, WordsFact),
        )
    return list(found.values())


FINISHED = ("done", "cancelled", "replaced")


def is_finished(mark: str) -> bool:
    return mark.startswith(FINISHED)


@dataclass(frozen=True, kw_only=True)
class DigestContext:
    facts: Facts
    limits: DigestLimits = LIMITS
    marks: Mapping[int, str] = field(default_factory=dict)
    whole: frozenset[int] = frozenset()
    vital: frozenset[int] = frozenset()
    """Messages that are shortened last: the first message and lists of requirements."""
    most_messages: int = 0
    """The largest number of messages that the budget can show. 0 means no limit."""
    is_tight: bool = False
    """The user's words do not all fit, so messages from earlier compactions count less."""
    is_small: bool = False
    """The user's words do not all fit, and no space is reserved for them."""
    quoted: frozenset[int] = frozenset()
    """Calls whose output is quoted in section 1."""
    keeps_open: bool = True
    """Each call of the open turn has its own line."""
    can_open: bool = True
    """The model has a tool that shows a cited message whole."""

    @cached_property
    def root(self) -> str:
        paths = Counter(
            step.path
            for _, step in self.facts.steps()
            if isinstance(step, ChangeFact | Look) and step.path.startswith("/")
        )
        above = Counter[str]()
        for path, n in paths.items():
            # Limited, because a client could name a path with a million directories.
            places = PurePosixPath(path[:ROOT_CHARS]).parents[-ROOT_LEVELS:]
            above.update({str(place): n for place in places})
        enough = paths.total() * ROOT_SHARE
        deep = [place for place, n in above.items() if n >= enough and place != "/"]
        return max(deep, key=len, default="")

    def short(self, path: str) -> str:
        """Write a path relative to the root, if that is shorter."""
        if not self.root or not path.startswith("/"):
            return path
        near = relpath(path, self.root)
        return near if len(near) < len(path) else path

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
    def unanswered(self) -> frozenset[int]:
        """Turns that ended with a question and received no short reply."""
        turns = pairwise(self.facts.turns)
        return frozenset(a.number for a, b in turns if b.words and len(b.words.text) > REPLY_CHARS)

    def pointer(self, id: int) -> str:
        return cite(id) if self.can_open else ""

    @cached_property
    def open_turn(self) -> int:
        """The number of the last turn if it has no answer yet, or -1."""
        last = self.facts.turns[-1] if self.facts.turns else None
        is_open = last and last.steps and isinstance(last.steps[-1], Call)
        return last.number if last and is_open else -1

    @cached_property
    def last_change(self) -> int:
        changes = (step.id for _, step in self.facts.find(ChangeFact) if not step.error)
        return max(changes, default=0)

    @cached_property
    def causes(self) -> list[tuple[int, int, str, str]]:
        """The latest causes in answers, each with turn, number, text, and text with reason."""
        found = []
        for turn, step in self.facts.find(AnswerFact):
            said = sentences(without_code(step.text))
            named = [
                s for s in said if _CAUSE.search(s) and not (s.endswith("?") or DOUBTS.search(s))
            ]
            if named:
                whole = one_line(add_reason(said, named[-1]))
                found.append((turn, step.id, one_line(named[-1]), whole))
        return found[-MOST_CAUSES:]

    @cached_property
    def failures(self) -> list[Failure]:
        """The failures, each with the agent's next words unless another section quotes them."""
        told = {*{turn: step.id for turn, step in self.facts.find(AnswerFact)}.values()}
        if len(self.causes) >= FEWEST_CAUSES:
            told |= {id for _, id, _, _ in self.causes}
        said = {
            (turn, step.id): text
            for turn, step in self.facts.steps()
            if isinstance(step, AnswerFact | Thought) and step.id not in told
            if (text := self._explain(step))
        }
        following = dict(pairwise(self.facts.rounds))
        return [
            replace(each, explained=id, explanation=said.get((each.turn, id), ""))
            for each in find_failures(self.facts)
            for id in (following.get(each.id, 0),)
        ]

    def _explain(self, step: AnswerFact | Thought) -> str:
        if isinstance(step, AnswerFact):
            return remark(step.text, self.limits.remark_chars)
        found = [s for s in conclusions(step.text, self.limits.thought_chars) if is_strong(s)]
        return found[-1] if found else ""

    @cached_property
    def explained(self) -> frozenset[int]:
        """Rounds whose statements section 4 quotes."""
        return frozenset(each.explained for each in self.failures if each.explanation)

    @cached_property
    def last_runs(self) -> dict[str, int]:
        """The last run of each kind of command that prints a total, such as `go test`."""
        commands = (step for _, step in self.facts.find(CommandFact))
        return {kind_of(step.text): step.id for step in commands if find_total(step.output)}

    @cached_property
    def known_causes(self) -> frozenset[str]:
        """Sentences that section 5 quotes."""
        causes = self.causes if len(self.causes) >= FEWEST_CAUSES else []
        return frozenset(text.replace("**", "") for _, _, text, _ in causes)

    @cached_property
    def repeated(self) -> frozenset[int]:
        """Messages whose beginning a later message repeats, often after an interruption."""
        said = [words for _, words in self.facts.words() if words.text]
        return frozenset(
            a.id for a, b in pairwise(said) if b.text.startswith(a.text) and a.via == b.via
        )

    @cached_property
    def left_out(self) -> list[tuple[int, WordsFact]]:
        said = list(self.facts.words())
        oldest = said[: -self.most_messages] if self.most_messages and self.is_tight else []
        return [(turn, words) for turn, words in oldest if words.id not in self.vital]

    @cached_property
    def hidden_turns(self) -> frozenset[int]:
        ids = {words.id for _, words in self.left_out}
        turns = (turn for turn in self.facts.turns if turn.words and turn.words.id in ids)
        return frozenset(turn.number for turn in turns)

    @cached_property
    def last_turn(self) -> int:
        return self.facts.turns[-1].number if self.facts.turns else 0

    def age(self, turn: int) -> float:
        """Return the age of a turn: 0 for the last turn, approaching 1 for old turns."""
        first = self.facts.turns[0].number if self.facts.turns else 0
        return (self.last_turn - turn) / (self.last_turn - first + 1)

    def task_share(self, turn: int) -> float:
        """Return the weight of a turn's task: higher if it is current, lower if it is finished."""
        said = next((t.words for t in self.facts.turns if t.number == turn), None)
        if said and is_finished(self.marks.get(said.id, "")):
            return FINISHED_SHARE
        return CURRENT_SHARE if turn == self.last_turn else 1.0

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
        """Return the age of a round: 0 for the last round, approaching 1 for old rounds."""
        return (self._places.get(id, 1) - 1) / max(len(self.facts.rounds), 1)
