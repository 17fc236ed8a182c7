"""A second implementation of the fold, as simple as possible.

Written from the documentation of the entries, not from the view's code. It walks a list of entries
in force from the start for every question and keeps no state. Where this and the view differ, one
of them is wrong.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from longhold.core.log.entries import (
    AnyEntry,
    Asked,
    Began,
    Cleared,
    Collapsed,
    Compacted,
    Framed,
    Pinned,
    Ran,
    Redone,
    Replied,
    Restored,
    Said,
    Snipped,
    Spilled,
    Switched,
    Titled,
    Undone,
    ViewChange,
)
from longhold.core.messages import (
    Block,
    Message,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Usage,
)
from longhold.core.messages.measure import NOTHING, Measure, measure_content
from longhold.core.models.capabilities import capabilities
from longhold.core.view.items import CLEARED_RESULT, EMPTY_RESULT, NO_RESULT, OPENING


@dataclass(eq=False)
class Given:
    """A result and what was put in its place."""

    entry: Ran
    spilled: tuple[str, Measure] | None = None
    cleared: tuple[str, Measure, str] | None = None

    def instead(self, projection: str) -> tuple[str, Measure] | None:
        if self.cleared and (projection == "seen" or self.cleared[2] == "rewritten"):
            return self.cleared[:2]
        return self.spilled


@dataclass(eq=False)
class Thing:
    """Something in force: spoken, or an answer with its results."""

    kind: str
    shows: set[int]
    """The entries it shows."""
    order: int
    content: list[Block]
    measure: Measure
    response: str = ""
    given: dict[str, Given] = field(default_factory=dict)
    thoughtless: bool = False
    """Its thinking is not sent any more."""
    past: bool = False
    """Its thinking is sent, but this model no longer reads it."""
    sealed: bool = False
    stop: str = ""
    pinned: bool = False
    hidden: bool = False

    def missing(self) -> list[str]:
        uses = [block.id for block in self.content if isinstance(block, ToolUse)]
        return [id for id in uses if id not in self.given]


@dataclass
class Naive:
    """What the naive fold comes to."""

    things: list[Thing] = field(default_factory=list)
    frame: Framed | None = None
    model: str = ""
    switched: bool = False
    title: str = ""
    newest: Thing | None = None
    """The round begun last."""
    asked: int = 0
    weight_before: Measure = NOTHING
    reported: tuple[int, Usage, Measure] | None = None
    began: set[str] = field(default_factory=set)

    def showing(self, n: int) -> Thing | None:
        return next((thing for thing in self.things if n in thing.shows), None)

    def caller(self, tool_use_id: str) -> Thing | None:
        for thing in self.things:
            if any(isinstance(b, ToolUse) and b.id == tool_use_id for b in thing.content):
                return thing
        return None

    def open(self) -> Thing | None:
        newest = self.newest
        return newest if newest in self.things and newest and newest.missing() else None

    def total(self) -> Measure:
        total = self.frame.measure if self.frame else NOTHING
        for thing in self.things:
            total = total + thing.measure
            for given in thing.given.values():
                instead = given.instead("seen")
                total = total + (instead[1] if instead else given.entry.measure)
        return total


def naive_fold(entries: Sequence[AnyEntry]) -> Naive:
    """Fold entries one after the other, those not in force left out."""
    state = Naive()
    dead = not_in_force(entries)
    for entry in entries:
        if entry.n not in dead:
            take(state, entry, entries)
    return state


def not_in_force(entries: Sequence[AnyEntry]) -> set[int]:
    """Find what was undone, then again and again what rests on it."""
    dead = set()
    for entry in entries:
        if isinstance(entry, Undone) and is_shaping(entries, entry.target, before=entry.n):
            dead.add(entry.target)
        if isinstance(entry, Redone):
            dead.discard(entry.target)
    while True:
        resting = {
            entry.n
            for entry in entries
            if isinstance(entry, ViewChange)
            and any(n in dead and n < entry.n for n in rests_on(entry))
        }
        if resting <= dead:
            return dead
        dead |= resting


def is_shaping(entries: Sequence[AnyEntry], n: int, *, before: int) -> bool:
    return any(isinstance(entry, ViewChange) and entry.n == n < before for entry in entries)


def rests_on(entry: ViewChange) -> list[int]:
    named = list(entry.rests_on)
    if isinstance(entry, Snipped | Pinned):
        named += entry.targets
    if isinstance(entry, Collapsed | Compacted):
        named += [entry.first, entry.last]
    if isinstance(entry, Restored):
        named.append(entry.compaction)
    return named


def was_undone_around(entries: Sequence[AnyEntry], n: int) -> bool:
    """Say whether an entry before `n` was undone or redone after it."""
    return any(
        isinstance(entry, Undone | Redone)
        and entry.target < n < entry.n
        and is_shaping(entries, entry.target, before=entry.n)
        for entry in entries
    )


def take(state: Naive, entry: AnyEntry, entries: Sequence[AnyEntry]) -> None:  # noqa: C901
    match entry:
        case Said(content=content, hidden=hidden):
            if not hidden and not capabilities(state.model).keeps_thinking:
                for thing in state.things:
                    if thing.kind == "round":
                        thing.past = True
                        lighten(thing)
            state.things.append(
                Thing("said", {entry.n}, entry.n, list(content), entry.measure, hidden=hidden)
            )
        case Restored(content=content):
            state.things.append(
                Thing("restored", {entry.n}, entry.n, list(content), entry.measure, hidden=True)
            )
        case Replied():
            answer(state, entry, entries)
        case Began(tool_use_id=id):
            state.began.add(id)
        case Ran():
            result(state, entry)
        case Spilled(tool_use_id=id, text=text, measure=measure):
            told = state.showing(entry.rests_on[0]) if entry.rests_on else None
            if told and told.kind == "late":
                lead, *body = told.content
                stays = [block for block in body if not isinstance(block, Text)]
                told.content = [lead, Text(text=text if text.strip() else CLEARED_RESULT), *stays]
                told.measure = measure
                forget_thinking(state, entry, state.things.index(told) + 1)
                return
            owner = state.caller(id)
            if owner and id in owner.given:
                owner.given[id].spilled = (text, measure)
                forget_thinking(state, entry, state.things.index(owner) + 1)
        case Cleared():
            clear(state, entry)
        case Snipped(targets=targets):
            snip(state, entry, targets)
        case Collapsed(text=text):
            stand_in(state, entry, "line", [Text(text=text)])
        case Compacted(summary=summary):
            stand_in(state, entry, "summary", list(summary))
        case Pinned(targets=targets, on=on):
            for n in targets:
                if (thing := state.showing(n)) is not None:
                    thing.pinned = on
        case Framed():
            state.frame = entry
        case Switched(model=model):
            state.model = model
            state.switched = True
        case Titled(title=title):
            state.title = title
        case Asked():
            state.asked = entry.n
            if (waiting := state.open()) is not None:
                waiting.sealed = True


def answer(state: Naive, entry: Replied, entries: Sequence[AnyEntry]) -> None:
    if entry.model and not state.switched:
        state.model = entry.model
    last = state.newest
    goes_on = (
        last in state.things
        and last is not None
        and last.response == entry.response_id
        and state.asked <= last.order
        and (entry.response_id != "" or (state.asked > 0 and not last.stop))
        and not last.sealed
    )
    if not goes_on:
        state.weight_before = state.total()
        last = Thing("round", set(), entry.n, [], NOTHING, response=entry.response_id)
        is_bound = capabilities(entry.model).binds_thinking
        last.thoughtless = is_bound and was_undone_around(entries, entry.n)
        state.things.append(last)
        state.newest = last
    assert last is not None
    is_reported = entry.usage is not None and entry.usage.prompt_tokens > 0
    if is_reported and not was_undone_around(entries, last.order):
        state.reported = (last.order, entry.usage, state.weight_before)
    last.shows.add(entry.n)
    last.stop = entry.stop_reason or last.stop
    for block in entry.content:
        if not (isinstance(block, ToolUse) and state.caller(block.id)):
            last.content.append(block)
    last.measure += entry.measure
    if last.thoughtless or last.past:
        lighten(last)


def result(state: Naive, entry: Ran) -> None:
    owner = state.caller(entry.tool_use_id)
    if owner is None:
        return
    state.began.discard(entry.tool_use_id)
    known = owner.given.get(entry.tool_use_id)
    if known and known.entry.content == entry.content:
        return
    if known or owner is not state.newest or owner.sealed:
        lead = Text(text=f"A result came late for tool use {entry.tool_use_id}:")
        body = [Text(text=entry.content)] if isinstance(entry.content, str) else entry.content
        state.things.append(
            Thing("late", {entry.n}, entry.n, [lead, *body], entry.measure, hidden=True)
        )
    else:
        owner.given[entry.tool_use_id] = Given(entry)
        owner.shows.add(entry.n)


def clear(state: Naive, entry: Cleared) -> None:
    measures = entry.measures or (NOTHING,) * len(entry.ids)
    changed, before = [], state.total()
    for id, text, measure in zip(entry.ids, entry.texts, measures, strict=False):
        owner = state.caller(id)
        if owner is None or id not in owner.given:
            continue
        given = owner.given[id]
        if not (given.cleared and given.cleared[2] == "rewritten" and entry.how != "rewritten"):
            given.cleared = (text, measure, entry.how)
        changed.append(state.things.index(owner))
    if entry.how == "server":
        state.weight_before = state.weight_before + (state.total() - before)
        if state.reported and state.newest and state.reported[0] == state.newest.order:
            state.reported = (*state.reported[:2], state.weight_before)
    if changed:
        forget_thinking(state, entry, min(changed) + 1)


def snip(state: Naive, entry: Snipped, targets: Iterable[int]) -> None:
    doomed = [state.showing(n) for n in targets]
    gone = [thing for thing in doomed if thing is not None and thing is not state.open()]
    if gone:
        first = min(state.things.index(thing) for thing in gone)
        state.things = [thing for thing in state.things if thing not in gone]
        forget_thinking(state, entry, first)


def stand_in(state: Naive, entry: Collapsed | Compacted, kind: str, content: list[Block]) -> None:
    """Put one thing where a span was; what is pinned stays, and an open round and all after it."""
    first, last = (place(state, n) for n in (entry.first, entry.last))
    span = [thing for thing in state.things if first <= thing.order <= last]
    while span and span[0].pinned:
        span.pop(0)
    waiting = state.open()
    span = [thing for thing in span if waiting is None or thing.order < waiting.order]
    if not span:
        return
    at = state.things.index(span[0])
    covered = [thing for thing in span if not thing.pinned]
    new = Thing(kind, {entry.n}, span[0].order, content, entry.measure)
    state.things = [thing for thing in state.things if thing not in covered]
    state.things.insert(at, new)
    forget_thinking(state, entry, at + 1)


def place(state: Naive, n: int) -> int:
    """Where an entry stands: with the thing that shows it, or else by its own number."""
    thing = state.showing(n)
    return thing.order if thing else n


def forget_thinking(state: Naive, entry: ViewChange, first: int) -> None:
    if entry.drops_thinking:
        for thing in state.things[first:]:
            if thing.kind == "round":
                thing.thoughtless = True
                lighten(thing)


def lighten(thing: Thing) -> None:
    """Weigh a round without its thinking, if it has any."""
    spoken = [block for block in thing.content if not is_thought(block)]
    if len(spoken) < len(thing.content):
        thing.measure = measure_content(spoken)


def is_thought(block: Block) -> bool:
    return isinstance(block, Thinking | RedactedThinking)


def is_blank(block: Block) -> bool:
    return isinstance(block, Text) and block.text.strip() == ""


def naive_messages(state: Naive, projection: str) -> list[Message]:
    """Write the things down, then join neighbours of one role."""
    parts: list[tuple[str, list[Block]]] = []
    for thing in state.things:
        visible = [block for block in thing.content if not is_blank(block)]
        if thing.kind != "round":
            parts.append(("user", visible))
            continue
        if thing.thoughtless or (thing.past and projection == "seen"):
            visible = [block for block in visible if not is_thought(block)]
        while visible and is_thought(visible[-1]):
            visible.pop()
        parts.append(("assistant", visible))
        uses = [block for block in visible if isinstance(block, ToolUse)]
        parts.append(("user", [result_block(thing, use, projection) for use in uses]))
    return joined([(role, content) for role, content in parts if content])


def joined(parts: list[tuple[str, list[Block]]]) -> list[Message]:
    if parts and parts[0][0] == "assistant":
        parts = [("user", [Text(text=OPENING)]), *parts]
    messages: list[tuple[str, list[Block]]] = []
    for role, content in parts:
        if messages and messages[-1][0] == role:
            messages[-1] = (role, messages[-1][1] + content)
        else:
            messages.append((role, content))
    return [Message(role, tuple(content)) for role, content in messages]


def result_block(thing: Thing, use: ToolUse, projection: str) -> ToolResult:
    given = thing.given.get(use.id)
    if given is None:
        return ToolResult(tool_use_id=use.id, content=NO_RESULT, is_error=True)
    instead = given.instead(projection)
    content = given.entry.content
    nothing = EMPTY_RESULT.format(tool=use.name)
    if instead:
        stays = [] if isinstance(content, str) or instead is not given.spilled else content
        stays = [block for block in stays if not isinstance(block, Text)]
        content = instead[0] if instead[0].strip() else CLEARED_RESULT
        content = (Text(text=content), *stays) if stays else content
    elif isinstance(content, str):
        content = content if content.strip() else nothing
    else:
        content = tuple(block for block in content if not is_blank(block)) or nothing
    return ToolResult(
        tool_use_id=use.id,
        content=content,
        is_error=given.entry.is_error,
        extra=given.entry.extra,
    )
