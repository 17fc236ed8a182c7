"""A row of items: in order, with its running measure, rendered only where it changed.

The view decides what an entry does; the row does it. Items stand by their `order`, the
number of the first entry each stands for, so a place is found by bisection. Every change
costs time in what it touches.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

from holdfast.items import Item, join
from holdfast.measure import NOTHING, Measure
from holdfast.messages import Message


class Row:
    """Items in order. `put` and `splice` keep the measure and the rendered messages true."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.measure: Measure = NOTHING
        self._orders: list[int] = []
        self._messages: list[Message] = []
        self._before: list[tuple[int, Message | None]] = []
        """For each rendered item: how many messages stood before it, and the last of them."""

    def index(self, order: int) -> int | None:
        """Find where the item of this order stands."""
        i = bisect_left(self._orders, order)
        return i if i < len(self._orders) and self._orders[i] == order else None

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Find the positions of all items from one order to another, as a half-open range."""
        return bisect_left(self._orders, first), bisect_right(self._orders, last)

    def append(self, item: Item) -> None:
        """Add an item behind all others."""
        self.items.append(item)
        self._orders.append(item.order)
        self.measure = self.measure + item.measure

    def put(self, i: int, item: Item) -> None:
        """Replace one item by its successor."""
        self.measure = self.measure - self.items[i].measure + item.measure
        self.items[i] = item
        self._forget(i)

    def splice(self, lo: int, hi: int, items: Sequence[Item]) -> None:
        """Replace a range of items by others."""
        self.measure = self.measure - _sum(self.items[lo:hi]) + _sum(items)
        self.items[lo:hi] = items
        self._orders[lo:hi] = [item.order for item in items]
        self._forget(lo)

    def messages(self) -> list[Message]:
        """Render what was not rendered yet, and give all of it."""
        messages = self._messages
        for item in self.items[len(self._before) :]:
            self._before.append((len(messages), messages[-1] if messages else None))
            for fragment in item.fragments("sent"):
                join(messages, fragment)
        return messages

    def _forget(self, i: int) -> None:
        """Take back the rendering from item `i` on, unmerging what it was merged into."""
        if i >= len(self._before):
            return
        length, last = self._before[i]
        del self._before[i:]
        del self._messages[length:]
        if last is not None:
            self._messages[-1] = last


def _sum(items: Iterable[Item]) -> Measure:
    total = NOTHING
    for item in items:
        total = total + item.measure
    return total
