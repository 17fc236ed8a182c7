"""Follows a caller's list of messages. It recognises known messages and records new ones.

New messages are appended. Neighbouring messages of one role that were joined or split are still
recognised. If the caller cut, edited or compacted the list, the session is rewound to the last
unchanged message. The log keeps everything. Messages seen in this process are compared by value,
because that is much faster than hashing.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from itertools import groupby
from operator import ne
from typing import Literal, TypeAlias

from longhold.core.log.cursor import last_n
from longhold.core.log.entries import AnyEntry, Followed, Ran, Replied, Rewound, Said
from longhold.core.messages import Content, JsonObject, Text, ToolResult, ToolUse
from longhold.core.turn.engine import Engine
from longhold.core.turn.repair import is_repair
from longhold.core.view import View
from longhold.core.view.block_roles import to_answer
from longhold.core.view.items import Spoken
from longhold.errors import InvalidArgument
from longhold.session.arguments import to_plain_object
from longhold.session.dialects import Dialect, Heard

Reason: TypeAlias = Literal["shorter", "edited", "compacted", "replaced"]

WHY: dict[Reason, str] = {
    "shorter": "the program's list of messages is shorter than before",
    "edited": "the program changed earlier messages",
    "compacted": "the program compacted its own list of messages",
    "replaced": "the program began another list of messages",
}


class FollowedList:
    """The caller's list as last seen. The log stores a key for each message."""

    def __init__(self, history: Iterable[AnyEntry] = ()) -> None:
        self.keys: list[str] = []
        self.ends: list[int] = []  # the last entry that each message produced
        self._seen: list[object] = []
        """Copies of the leading messages that were seen in this process."""
        for entry in history:
            if isinstance(entry, Followed):
                self.take(entry)
            elif isinstance(entry, Rewound):
                self.rewind(entry)

    def take(self, entry: Followed) -> None:
        self.keys[entry.kept :] = entry.keys
        self.ends[entry.kept :] = entry.ends
        del self._seen[entry.kept :]

    def rewind(self, entry: Rewound) -> None:
        kept = bisect_right(self.ends, entry.after)
        self.take(Followed(kept=kept))

    def remember(self, messages: Sequence[object]) -> None:
        """Copy new messages, so that a later change in place is noticed."""
        self._seen.extend(map(copy_message, messages[len(self._seen) :]))

    def recognise(self, messages: Sequence[object], read: "_Reading", covered: int = 0) -> int:
        """Count the leading messages that are already known.

        A summary replaces the first `covered` messages. They are compared only if nothing after
        them is known, so a caller that shortens old messages does not undo a compaction.
        """
        end = min(len(messages), len(self.keys))
        if 0 < covered < end:
            found = self._find_first_other(messages, read, covered, end)
            if found > covered:
                return found
        return self._find_first_other(messages, read, 0, end)

    def _find_first_other(
        self, messages: Sequence[object], read: "_Reading", start: int, end: int
    ) -> int:
        seen = self._seen[start:end]
        given = messages[start : start + len(seen)]
        if given != seen:
            changed = [i for i, differs in enumerate(map(ne, given, seen), start) if differs]
            for i in changed:
                if read.heard(i).key != self.keys[i]:
                    return i
                self._seen[i] = copy_message(messages[i])
        for i in range(start + len(seen), end):
            if read.heard(i).key != self.keys[i]:
                return i
        return end

    def count_covered(self, view: View) -> int:
        """Count the leading messages that a summary replaces completely."""
        items = view.items
        first = items[0] if items else None
        if len(items) < 2 or not isinstance(first, Spoken) or first.kind != "summary":
            return 0
        return bisect_left(self.ends, items[1].order)


class _Reading:
    def __init__(self, messages: Sequence[object], dialect: Dialect, first: int) -> None:
        self._messages, self._dialect, self._first = messages, dialect, first
        self._heard: dict[int, Heard] = {}

    def heard(self, i: int) -> Heard:
        if i not in self._heard:
            where = f"messages[{self._first + i}]"
            self._heard[i] = self._dialect.hear(to_plain_object(self._messages[i], where), where)
        return self._heard[i]

    def __len__(self) -> int:
        return len(self._messages)

    def find_call(self, id: str, before: int) -> int:
        """Return the message that makes a call. Raise if none before a result does."""
        for i in range(before - 1, -1, -1):
            blocks = self.heard(i).content
            if any(isinstance(block, ToolUse) and block.id == id for block in blocks):
                return i
        raise InvalidArgument(
            f"messages[{self._first + before}]",
            f"a result answers the call {id!r}, but no earlier call has that id",
        )

    def hear_from(self, i: int) -> list[Heard]:
        return [self.heard(place) for place in range(i, len(self._messages))]


class Following:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.known = FollowedList(engine.view.history)

    def take(self, messages: Sequence[object], dialect: Dialect, *, first: int = 0) -> None:
        """Record a whole list after checking it. `first` counts the system messages before it."""
        read = _Reading(messages, dialect, first)
        kept, more = self._count_known(messages, read), None
        if kept < len(self.known.keys):
            kept, more = self._regroup(read, kept)
        is_longer = more is not None or kept == len(self.known.keys)
        cut = self._find_cut(read, kept, more, is_whole=is_longer)
        heard = fresh = read.hear_from(cut)
        if cut < kept or not is_longer:
            reason = _reason(self.known.keys, kept, [one.key for one in read.hear_from(kept)])
            self._record_rewind(self.known.ends[cut - 1] if cut else 0, reason)
        elif more is not None:
            heard = [more, *fresh[1:]]
        ends = self._append_messages(heard)
        if fresh:
            self._record_known(cut, [one.key for one in fresh], ends)
        self.known.remember(messages)

    def _record_known(self, kept: int, keys: Sequence[str], ends: Sequence[int]) -> None:
        entry = Followed(kept=kept, keys=tuple(keys), ends=tuple(ends))
        self._engine.record(entry)
        self.known.take(entry)

    def recognise(self, messages: Sequence[object], dialect: Dialect, *, first: int = 0) -> int:
        return self._count_known(messages, _Reading(messages, dialect, first))

    def _count_known(self, messages: Sequence[object], read: "_Reading") -> int:
        return self.known.recognise(messages, read, self.known.count_covered(self._engine.view))

    def _regroup(self, read: "_Reading", kept: int) -> tuple[int, Heard | None]:
        """Recognise neighbouring messages that the caller joined or split.

        Return the number of known messages, and the new part of a message that continues the last
        known one.
        """
        known, grouped, place = self.known, list[tuple[str, int]](), kept
        more: Heard | None = None
        while place < len(known.keys) and kept + len(grouped) < len(read):
            i = kept + len(grouped)
            count, rest = _count_joined(read.heard(i), known.keys[place:])
            if count and not rest.content:
                grouped.append((read.heard(i).key, known.ends[place + count - 1]))
            elif count and place + count == len(known.keys):
                more = rest
                break
            elif count := _count_pieces(read, i, known.keys[place]):
                pieces = range(i, i + count)
                grouped += [(read.heard(piece).key, known.ends[place]) for piece in pieces]
                count = 1
            else:
                break
            place += count
        keys, ends = [key for key, _ in grouped], [end for _, end in grouped]
        if keys != known.keys[kept:place]:
            self._record_known(kept, keys + known.keys[place:], ends + known.ends[place:])
        return kept + len(grouped), more

    def _find_cut(self, read: "_Reading", kept: int, more: Heard | None, *, is_whole: bool) -> int:
        """Find the last known message at which the conversation can be cut. Every later result must
        have its call in the view or in a later message.
        """
        view, known = self._engine.view, self.known
        while True:
            while not is_whole and kept:
                if _is_whole_after(view.history, known.ends[kept - 1], view.in_force.dead):
                    break
                kept -= 1
            lone = self._find_lone_result(read, kept, more, is_whole=is_whole)
            if lone is None:
                return kept
            kept, more, is_whole = read.find_call(*lone), None, False

    def _find_lone_result(
        self, read: "_Reading", kept: int, more: Heard | None, *, is_whole: bool
    ) -> tuple[str, int] | None:
        view, calls = self._engine.view, set[str]()
        for i, one in enumerate(read.hear_from(kept), kept):
            said = more if more is not None and i == kept else one
            calls.update(block.id for block in said.content if isinstance(block, ToolUse))
            for id in (result.tool_use_id for result in said.results):
                if id not in calls and (not is_whole or view.find_call(id) is None):
                    return id, i
        return None

    def _record_rewind(self, after: int, reason: Reason) -> None:
        entry = Rewound(after=after, reason=reason, why=WHY[reason])
        self._engine.record(entry)
        self.known.rewind(entry)

    def _append_messages(self, heard: Sequence[Heard]) -> list[int]:
        """Append messages after the known ones. Return the last entry of each.

        An answer or a result may already be in the log when it appears in the list. It is then
        recognised. If the list lacks such an entry, the caller discarded it.
        """
        view = self._engine.view
        last = self.known.ends[-1] if self.known.ends else 0
        brought = {result.tool_use_id for one in heard for result in one.results}
        waiting = [
            entry
            for entry in _list_pending(view.history, last, view.in_force.dead)
            # Placeholders for results are not in the caller's list.
            if not isinstance(entry, Ran)
            or not is_repair(entry)
            or self._given_id(entry.tool_use_id) in brought
        ]
        ends: list[int] = []
        for run in _runs(heard):
            found = _match_waiting(run, waiting, self._given_id) if waiting else None
            if found is None:
                break
            last, waiting = found
            ends += [last] * len(run)
        rest = heard[len(ends) :]
        if waiting:
            self._record_rewind(last, "edited" if rest else "shorter")
        return [*ends, *self._append(rest)]

    def _given_id(self, id: str) -> str:
        owner = self._engine.view.round_of(id)
        return owner.renamed.get(id, id) if owner is not None else id

    def _append(self, heard: Sequence[Heard]) -> Iterator[int]:
        engine = self._engine
        for run in _runs(heard):
            name = f"followed-{len(engine.view.history) + 1}"
            for one in run:
                if one.role == "assistant":
                    self._answer(one.content, name)
                else:
                    for result in one.results:
                        engine.take_result(
                            result.tool_use_id, result.content, is_error=result.is_error
                        )
                    if one.rest:
                        engine.say(one.rest, hidden=one.role == "system")
                yield last_n(engine.view.history)

    def _answer(self, content: Content, name: str) -> None:
        calls = any(isinstance(block, ToolUse) for block in content)
        self._engine.take(
            Replied(
                response_id=name,
                content=to_answer(content),
                stop_reason="tool_use" if calls else "end_turn",
            )
        )


def copy_message(message: object) -> object:
    if type(message) is dict:
        return {key: copy_message(value) for key, value in message.items()}
    if type(message) is list:
        return [copy_message(value) for value in message]
    return message if isinstance(message, str | int | float | None) else deepcopy(message)


def _runs(heard: Sequence[Heard]) -> Iterator[list[Heard]]:
    for is_answer, group in groupby(heard, lambda one: one.role == "assistant"):
        if is_answer:
            yield list(group)
        else:
            yield from ([one] for one in group)


def _count_joined(one: Heard, keys: Sequence[str]) -> tuple[int, Heard]:
    count, start = 0, 0
    while count < len(keys):
        ends = range(start + 1, len(one.content) + 1)
        found = (i for i in ends if Heard(one.role, one.content[start:i]).key == keys[count])
        end = next(found, 0)
        if not end:
            break
        count, start = count + 1, end
    left = Heard(one.role, one.content[start:])
    return count, left if left.results or left.rest else Heard(one.role, ())


def _count_pieces(read: _Reading, first: int, key: str) -> int:
    role, content = read.heard(first).role, read.heard(first).content
    for i in range(first + 1, len(read)):
        if read.heard(i).role != role:
            break
        content += read.heard(i).content
        if Heard(role, content).key == key:
            return i + 1 - first
    return 0


def _reason(known: Sequence[str], kept: int, new: Sequence[str]) -> Reason:
    if not new:
        return "shorter"
    if len(new) < len(known) - kept and not set(known[-2:]).isdisjoint(new):
        return "compacted"
    return "edited" if kept else "replaced"


Given: TypeAlias = Said | Replied | Ran


def _list_pending(history: Sequence[AnyEntry], after: int, dead: frozenset[int]) -> Iterator[Given]:
    start = len(history)
    while start and history[start - 1].n > after:
        start -= 1
    for entry in history[start:]:
        if entry.n in dead or (isinstance(entry, Said) and entry.hidden):
            continue
        if isinstance(entry, Said | Replied | Ran):
            yield entry


def _match_waiting(
    run: Sequence[Heard], waiting: Sequence[Given], given_id: Callable[[str], str] = str
) -> tuple[int, list[Given]] | None:
    """Match a message or an answer's pieces. Return the last matching entry and the rest."""
    if run[0].role == "assistant":
        return _matched_answer([block for one in run for block in one.content], waiting, given_id)
    [one] = run
    left, last = list(waiting), 0
    for result in one.results:
        place = next(
            (i for i, entry in enumerate(left) if _is_result(entry, result, given_id)), None
        )
        if place is None:
            return None
        last = max(last, left.pop(place).n)
    if one.rest:
        if not left or not _is_said(left[0], one):
            return None
        last = max(last, left.pop(0).n)
    return (last, left) if last else None


def _matched_answer(
    content: Sequence[object], waiting: Sequence[Given], given_id: Callable[[str], str]
) -> tuple[int, list[Given]] | None:
    first = waiting[0]
    if not isinstance(first, Replied):
        return None
    count = 1
    while count < len(waiting):
        piece = waiting[count]
        if not isinstance(piece, Replied) or piece.response_id != first.response_id:
            break
        count += 1
    pieces = waiting[:count]
    ours = [block for piece in pieces if isinstance(piece, Replied) for block in piece.content]
    if _essence(ours, given_id) != _essence(content, str):
        return None
    return pieces[-1].n, list(waiting[count:])


def _essence(
    content: Iterable[object], given_id: Callable[[str], str]
) -> tuple[str, list[tuple[str, str, JsonObject]]]:
    blocks = list(content)
    words = "".join(block.text for block in blocks if isinstance(block, Text))
    calls = [
        (given_id(block.id), block.name, block.input)
        for block in blocks
        if isinstance(block, ToolUse)
    ]
    return "".join(words.split()), calls


def _is_result(entry: Given, result: ToolResult, given_id: Callable[[str], str]) -> bool:
    if not isinstance(entry, Ran) or result.tool_use_id != given_id(entry.tool_use_id):
        return False
    recorded = ToolResult(tool_use_id=entry.tool_use_id, content=entry.content)
    given = ToolResult(tool_use_id=entry.tool_use_id, content=result.content)
    return bool(entry.file) or Heard("user", (recorded,)).key == Heard("user", (given,)).key


def _is_said(entry: Given, one: Heard) -> bool:
    return (
        isinstance(entry, Said)
        and Heard(one.role, entry.content).key == Heard(one.role, one.rest).key
    )


def _is_whole_after(history: Sequence[AnyEntry], n: int, dead: frozenset[int]) -> bool:
    ran, calls, answer = set[str](), set[str](), ""
    for i in range(bisect_right(history, n, key=lambda entry: entry.n) - 1, -1, -1):
        entry = history[i]
        if entry.n in dead:
            continue
        match entry:
            case Ran(tool_use_id=id) if not answer:
                ran.add(id)
            case Replied(response_id=name, content=content) if answer in ("", name):
                answer = name
                calls.update(block.id for block in content if isinstance(block, ToolUse))
            case Said(hidden=False) | Replied():
                break
    return calls <= ran
