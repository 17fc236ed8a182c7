"""Extraction: a fork reads new messages and writes down what is worth remembering.

The cursor is also in the store, so a process that died between commit and report repeats nothing. A
failure leaves the store and the cursor unchanged.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Self

from longhold.core.log.cursor import LogCursor
from longhold.core.log.entries import AnyEntry, Ran, Remembered, Replied, Said
from longhold.core.memory.branch import Branch
from longhold.core.memory.checkout import CheckoutStep, no_step
from longhold.core.memory.inbox import ConsentedMemories, KeptMemory, must_ask
from longhold.core.memory.index import IndexLine
from longhold.core.memory.memory import MemoryConflict, stamp
from longhold.core.memory.memory_tool import MemoryPlace, memory_call, memory_tool, usable_tools
from longhold.core.memory.provenance import Provenance
from longhold.core.memory.store import LISTED_MEMORIES, MemoryStore
from longhold.core.memory.waiting import retry_while_busy
from longhold.core.messages import ToolUse, Usage
from longhold.core.tools.describe import MEMORY
from longhold.core.turn.fork import AskFork, ForkRequest, Permit, Prefix
from longhold.errors import LongholdError

SOURCE = "memory"
TRIES = 2
"""A second try resolves a conflict with another process."""
ENOUGH = ("completed", "max_turns")
"""Ends of a fork after which every memory it wrote is complete."""
EXTRACT_TURNS = 5
"""Limit for the model's answers: one to read, one to write, and some to correct."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessages:
    cursor: int
    """The last message. The cursor moves here afterwards."""
    messages: int
    asked: int
    own: tuple[str, ...] = ()


@dataclass(slots=True)
class ExtractionCursor:
    place: MemoryPlace | None = None
    cursor: int = 0
    _position: LogCursor = field(default_factory=LogCursor)
    _messages: list[int] = field(default_factory=list)
    _asked: list[int] = field(default_factory=list)
    _own: list[tuple[int, str]] = field(default_factory=list)
    _open: dict[str, str] = field(default_factory=dict)

    def follow(self, history: Sequence[AnyEntry]) -> Self:
        for entry in self._position.advance(history):
            self._take(entry)
        return self

    def pass_over(self, cursor: int) -> None:
        self.cursor = max(self.cursor, cursor)
        self._messages = [n for n in self._messages if n > self.cursor]
        self._asked = [n for n in self._asked if n > self.cursor]
        self._own = [(n, name) for n, name in self._own if n > self.cursor]

    @property
    def last(self) -> int:
        return self._messages[-1] if self._messages else self.cursor

    def new_messages(self, upto: int) -> NewMessages | None:
        """Return the messages after the cursor; None if the user said nothing there."""
        asked = [n for n in self._asked if n <= upto]
        if not asked:
            return None
        return NewMessages(
            cursor=upto,
            messages=sum(n <= upto for n in self._messages),
            asked=asked[-1],
            own=tuple(dict.fromkeys(name for n, name in self._own if n <= upto)),
        )

    def _take(self, entry: AnyEntry) -> None:
        match entry:
            case Remembered(cursor=cursor):
                self.pass_over(cursor)
            case Said(n=n, hidden=hidden) if n > self.cursor:
                self._messages.append(n)
                if not hidden:
                    self._asked.append(n)
            case Replied(n=n, content=content) if n > self.cursor:
                self._messages.append(n)
                uses = [block for block in content if isinstance(block, ToolUse)]
                calls = {use.id: memory_call(use, self.place) for use in uses}
                changes = {id: call for id, call in calls.items() if call and call.is_change}
                self._open |= {id: call.name for id, call in changes.items()}
            case Ran(n=n, tool_use_id=id, is_error=is_error) if name := self._open.pop(id, ""):
                if not is_error:
                    self._own.append((n, name))
            case _:
                pass


class NotExtracted(LongholdError):
    """The extracting fork was not completed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    open: Callable[[], MemoryStore]
    session: str
    repository: Path
    ask: AskFork
    permit: Permit
    is_outside: Callable[[], bool]
    leave: Callable[[AnyEntry], object]
    tell: Callable[[str], None]
    can_look: bool = True
    """The fork may use the session's read-only tools."""
    step: CheckoutStep = no_step

    async def run(self, new: NewMessages, prefix: Prefix) -> None:
        store = self.open()
        reached = read_extracted_cursor(store, self.session)
        if reached >= new.cursor:  # an earlier process died before it could report
            self.leave(Remembered(cursor=reached))
            return
        for left in reversed(range(TRIES)):
            try:
                kept, usage = await self._extract(store, new, prefix)
                break
            except MemoryConflict:
                if not left:
                    raise
        self.step("kept")
        self.leave(
            Remembered(
                cursor=new.cursor,
                names=kept.names,
                commit=str(kept.commit or ""),
                inbox=kept.is_asked,
                usage=usage,
            )
        )
        self.step("reported")
        if kept.names:
            self.tell(line(kept))

    async def _extract(
        self, store: MemoryStore, new: NewMessages, prefix: Prefix
    ) -> tuple[KeptMemory, Usage]:
        branch = Branch(store)
        self.step("branched")
        reply = await self.ask(
            ForkRequest(
                say=_extract_prompt(
                    new,
                    store.listed(LISTED_MEMORIES),
                    usable_tools(prefix.frame.tools, can_look=self.can_look),
                ),
                source=SOURCE,
                turns=EXTRACT_TURNS,
                permit=self.permit,
                instead={MEMORY: memory_tool(branch, store.clock)},
                prefix=prefix,
            )
        )
        self.step("answered")
        if reply.reason not in ENOUGH:
            raise NotExtracted(f"no memories were extracted: the fork ended as {reply.reason}")
        changes = branch.changes()
        is_outside = self.is_outside()
        if must_ask(store.limits, is_outside=is_outside):  # only the user removes memories then
            changes = [change for change in changes if change.text is not None]
        origin = Provenance(session=self.session, message=new.asked, repository=self.repository)
        memories = ConsentedMemories(
            open=self.open,
            by="extraction",
            provenance=lambda: origin,
            is_outside=lambda: is_outside,
        )
        keep = partial(memories.keep, changes, why=_reason_for(self.session, new.cursor))
        return await retry_while_busy(keep), reply.usage


def _extract_prompt(new: NewMessages, known: Sequence[IndexLine], tools: str) -> str:
    manifest = "\n".join(
        f"- [{one.type}] /memories/{one.file} ({stamp(one.modified)}): {one.description}"
        for one in known
    )
    text = (files("longhold.core.memory") / "prompts" / "extract.md").read_text(encoding="utf-8")
    return Template(text).substitute(
        count=new.messages, manifest=manifest or "There are none yet.", tools=tools
    )


def line(kept: KeptMemory) -> str:
    named = ", ".join(kept.names)
    if kept.is_asked:
        return f"proposed memories: {named} (longhold memory inbox)"
    undo = f" (undo: longhold memory undo {kept.commit})" if kept.commit else ""
    return f"remembered: {named}{undo}"


def _reason_for(session: str, cursor: int) -> str:
    """Write the reason of a commit. `read_extracted_cursor` parses the cursor from it."""
    return f"learnt in {session} up to #{cursor}"


def read_extracted_cursor(store: MemoryStore, session: str) -> int:
    begin = _reason_for(session, 0)[:-1]
    rows = store.database.all(
        "SELECT why FROM commits WHERE by = 'extraction' AND substr(why, 1, ?) = ?"
        " UNION SELECT why FROM inbox WHERE session = ? AND substr(why, 1, ?) = ?",
        *(len(begin), begin, session, len(begin), begin),
    )
    cursors = (row[0].removeprefix(begin).partition(" ")[0] for row in rows)
    return max((int(number) for number in cursors if number.isdigit()), default=0)
