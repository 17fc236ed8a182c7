"""Extraction: what a stretch of conversation taught is written down, beside the conversation.

A stretch comes in; a fork of the conversation looks through it and changes memories on a branch,
which becomes one commit or waits in the inbox; a report goes out, for the log, and a line for the
user. What was done for a session is told by the store itself, so that a process that died between
the commit and its report does nothing twice. Whatever fails leaves store and cursor as they were.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TypeAlias

from holdfast.errors import HoldfastError
from holdfast.log.entries import AnyEntry, Remembered
from holdfast.memory.branch import Branch
from holdfast.memory.checkout import CheckoutStep
from holdfast.memory.consent import KeptMemory, keep
from holdfast.memory.extraction_cursor import Stretch
from holdfast.memory.inbox import must_ask
from holdfast.memory.index import IndexLine
from holdfast.memory.memory import stamp
from holdfast.memory.permit import MEMORY
from holdfast.memory.provenance import Seal
from holdfast.memory.refusals import MemoryConflict
from holdfast.memory.store import MemoryStore
from holdfast.memory.tool import memory_tool
from holdfast.messages import Usage
from holdfast.turn.fork import AskFork, ForkRequest, Permit, Prefix

SOURCE = "memory"
TRIES = 2
"""Somebody else may change the same memory meanwhile; looked at anew, that is settled."""
ENOUGH = ("completed", "max_turns")
"""Ends of a fork after which what it wrote is whole: each memory by itself."""

Leave: TypeAlias = Callable[[AnyEntry], object]
"""Brings a report to the session's log."""


class NotExtracted(HoldfastError):
    """The fork that looked for memories did not come to its end."""


def _go_on(_point: str) -> None:
    """Do nothing at a point where a test might end the process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """Looks through one session for what is worth remembering."""

    open: Callable[[], MemoryStore]
    session: str
    repository: Path
    ask: AskFork
    permit: Permit
    is_outside: Callable[[], bool]
    leave: Leave
    tell: Callable[[str], None]
    step: CheckoutStep = _go_on

    async def run(self, stretch: Stretch, prefix: Prefix) -> None:
        """Look through a stretch, and move the cursor if that succeeds."""
        store = self.open()
        reached = extracted_up_to(store, self.session)
        if reached >= stretch.cursor:  # a process before this one died before it could say so
            self.leave(Remembered(cursor=reached))
            return
        for left in reversed(range(TRIES)):
            try:
                kept, usage = await self._looked_through(store, stretch, prefix)
                break
            except MemoryConflict:
                if not left:
                    raise
        self.step("kept")
        self.leave(
            Remembered(
                cursor=stretch.cursor,
                names=kept.names,
                commit=str(kept.commit or ""),
                inbox=kept.is_asked,
                usage=usage,
            )
        )
        self.step("told")
        if kept.names:
            self.tell(line(kept))

    async def _looked_through(
        self, store: MemoryStore, stretch: Stretch, prefix: Prefix
    ) -> tuple[KeptMemory, Usage]:
        """Let a fork change memories on a branch, and keep what it changed."""
        branch = Branch(store)
        self.step("branched")
        reply = await self.ask(
            ForkRequest(
                say=words(stretch, store.listed(store.limits.recall_candidates)),
                source=SOURCE,
                turns=store.limits.extract_turns,
                permit=self.permit,
                instead={MEMORY: memory_tool(branch, store.clock)},
                prefix=prefix,
            )
        )
        self.step("answered")
        if reply.reason not in ENOUGH:
            raise NotExtracted(f"no memories were taken: the fork ended as {reply.reason}")
        changes = branch.changes()
        is_outside = self.is_outside()
        if must_ask(store.limits, is_outside=is_outside):  # what is removed is the user's to say
            changes = [change for change in changes if change.text is not None]
        kept = keep(
            store,
            changes,
            by="extraction",
            why=reason_for(self.session, stretch.cursor),
            seal=Seal(session=self.session, message=stretch.asked, repository=self.repository),
            is_outside=is_outside,
        )
        return kept, reply.usage


def words(stretch: Stretch, known: Sequence[IndexLine]) -> str:
    """Write what the fork is asked."""
    manifest = "\n".join(
        f"- [{one.type}] /memories/{one.file} ({stamp(one.modified)}): {one.description}"
        for one in known
    )
    text = (files("holdfast.memory") / "prompts" / "extract.md").read_text(encoding="utf-8")
    return Template(text).substitute(
        count=stretch.messages, manifest=manifest or "There are none yet."
    )


def line(kept: KeptMemory) -> str:
    """Tell the user in one line."""
    named = ", ".join(kept.names)
    if kept.is_asked:
        return f"to be remembered if you agree: {named} (holdfast memory inbox)"
    undo = f" (take it back: holdfast memory undo {kept.commit})" if kept.commit else ""
    return f"remembered: {named}{undo}"


def reason_for(session: str, cursor: int) -> str:
    """Say why a commit was made, so that it tells how far a session was looked through."""
    return f"learnt in {session} up to #{cursor}"


def extracted_up_to(store: MemoryStore, session: str) -> int:
    """Say up to which message a session was looked through, as the store knows it."""
    begin = reason_for(session, 0)[:-1]
    rows = store.database.all(
        "SELECT why FROM commits WHERE by = 'extraction' AND substr(why, 1, ?) = ?"
        " UNION SELECT why FROM inbox WHERE session = ? AND substr(why, 1, ?) = ?",
        *(len(begin), begin, session, len(begin), begin),
    )
    told = (row[0].removeprefix(begin).partition(" ")[0] for row in rows)
    return max((int(number) for number in told if number.isdigit()), default=0)
