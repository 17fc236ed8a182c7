"""A recorded session, with the facts that a replay needs before it begins.

A transcript contains neither the system prompt nor the tools (together: the frame), and some
transcripts lack the beginning. The replay estimates both from the recorded prompt sizes. Tokens of
the first prompt that no recorded message explains belong to the frame. If a later compaction shows
a smaller frame, the rest is missing history.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib.resources import files
from pathlib import Path

from longhold.core.log import load
from longhold.core.log.entries import AnyEntry, Cleared, Compacted, Ran, Replied, Said, Snipped
from longhold.core.log.spending import UniqueAnswer, answers_of
from longhold.core.messages import Message, ToolResult, ToolUse, message_to_wire, text_of
from longhold.core.messages.measure import NOTHING, Measure
from longhold.core.models.capabilities import capabilities
from longhold.core.policy.candidates import weight
from longhold.core.request.billing.pieces import PieceMeter
from longhold.core.request.billing.tokens import BillingSettings, TokenCounter, encode
from longhold.core.stages.facts.names import NameKind, find_names
from longhold.core.view.window import infer_window
from longhold.insight.transcripts.formats import is_log, open_transcript

WORDS = tuple(
    (files("longhold.insight.replay") / "filler_words.txt").read_text(encoding="utf-8").split()
)
"""Words that fill frames of a given size. The list is fixed, so that figures do not change."""
LARGEST_FRAME_TOKENS = 70_000
"""No recorded client has a larger frame. The other tokens of a first call are history."""
SMALLEST_FRAME_TOKENS = 1_000
LEAST_NAME_CHARS = 6
"""Shorter names are too often common words."""
DENSITIES = (0.8, 1.6)
"""A ratio outside this range shows that the record lacks content."""
EXACT: frozenset[NameKind] = frozenset({"path", "name", "id", "address"})
"""Kinds of names that a model cannot guess. Numbers and flags can be guessed."""


@dataclass(frozen=True)
class RecordedSession:
    name: str
    entries: Sequence[AnyEntry]
    broken: int = 0
    """The number of records in the file that could not be read."""
    skipped: int = 0
    """The number of records that are not part of a conversation."""
    counter: TokenCounter = field(default_factory=lambda: TokenCounter(BillingSettings()))
    """Caches token counts for all replays."""
    _names: dict[int, tuple[str, ...]] = field(default_factory=dict)

    @cached_property
    def answers(self) -> Sequence[UniqueAnswer]:
        return list(answers_of(self.entries).values())

    @cached_property
    def model(self) -> str:
        counted = Counter(answer.model for answer in self.answers)
        return counted.most_common(1)[0][0] if counted else ""

    @cached_property
    def lifetime(self) -> str:
        """Return the cache lifetime that the client used."""
        hours = sum(answer.usage.written_1h_tokens for answer in self.answers)
        return "1h" if hours * 2 > sum(a.usage.cache_write_tokens for a in self.answers) else "5m"

    @cached_property
    def window_tokens(self) -> int:
        return infer_window(self.entries) or capabilities(self.model).window_tokens

    @cached_property
    def density(self) -> float:
        """Return the ratio of the recorded model's token counts to the simulator's counts.

        It is computed from the growth of the prompts, which also contain unrecorded text.
        """
        grown = counted = before = between = 0
        is_whole, meter = False, PieceMeter(self.counter, 1.0)
        for entry in self.entries:
            usage = entry.usage if isinstance(entry, Replied) else None
            if usage is not None and usage.prompt_tokens and usage.prompt_tokens != before:
                growth = usage.prompt_tokens - before
                if is_whole and growth > 0 and between:
                    grown, counted = grown + growth, counted + between
                before, between, is_whole = usage.prompt_tokens, 0, True
            is_whole = is_whole and not isinstance(entry, Compacted | Cleared | Snipped)
            between += count_tokens(entry, meter)
        scale = capabilities(self.model).tokenizer_scale
        low, high = DENSITIES
        return min(high, max(low, grown / counted / scale)) if counted else 1.0

    @cached_property
    def frame_tokens(self) -> int:
        return _sizes(self.entries)[0]

    @cached_property
    def missing_tokens(self) -> int:
        return _sizes(self.entries)[1]

    def names(self, entry: AnyEntry) -> tuple[str, ...]:
        """Return the exact names in messages, answers and results.

        Names are in order of appearance, because restoring one source may restore the next name
        too.
        """
        if entry.n not in self._names:
            found = find_names(_text(entry))
            self._names[entry.n] = tuple(
                name
                for name, kind in found.items()
                if kind in EXACT and len(name) >= LEAST_NAME_CHARS
            )
        return self._names[entry.n]


def read_recording(path: Path) -> RecordedSession:
    if is_log(path):
        loaded = load(path)
        return RecordedSession(path.name, loaded.entries, broken=len(loaded.damage))
    with open_transcript(path) as transcript:
        entries = list(transcript.entries)
        account = transcript.account
    skipped = sum(account.skipped.values())
    return RecordedSession(path.name, entries, broken=len(account.malformed), skipped=skipped)


def _text(entry: AnyEntry) -> str:
    match entry:
        case Said(content=content) | Ran(content=content):
            return text_of(content)
        case Replied(content=content):
            inputs = [
                value
                for block in content
                if isinstance(block, ToolUse)
                for value in _strings(block.input)
            ]
            return "\n".join((text_of(content), *inputs))
    return ""


def count_tokens(entry: AnyEntry, meter: PieceMeter) -> int:
    match entry:
        case Said(content=content):
            message = Message("user", content)
        case Replied(content=content):
            message = Message("assistant", content)
        case Ran(tool_use_id=id, content=result, is_error=failed, extra=extra):
            block = ToolResult(tool_use_id=id, content=result, is_error=failed, extra=extra)
            message = Message("user", (block,))
        case _:
            return 0
    blocks = message_to_wire(message)["content"]
    pieces = (meter.piece("messages", message.role, block, (0, 0)) for block in blocks)
    return sum(piece.tokens for piece in pieces)


def _strings(value: object) -> list[str]:
    match value:
        case str():
            return [value]
        case Mapping():
            return [text for part in value.values() for text in _strings(part)]
        case list() | tuple():
            return [text for part in value for text in _strings(part)]
    return []


def _sizes(entries: Sequence[AnyEntry]) -> tuple[int, int]:
    unexplained = list(_list_unexplained(entries))
    first = max(0, unexplained[0]) if unexplained else 0
    later = [tokens for tokens in unexplained[1:] if tokens > SMALLEST_FRAME_TOKENS]
    frame = min([first, LARGEST_FRAME_TOKENS, *later])
    return max(SMALLEST_FRAME_TOKENS, frame), max(0, first - frame)


def _list_unexplained(entries: Sequence[AnyEntry]) -> list[int]:
    """Return the unexplained tokens of the first prompt, and of those after each compaction."""
    found, said, is_due = [], NOTHING, True
    for entry in entries:
        if isinstance(entry, Replied) and entry.usage and entry.usage.prompt_tokens and is_due:
            found.append(entry.usage.prompt_tokens - round(weight(said)))
            is_due = False
        if isinstance(entry, Compacted):
            said, is_due = entry.measure, True
        said = said + _measure(entry)
    return found


def _measure(entry: AnyEntry) -> Measure:
    return entry.measure if isinstance(entry, Said | Ran | Replied) else NOTHING


@lru_cache(maxsize=8)
def filler(tokens: int) -> str:
    words = round(tokens / _tokens_per_word())
    return " ".join(random.Random(words).choices(WORDS, k=words))


@lru_cache(maxsize=1)
def _tokens_per_word() -> float:
    return len(encode(" ".join(WORDS * 20))) / (20 * len(WORDS))
