"""What stays word for word when notes replace history. Pure.

Everything the notes do not cover, extended backwards until there is enough to continue from. The
upper limit applies only to the extension.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from holdfast.messages import Text
from holdfast.messages.cut import cut
from holdfast.messages.measure import Measure
from holdfast.stages.notes.page import NotesPage
from holdfast.view.items import Item, Round, Spoken

SECTION_CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Enough:
    tokens: int
    messages: int
    most_tokens: int


def kept_from(
    items: Sequence[Item], start: int, weigh: Callable[[Measure], float], enough: Enough
) -> int:
    """Return the first item that is kept; `start` is the first that the notes do not cover."""
    first = _after_boundary(items)
    start = max(start, first)
    tokens = sum(weigh(item.measure) for item in items[start:])
    texts = sum(has_text(item) for item in items[start:])
    while start > first:
        if tokens >= enough.most_tokens:
            break
        if tokens >= enough.tokens and texts >= enough.messages:
            break
        start -= 1
        tokens += weigh(items[start].measure)
        texts += has_text(items[start])
    return start


def has_text(item: Item) -> bool:
    """True if the user or the model says something in it."""
    if isinstance(item, Spoken):
        return item.kind == "said" and not item.hidden
    return any(isinstance(block, Text) and block.text.strip() for block in item.content)


def _after_boundary(items: Sequence[Item]) -> int:
    """Return the position after the last summary and what was restored with it."""
    for i in range(len(items) - 1, -1, -1):
        item = items[i]
        if isinstance(item, Spoken) and item.kind in ("summary", "restored"):
            return i + 1
    return 0


def last_whole(items: Sequence[Item]) -> Item | None:
    """Find the last item whose tool calls all have results."""
    for item in reversed(items):
        if not (isinstance(item, Round) and item.missing()):
            return item
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """Notes written by a model and people, used as a summary."""

    page: NotesPage
    file: str
    section_tokens: int
    states: str = ""

    def text(self) -> str:
        """Return every non-empty section, cut to size."""
        sections = ((each.heading, each.written()) for each in self.page.sections)
        parts = [f"## {heading}\n{self._cut(text)}" for heading, text in sections if text]
        lead = ["Notes taken while the work went on:", *filter(None, (self.page.lead,))]
        return "\n\n".join((*lead, *parts)) if parts or self.page.lead else ""

    def _cut(self, text: str) -> str:
        chars = self.section_tokens * SECTION_CHARS_PER_TOKEN
        if len(text) <= chars:
            return text
        return f"{cut(text, chars)}\n[Cut here; all of it is in {self.file}]"
