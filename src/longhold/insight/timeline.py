"""The context of each call by category, and what each compaction kept.

The total is the provider's count, and the shares are estimated. The frame's size is the size of a
first prompt minus its messages. Tokens that the estimates cannot explain were not in the
transcript.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from longhold.core.log.entries import AnyEntry, Compacted
from longhold.core.log.spending import answers_of
from longhold.core.messages import Message, Text, ToolResult, ToolUse, text_of
from longhold.core.messages.text import one_line
from longhold.core.stages.compact.compose import recent_names
from longhold.core.view import View
from longhold.core.view.items import Item, Spoken
from longhold.core.view.tokens import Weights, default_weights, weigh
from longhold.insight.context import MOST_SCALE, measure_item

FRAME = "system prompt and tools"
UNSEEN = "not in the transcript"
STACK = (
    FRAME,
    UNSEEN,
    "summaries",
    "restored context",
    "reminders",
    "user messages",
    "answers",
    "thinking",
    "tool calls",
    "tool results",
)
"""Categories from the bottom of the chart to the top, with stable categories first."""
VERBATIM_CHARS = 400
"""How many characters of a user message are searched for in a summary. Longer quotes are rare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPoint:
    n: int
    tokens: int
    parts: dict[str, float]


@dataclass(slots=True, kw_only=True)
class Boundary:
    entry: Compacted
    replaced: int
    names: dict[str, str]
    words: dict[int, str]
    lost: tuple[tuple[str, str], ...] = ()
    kept_words: frozenset[int] = frozenset()

    def compare(self, text: str) -> None:
        line = one_line(text)
        # For a path, the search looks for the file name.
        keys = {
            n: n.rstrip("/").rpartition("/")[2] if k == "path" else n for n, k in self.names.items()
        }
        self.lost = tuple((n, kind) for n, kind in self.names.items() if keys[n] not in text)
        self.kept_words = frozenset(n for n, said in self.words.items() if said in line)


@dataclass(frozen=True, slots=True)
class Timeline:
    points: list[ContextPoint] = field(default_factory=list)
    boundaries: list[Boundary] = field(default_factory=list)


def follow_context(history: Sequence[AnyEntry]) -> Timeline:
    """Fold a history as it was at each moment. An undo takes effect only at its own position."""
    answers, view, reader = answers_of(history), View(), _ContextReader()
    for at, entry in enumerate(history):
        if at in answers:
            reader.sent(view, entry.n, answers[at].usage.prompt_tokens)
        if isinstance(entry, Compacted):
            reader.note_compaction(view, entry)
        view.apply(entry)
    reader.compare(view)
    return reader.timeline()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    n: int
    tokens: int
    estimates: dict[str, float]
    frame: float | None
    """The estimated tokens of the logged frame, or None if the log lacks the frame."""

    def point(self, frame: float) -> ContextPoint:
        frame = min(frame if self.frame is None else self.frame, self.tokens)
        total = sum(self.estimates.values())
        scale = min(MOST_SCALE, (self.tokens - frame) / total) if total else 0.0
        parts = {FRAME: frame, UNSEEN: max(0.0, self.tokens - frame - total * scale)}
        parts |= {name: tokens * scale for name, tokens in self.estimates.items()}
        return ContextPoint(n=self.n, tokens=self.tokens, parts=parts)


@dataclass(slots=True)
class _ContextReader:
    _sent: list[_Sent] = field(default_factory=list)
    _boundaries: list[Boundary] = field(default_factory=list)
    _weighed: dict[int, tuple[Item, dict[str, float]]] = field(default_factory=dict)
    """Items by their order number. A changed item is a new object."""
    _open: list[Boundary] = field(default_factory=list)
    _is_first: bool = True
    _least: float | None = None

    def timeline(self) -> Timeline:
        return Timeline([one.point(self._least or 0.0) for one in self._sent], self._boundaries)

    def sent(self, view: View, n: int, prompt_tokens: int) -> None:
        self.compare(view)
        parts, frame = self._parts(view), None
        if view.frame is not None and view.frame.sections:
            frame = weigh(view.frame.measure, default_weights(view.model))
        elif self._is_first:
            room = max(0.0, prompt_tokens - sum(parts.values()))
            self._least = room if self._least is None else min(self._least, room)
        self._is_first = False
        self._sent.append(_Sent(n=n, tokens=prompt_tokens, estimates=parts, frame=frame))

    def note_compaction(self, view: View, entry: Compacted) -> None:
        self._is_first = True
        items = [item for item in view.items if entry.first <= item.order <= entry.last]
        if entry.kept is not None:
            first, last = entry.kept
            items = [item for item in items if not first <= item.order <= last]
        asked = [item for item in items if isinstance(item, Spoken) and item.is_asked()]
        said = {item.id: one_line(text_of(item.content))[:VERBATIM_CHARS] for item in asked}
        names = {n: str(kind) for n, kind in recent_names(items).said.items() if kind != "number"}
        self._open.append(
            Boundary(
                entry=entry,
                replaced=len(items),
                names=names,
                words={n: words for n, words in said.items() if words},
            )
        )

    def compare(self, view: View) -> None:
        if self._open:
            text = "\n".join(_texts(view.render_seen()))
            for boundary in self._open:
                boundary.compare(text)
            self._boundaries.extend(self._open)
            self._open = []

    def _parts(self, view: View) -> dict[str, float]:
        weights, parts = default_weights(view.model), dict[str, float]()
        for item in view.items:
            known = self._weighed.get(item.order)
            if known is None or known[0] is not item:
                known = self._weighed[item.order] = item, _weigh(item, weights)
            for name, tokens in known[1].items():
                parts[name] = parts.get(name, 0.0) + tokens
        return parts


def _weigh(item: Item, weights: Weights) -> dict[str, float]:
    return {name: weigh(measure, weights) for name, measure in measure_item(item).items()}


def _texts(messages: Sequence[Message]) -> Iterator[str]:
    for message in messages:
        for block in message.content:
            match block:
                case Text(text=text):
                    yield text
                case ToolUse(input=given):
                    yield msgspec.json.encode(given).decode()
                case ToolResult(content=content):
                    yield text_of(content)
