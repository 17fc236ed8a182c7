"""Spans of finished work, and the line for each.

A *run* is consecutive tool rounds, without the answer. A *stretch* is everything between two
messages of the user. Neither includes the newest turn, pinned messages, reminders or what a
compaction left. Lines are derived from the calls; better ones need a model.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from holdfast.log.entries import Collapsed
from holdfast.log.secrets import masked
from holdfast.messages import ToolUse, text_of
from holdfast.messages.cut import counted, printable_line
from holdfast.messages.measure import NOTHING, Measure
from holdfast.stages.snip import newest_turn
from holdfast.tools.describe import description_of
from holdfast.view import View
from holdfast.view.items import Item, Round, Spoken

NAMED_FILES = 4
"""Enough to recognise a span; the history tool lists the rest."""
NAMED_TOOLS = 5
TARGET_CHARS = 60
QUOTE_CHARS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    items: tuple[Item, ...]
    last: int
    asked: str = ""

    @property
    def first(self) -> int:
        return self.items[0].order

    @property
    def measure(self) -> Measure:
        total = NOTHING
        for item in self.items:
            total = total + item.measure
        return total

    @property
    def is_line(self) -> bool:
        """True if it consists of a single collapsed line."""
        return len(self.items) == 1 and not isinstance(self.items[0], Round)

    def holds_any(self, numbers: frozenset[int | str]) -> bool:
        """True if one of these messages lies in it."""
        return any(isinstance(n, int) and self.first <= n <= self.last for n in numbers)


def runs(view: View) -> Iterator[Span]:
    """Yield runs of tool rounds in finished turns, oldest first."""
    return _spans(view, lambda item: _bounds(view, item) or _breaks_run(item))


def stretches(view: View) -> Iterator[Span]:
    """Yield what lies between two messages of the user in finished turns, oldest first."""
    return _spans(view, lambda item: _bounds(view, item))


def _spans(view: View, bounds: Callable[[Item], bool]) -> Iterator[Span]:
    """Split the finished turns at every item that bounds a span."""
    end, asked, start = newest_turn(view), "", 0
    for i, item in enumerate(view.items):
        if item.order < end and not bounds(item):
            continue
        yield from _span(view, start, i, asked)
        if item.order >= end:
            return
        start = i + 1
        if isinstance(item, Spoken) and item.is_asked():
            asked = printable_line(text_of(item.content), QUOTE_CHARS)


def _span(view: View, lo: int, hi: int, asked: str) -> Iterator[Span]:
    """Trim a span so that it begins and ends with something the model did."""
    items = view.items
    while lo < hi and not _is_work(items[hi - 1]):
        hi -= 1
    while lo < hi and not _is_work(items[lo]):
        lo += 1
    if lo < hi:
        yield Span(items=tuple(items[lo:hi]), last=_last(view, items[hi - 1]), asked=asked)


def _last(view: View, item: Item) -> int:
    """Return the number of the last message an item shows.

    A line ends where its own span ended: the number before the next item may belong to an entry
    that is shown somewhere else in the view.
    """
    if isinstance(item, Round):
        return max([item.id, *(result.id for result in item.results)])
    line = next(entry for entry in reversed(view.history) if entry.n == item.id)
    assert isinstance(line, Collapsed)
    return line.last


def _bounds(view: View, item: Item) -> bool:
    """True if no span may contain this item; reminders the model was given stay."""
    if isinstance(item, Spoken) and item.kind not in ("line", "late"):
        return True
    return view.is_pinned(item)


def _breaks_run(item: Item) -> bool:
    """True if this is not part of a run: an answer, or a line that stands for one."""
    return not item.tool_uses() if isinstance(item, Round) else item.kind == "line"


def _is_work(item: Item) -> bool:
    return isinstance(item, Round) or item.kind == "line"


def counted_line(span: Span, limit_chars: int) -> str:
    """Describe a span by its calls: tools, files, errors and how it ended."""
    rounds = [item for item in span.items if isinstance(item, Round)]
    uses = [use for item in rounds for use in item.tool_uses()]
    tools = Counter(use.name for use in uses).most_common(NAMED_TOOLS)
    facts = [counted(len(rounds), "round"), ", ".join(f"{name} {count}" for name, count in tools)]
    if files := list(dict.fromkeys(path for use in uses for path in _paths(use))):
        more = f" and {len(files) - NAMED_FILES} more" if len(files) > NAMED_FILES else ""
        facts.append(f"files {', '.join(files[:NAMED_FILES])}{more}")
    if errors := sum(result.is_error for item in rounds for result in item.results):
        facts.append(counted(errors, "error"))
    facts.append(f"last {_ending(rounds[-1])}")
    return framed_line(span, "; ".join(facts), limit_chars)


def framed_line(span: Span, text: str, limit_chars: int) -> str:
    """Wrap a line with the message numbers it stands for and how to open them."""
    name = f"#{span.first}-#{span.last}"
    head, tail = f"[{name} collapsed to make room: ", f'. History with id "{name}" shows it.]'
    plain = printable_line(masked(text), max(1, limit_chars - len(head) - len(tail)))
    return head + plain.rstrip(".") + tail


def _ending(last: Round) -> str:
    use = last.tool_uses()[-1]
    result = last.result_of(use.id)
    known = description_of(use.name)
    target = use.input.get(known.command_input) if known.command_input else next(_paths(use), "")
    said = f" {printable_line(str(target), TARGET_CHARS)}" if target else ""
    return f"{use.name}{said} {'failed' if result and result.is_error else 'succeeded'}"


def _paths(use: ToolUse) -> Iterator[str]:
    for path in description_of(use.name).paths_in(use.input):
        yield printable_line(path, TARGET_CHARS)
