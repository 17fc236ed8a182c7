"""The view that the model sees, folded from the log entry by entry.

`fold(entries)` returns a view. `view.apply(entry)` updates it at a cost that does not depend on the
length of the history. `fold` accepts any entries. Entries that cannot be applied are listed in
`damage`. Undo folds the whole log again without the undone entries.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Literal

from msgspec import structs

from longhold.core.log import entries as log
from longhold.core.messages import Content, Message, Text, ToolUse
from longhold.core.messages.measure import NOTHING, Measure
from longhold.core.models.capabilities import capabilities
from longhold.core.view.entry_list import EntryList
from longhold.core.view.in_force import InForce, find_in_force
from longhold.core.view.item_list import ItemList, has_words
from longhold.core.view.items import (
    Item,
    Result,
    Round,
    Spoken,
    StandIn,
    make_late,
    render,
    shorten_late,
)
from longhold.core.view.tokens import ReportedSize


class View:
    """The items that the model sees, in order. Only `apply` changes the view."""

    def __init__(self, history: EntryList | None = None, in_force: InForce | None = None) -> None:
        self.history: EntryList = history if history is not None else EntryList()
        self._begin(in_force or InForce())

    def __repr__(self) -> str:
        return f"<View of {len(self.items)} items from {len(self.history)} entries>"

    def _begin(self, in_force: InForce) -> None:
        self.in_force = in_force
        self.frame: log.Framed | None = None
        self.configured: log.Configured | None = None  # None in a session of Longhold's agent
        self.model, self.title = "", ""
        self.reported: ReportedSize | None = None
        self.asked: log.Asked | None = None
        self.answered: log.Asked | None = None
        """The last request whose answer reported usage. The provider's cache has this request."""
        self.edits: tuple[log.Cleared, ...] = ()
        self.damage: list[tuple[int, str]] = []
        self._list = ItemList()
        self._began, self._pins = set[str](), set[int]()
        self._is_chosen = False
        """An entry chose the model, so model names in answers do not change it."""
        self._newest = self._last_round = 0
        self._before_round: Measure = NOTHING
        self._turn_end = 0
        self._sealed = 0  # the last round sent without some of its results
        self._waiting: set[str] = set()  # tool uses of the last round that have no result
        self._renamed: dict[str, deque[str]] = {}
        """Maps the provider's ids of the last round to the ids in the log."""

    @property
    def items(self) -> Sequence[Item]:
        return self._list.items

    @property
    def total(self) -> Measure:
        return self._list.measure + self.frame.measure if self.frame else self._list.measure

    def messages(self) -> list[Message]:
        """Return the messages to send. Only changes since the last call are rendered."""
        return list(self.sent)

    @property
    def sent(self) -> Sequence[Message]:
        """The live list of messages to send. The next entry may change it."""
        return self._list.messages()

    def message_from(self, order: int) -> int:
        """Return the index of the last message of the first item at or after `order`."""
        self._list.messages()
        return self._list.message_from(order)

    def render_seen(self) -> list[Message]:
        return render(self.items, "seen")

    def item_of(self, n: int) -> Item | None:
        return self._list.item_of(n)

    def round_of(self, tool_use_id: str) -> Round | None:
        return self._list.round_of(tool_use_id)

    def find_call(self, id: str) -> str | None:
        """Return the id here of a provider's call, or None. Open calls are preferred."""
        if id not in self._waiting and self._renamed and self.open_round():
            own = self._renamed.get(id, deque[str]())
            while own and own[0] not in self._waiting:
                own.popleft()
            id = own[0] if own else id
        return id if self.round_of(id) is not None else None

    def use_of(self, tool_use_id: str) -> ToolUse | None:
        return self._list.calls.get(tool_use_id)

    @property
    def called(self) -> Collection[str]:
        return self._list.uses.keys()

    def is_pinned(self, item: Item) -> bool:
        return item.order in self._pins

    def open_round(self) -> Round | None:
        item = self.item_of(self._last_round)
        return item if isinstance(item, Round) and self._waiting else None

    def list_interrupted(self) -> list[ToolUse]:
        """List tool uses that began but have no result. They count as interrupted."""
        last = self.open_round()
        return [use for use in last.missing() if use.id in self._began] if last else []

    @property
    def response_id(self) -> str:
        last = self.item_of(self._last_round)
        return last.response_id if isinstance(last, Round) else ""

    def count_compactable(self) -> int:
        return self._list.count_compactable()

    def measure_kept(self) -> tuple[Measure, Measure]:
        """Measure the content that a compaction keeps, and the unanswered messages."""
        pinned = (self.item_of(order) for order in self._pins)
        waiting = self.items[self.count_compactable() :]
        rest = (item for item in waiting if item.order not in self._pins)
        words, unread = (
            sum((item.measure for item in items if item and not has_words(item)), NOTHING)
            for items in (pinned, rest)
        )
        return self._list.words + words, unread

    def apply(self, entry: log.AnyEntry) -> None:
        self.history.append(entry)
        if isinstance(entry, log.Undone | log.Redone | log.Rewound):
            # Folding everything again is always correct, and affordable because undo is rare.
            entries = list(self.history)
            self._begin(find_in_force(entries))
            for earlier in entries:
                self._take(earlier)
            return
        if isinstance(entry, log.ViewChange):
            self.in_force = self.in_force.add_entry(entry)
        self._take(entry)

    def let_go(self, before: int) -> None:
        """Drop the history and items below an order. Only readers of new entries may call this."""
        self.history = EntryList()
        self._list.drop_before(before)

    def _take(self, entry: log.AnyEntry) -> None:
        """Apply an entry. An entry that fails is recorded as damage and changes no item."""
        act = _ACTS.get(type(entry))
        if act is None or entry.n in self.in_force.dead:
            return
        # Items are found by bisection on their order, so numbers must not decrease.
        if 0 < entry.n <= self._newest:
            self.damage.append((entry.n, f"it comes after entry {self._newest}"))
            return
        self._newest = entry.n
        try:
            act(self, entry)
        except Exception as error:  # noqa: BLE001 - a log opens with any content
            self.damage.append((entry.n, f"{type(error).__name__}: {error}"))

    def _apply_said(self, entry: log.Said) -> None:
        is_hidden = entry.hidden or entry.role == "system"
        if not is_hidden and not capabilities(self.model).keeps_thinking:
            # These models drop a turn's thinking when the user writes, so the prompt shrinks here.
            self._turn_end = self._list.end_turn(self._turn_end)
        self._speak(entry, "said", hidden=is_hidden)

    def _apply_restored(self, entry: log.Restored) -> None:
        self._speak(entry, "restored", hidden=True)

    def _speak(
        self, entry: log.Said | log.Restored, kind: Literal["said", "restored"], *, hidden: bool
    ) -> None:
        n, said, measure = entry.n, entry.content, entry.measure
        spoken = Spoken(id=n, order=n, content=said, kind=kind, hidden=hidden, measure=measure)
        self._list.append(spoken)

    def _apply_replied(self, entry: log.Replied) -> None:
        if not self._is_chosen:
            self.model = entry.model or self.model
        if entry.usage and entry.usage.prompt_tokens:
            self.answered = self.asked
        last = self.item_of(self._last_round)
        if isinstance(last, Round) and self._is_piece_of(last, entry):
            self._continue_round(last, entry)
        else:
            self._begin_round(entry)

    def _is_piece_of(self, last: Round, entry: log.Replied) -> bool:
        """Return whether an entry continues an answer: the same id, and no request in between."""
        is_same = entry.response_id == last.response_id and not self.has_asked_since(last)
        is_named = bool(entry.response_id) or (self.asked is not None and not last.stop_reason)
        return is_same and is_named and last.order != self._sealed

    def has_asked_since(self, item: Item) -> bool:
        return self.asked is not None and self.asked.n > item.order

    def _begin_round(self, entry: log.Replied) -> None:
        self._last_round, self._before_round = entry.n, self.total
        self._waiting, self._renamed = set(), {}
        self._note_reported_size(entry)
        begun = Round(
            id=entry.n,
            order=entry.n,
            response_id=entry.response_id,
            content=self._claim(entry, entry.n),
            model=entry.model,
            stop_reason=entry.stop_reason,
            usage=entry.usage,
            renamed=entry.renamed,
            answer_measure=entry.measure,
            drops_thinking=self._is_unbound(entry),
        )
        self._list.append(begun.without_thinking() if begun.drops_thinking else begun)

    def _is_unbound(self, entry: log.Replied) -> bool:
        return self.in_force.is_distrusted(entry.n) and capabilities(entry.model).binds_thinking

    def _continue_round(self, last: Round, entry: log.Replied) -> None:
        self._note_reported_size(entry)
        self._list.home[entry.n] = last.order
        grown = structs.replace(
            last,
            content=last.content + self._claim(entry, last.order),
            stop_reason=entry.stop_reason or last.stop_reason,
            usage=entry.usage or last.usage,
            renamed={**last.renamed, **entry.renamed},
            answer_measure=last.answer_measure + entry.measure,
        )
        self._list.replace(grown.without_thinking() if grown.hides_thinking("seen") else grown)

    def _note_reported_size(self, entry: log.Replied) -> None:
        usage = entry.usage
        if usage and usage.prompt_tokens and not self.in_force.is_distrusted(self._last_round):
            self.reported = ReportedSize(
                n=self._last_round,
                model=entry.model,
                usage=usage,
                then=self._before_round,
                is_framed=self.frame is not None,
            )

    def _claim(self, entry: log.Replied, order: int) -> Content:
        """Register an answer's tool uses. Drop repeated ids, which only imported logs have."""
        fresh = []
        for block in entry.content:
            if isinstance(block, ToolUse):
                if self.round_of(block.id) is not None or self._list.uses.get(block.id) == order:
                    continue
                self._list.uses[block.id], self._list.calls[block.id] = order, block
                self._waiting.add(block.id)
            fresh.append(block)
        for own, given in entry.renamed.items():
            self._renamed.setdefault(given, deque()).append(own)
        return tuple(fresh)

    def _apply_began(self, entry: log.Began) -> None:
        self._began.add(entry.tool_use_id)

    def _ran(self, entry: log.Ran) -> None:
        """Add a tool's result, as a separate message if its round was already sent without it."""
        owner = self.round_of(entry.tool_use_id)
        if owner is None:
            return
        self._began.discard(entry.tool_use_id)
        known = owner.result_of(entry.tool_use_id)
        if known is not None and known.content == entry.content:
            return
        # Sent messages must not change, because the provider has them cached.
        if known is not None or owner.order != self._last_round or owner.order == self._sealed:
            self._list.append(make_late(entry))
            return
        self._waiting.discard(entry.tool_use_id)
        self._list.home[entry.n] = owner.order
        self._list.replace(owner.with_result(Result.of(entry)))

    def _apply_spilled(self, entry: log.Spilled) -> None:
        message = self.item_of(entry.rests_on[0]) if entry.rests_on else None
        if isinstance(message, Spoken) and message.kind == "late":
            short = shorten_late(message, entry.text, entry.measure)
            self._drop_thinking(entry, self._list.replace(short))
            return
        shown = StandIn(
            text=entry.text, how="spilled", measure=entry.measure, same_as=entry.same_as
        )
        i = self._list.change_result(entry.tool_use_id, lambda result: result.spill(shown))
        self._drop_thinking(entry, i)

    def _apply_cleared(self, entry: log.Cleared) -> None:
        ignored = (
            self._list.measure_undeleted(entry.ids) if self._has_ignored_edits(entry) else NOTHING
        )
        before, first = self._list.measure, self._list.clear(entry)
        if entry.how == "edited":
            self.edits = (*self.edits, entry)
        elif entry.how == "server":  # the last reported prompt already lacked it
            self._correct_reported(self._list.measure - before)
        elif ignored != NOTHING:  # the last reported prompt still had it, the next will not
            self._correct_reported(ignored)
        touched = [first, *map(self._list.shorten_input, entry.inputs)]
        self._list.drop_thinking([self.item_of(n) for n in entry.thinking])
        self._drop_thinking(entry, min((i for i in touched if i is not None), default=None))

    def _has_ignored_edits(self, entry: log.Cleared) -> bool:
        report, edits = self.reported, self.edits if entry.how == "rewritten" else ()
        return bool(report and edits and edits[-1].n < report.n and not report.usage.deleted_tokens)

    def _correct_reported(self, more: Measure) -> None:
        self._before_round = self._before_round + more
        if self.reported is not None and self.reported.n == self._last_round:
            self.reported = structs.replace(self.reported, then=self._before_round)

    def _apply_snipped(self, entry: log.Snipped) -> None:
        first = self._list.remove(entry.targets, keep=self.open_round())
        self._drop_thinking(entry, first - 1 if first is not None else None)

    def _apply_collapsed(self, entry: log.Collapsed) -> None:
        self._stand_for_span(entry, (Text(text=entry.text),), "line")

    def _apply_compacted(self, entry: log.Compacted) -> None:
        self._stand_for_span(entry, entry.summary, "summary")

    def _stand_for_span(
        self,
        entry: log.Collapsed | log.Compacted,
        content: log.SpokenContent,
        kind: Literal["line", "summary"],
    ) -> None:
        """Replace a span with one item, except pinned items and all items from an open round on."""
        lo, hi = self._list.span(entry.first, entry.last)
        while lo < hi and self.is_pinned(self.items[lo]):
            lo += 1
        still_open = self.open_round()
        if still_open is not None:
            # A result that arrives for a replaced round would have no place.
            hi = min(hi, self._list.span(still_open.id, still_open.id)[0])
        if lo >= hi:
            return
        kept = [item for item in self.items[lo:hi] if self.is_pinned(item)]
        order = self._list.home[entry.n] = self.items[lo].order
        shown = Spoken(id=entry.n, order=order, content=content, kind=kind, measure=entry.measure)
        self._list.cover(lo, hi, [shown, *kept])
        self._drop_thinking(entry, lo)

    def _apply_pinned(self, entry: log.Pinned) -> None:
        orders = {item.order for n in entry.targets if (item := self.item_of(n))}
        self._pins = self._pins | orders if entry.on else self._pins - orders

    def _apply_framed(self, entry: log.Framed) -> None:
        self.frame = entry

    def _apply_switched(self, entry: log.Switched) -> None:
        self.model, self._is_chosen = entry.model, True

    def _apply_configured(self, entry: log.Configured) -> None:
        self.configured = entry

    def _apply_titled(self, entry: log.Titled) -> None:
        self.title = entry.title

    def _apply_asked(self, entry: log.Asked) -> None:
        self.asked = entry
        if entry.source == "main" and self.open_round():
            # The missing results were sent as interrupted, and changing them would change the
            # prefix.
            self._sealed = self._last_round

    def _drop_thinking(self, entry: log.ViewChange, changed: int | None) -> None:
        # Some models bind thinking to the exact prefix before it.
        if entry.drops_thinking and changed is not None:
            self._list.drop_thinking(self.items[changed + 1 :])


def fold(entries: Iterable[log.AnyEntry]) -> View:
    view = View()
    for view in fold_stepwise(entries):  # noqa: B007 - the last view is the result
        pass
    return view


def fold_stepwise(entries: Iterable[log.AnyEntry]) -> Iterator[View]:
    """Yield the view after each entry, without entries that are undone later."""
    history = list(entries)
    view = View(EntryList(history), find_in_force(history))
    for entry in history:
        # `apply` is not used, because it would fold everything again at each undo.
        view._take(entry)
        yield view


_ACTS: dict[type, Callable[[View, Any], None]] = {
    log.Said: View._apply_said,
    log.Replied: View._apply_replied,
    log.Began: View._apply_began,
    log.Ran: View._ran,
    log.Spilled: View._apply_spilled,
    log.Cleared: View._apply_cleared,
    log.Snipped: View._apply_snipped,
    log.Collapsed: View._apply_collapsed,
    log.Compacted: View._apply_compacted,
    log.Restored: View._apply_restored,
    log.Pinned: View._apply_pinned,
    log.Framed: View._apply_framed,
    log.Switched: View._apply_switched,
    log.Configured: View._apply_configured,
    log.Titled: View._apply_titled,
    log.Asked: View._apply_asked,
}
"""How each kind of entry changes a view. Other kinds do not change it."""
