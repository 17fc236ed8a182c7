"""The items of a view in order, with a running measure and incremental rendering.

An item's `order` is the number of its first entry, so bisection finds it. The cost of a change
depends only on the items that it touches.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterable, Sequence

from msgspec import structs

from longhold.core.log.entries import Cleared, ClearedInput
from longhold.core.messages import Message, ToolUse
from longhold.core.messages.measure import NOTHING, Measure
from longhold.core.view.items import Item, Result, Round, Spoken, join, stand_ins


class ItemList:
    def __init__(self) -> None:
        self.items: list[Item] = []
        self.measure: Measure = NOTHING
        self.words: Measure = NOTHING  # the user's messages, and summaries that repeat them
        self.home: dict[int, int] = {}  # entries without an item: the order of the item instead
        self.uses: dict[str, int] = {}  # the order of the last round with a tool use, by its id
        self.calls: dict[str, ToolUse] = {}
        self._orders: list[int] = []
        self._messages: list[Message] = []
        self._before: list[tuple[int, int]] = []  # by item: messages before it, blocks of the last

    def item_of(self, n: int) -> Item | None:
        i = self.index_of(n)
        return self.items[i] if i is not None else None

    def round_of(self, tool_use_id: str) -> Round | None:
        item = self.item_of(self.uses.get(tool_use_id, 0))
        return item if isinstance(item, Round) else None

    def index(self, order: int) -> int | None:
        if self._orders and self._orders[-1] == order:  # the most frequent case
            return len(self._orders) - 1
        i = bisect_left(self._orders, order)
        return i if i < len(self._orders) and self._orders[i] == order else None

    def index_of(self, n: int) -> int | None:
        """Find the item that shows entry `n`. A summary of the entry does not count."""
        home = self.home.get(n, n)
        i = self.index(home)
        return i if i is not None and self.items[i].id in (n, home) else None

    def span(self, first: int, last: int) -> tuple[int, int]:
        return bisect_left(self._orders, self._order(first)), bisect_right(
            self._orders, self._order(last)
        )

    def append(self, item: Item) -> None:
        self.items.append(item)
        self._orders.append(item.order)
        self.measure = self.measure + item.measure
        if has_words(item):
            self.words = self.words + item.measure

    def put(self, i: int, item: Item) -> None:
        self.measure = self.measure - self.items[i].measure + item.measure
        if has_words(item):
            self.words = self.words - self.items[i].measure + item.measure
        self.items[i] = item
        self._forget(i)

    def replace(self, item: Item) -> int:
        i = self.index(item.order)
        assert i is not None, "only an item of the list can be replaced"
        self.put(i, item)
        return i

    def change_result(self, tool_use_id: str, change: Callable[[Result], Result]) -> int | None:
        owner = self.round_of(tool_use_id)
        if owner is None or owner.result_of(tool_use_id) is None:
            return None
        return self.replace(owner.with_changed(tool_use_id, change))

    def clear(self, entry: Cleared) -> int | None:
        shown = stand_ins(entry)
        orders = sorted({self.uses[id] for id in shown if id in self.uses})
        touched = [i for i in map(self.index, orders) if i is not None]
        touched = [i for i in touched if self._has_result(i, shown)]
        for i in touched:
            before = self.items[i]
            assert isinstance(before, Round)
            after = before.with_cleared(shown)
            self.measure = self.measure + (after.results_measure - before.results_measure)
            self.items[i] = after
        if touched:
            self._forget(touched[0])
        return touched[0] if touched else None

    def count_compactable(self) -> int:
        """Count the leading items that a compaction may cover, which the model has answered."""
        items, end = self.items, len(self.items)
        while end and isinstance(items[end - 1], Spoken):
            end -= 1
        last = items[end - 1] if end else None
        if isinstance(last, Round) and last.tool_uses():
            return end - 1
        is_waiting = any(isinstance(item, Spoken) and item.is_asked() for item in items[end:])
        return end if is_waiting else len(items)

    def remove(self, numbers: Iterable[int], *, keep: Item | None) -> int | None:
        gone = []
        for n in numbers:
            i = self.index_of(n)
            if i is not None and self.items[i] is not keep:
                self.splice(i, i + 1, ())
                gone.append(i)
        return min(gone, default=None)

    def end_turn(self, ended: int) -> int:
        """Hide the ending turn's thinking from a model that does not keep it.

        `ended` is the last order of the previous turn. Return the last order of this turn.
        """
        last = ended
        for i in range(len(self.items) - 1, -1, -1):
            item = self.items[i]
            if item.order <= ended:
                break
            last = max(last, item.order)
            if isinstance(item, Round) and not item.is_past:
                self.put(i, structs.replace(item.without_thinking(), is_past=True))
        return last

    def shorten_input(self, short: ClearedInput) -> int | None:
        owner = self.round_of(short.tool_use_id)
        if owner is None:
            return None
        return self.replace(owner.with_inputs({short.tool_use_id: short.input}))

    def drop_thinking(self, items: Iterable[Item | None]) -> None:
        """Stop sending the thinking of these rounds, because the prefix has changed."""
        for item in items:
            if isinstance(item, Round) and not item.drops_thinking:
                self.replace(structs.replace(item.without_thinking(), drops_thinking=True))

    def measure_undeleted(self, ids: Iterable[str]) -> Measure:
        """Measure the extra tokens that a provider reads if it ignores these cache edits."""
        total = NOTHING
        for id in ids:
            owner = self.round_of(id)
            result = owner.result_of(id) if owner else None
            if result is not None and result.cleared and result.cleared.how == "edited":
                sent = result.placeholder("sent")
                total = total + (sent.measure if sent else result.measure) - result.seen_measure
        return total

    def _has_result(self, i: int, ids: Container[str]) -> bool:
        item = self.items[i]
        return isinstance(item, Round) and any(r.tool_use_id in ids for r in item.results)

    def splice(self, lo: int, hi: int, items: Sequence[Item]) -> None:
        gone = sum((item.measure for item in self.items[lo:hi]), NOTHING)
        self.measure = self.measure - gone + sum((item.measure for item in items), NOTHING)
        for item in filter(has_words, self.items[lo:hi]):
            self.words = self.words - item.measure
        for item in filter(has_words, items):
            self.words = self.words + item.measure
        self.items[lo:hi] = items
        self._orders[lo:hi] = [item.order for item in items]
        self._forget(lo)

    def cover(self, lo: int, hi: int, items: Sequence[Item]) -> None:
        self.splice(lo, hi, items)
        shown = set(self._orders)
        self.home = {n: home for n, home in self.home.items() if home in shown}

    def drop_before(self, order: int) -> None:
        self.splice(0, bisect_left(self._orders, order), ())
        self.home = {n: home for n, home in self.home.items() if home >= order}
        self.uses = {id: home for id, home in self.uses.items() if home >= order}
        self.calls = {id: use for id, use in self.calls.items() if id in self.uses}

    def messages(self) -> Sequence[Message]:
        """Return the live list of messages, which changes with the items."""
        messages = self._messages
        for item in self.items[len(self._before) :]:
            self._before.append((len(messages), len(messages[-1].content) if messages else 0))
            for fragment in item.fragments("sent"):
                join(messages, fragment)
        return messages

    def message_from(self, order: int) -> int:
        i = bisect_left(self._orders, order) + 1
        return (self._before[i][0] if i < len(self._before) else len(self._messages)) - 1

    def _order(self, n: int) -> int:
        item = self.item_of(n)
        return item.order if item else n

    def _forget(self, i: int) -> None:
        """Drop the rendering from item `i` on, and undo merges."""
        if i >= len(self._before):
            return
        count, blocks = self._before[i]
        del self._before[i:]
        del self._messages[count:]
        if count and len(self._messages[-1].content) > blocks:
            last = self._messages[-1]
            self._messages[-1] = Message(last.role, last.content[:blocks])


def has_words(item: Item) -> bool:
    return isinstance(item, Spoken) and (item.kind == "summary" or item.is_asked())
