"""The inbox: memories that wait for the user's consent.

Proposals come in from background work and leave as commits when accepted; what is declined
stays known, so that it is not proposed again. Everything goes here when the user wants to be
asked, and always what a session wrote down after it took in text from outside: somebody else
may have put it there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from holdfast.memory.commits import Commit, CommitAuthor, MemoryChange, diff
from holdfast.memory.files import sha
from holdfast.memory.memory import parse
from holdfast.memory.refusals import NoSuchMemory
from holdfast.memory.store import MemoryStore, refuse_secret
from holdfast.settings import MemorySettings

ProposalState: TypeAlias = Literal["waiting", "accepted", "declined", "replaced"]
Essence: TypeAlias = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One memory that waits, as it would be written."""

    id: int
    at: float
    by: CommitAuthor
    why: str
    file: str
    text: str
    before: str
    """The version it was made from; '' is none."""
    session: str
    is_outside: bool
    """The session had taken in text from outside."""
    state: ProposalState


def must_ask(limits: MemorySettings, *, is_outside: bool) -> bool:
    """Tell whether a new memory goes to the inbox first."""
    return is_outside or limits.consent == "ask"


class Inbox:
    """What waits for consent in one store."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._sql = store.database

    def propose(
        self,
        changes: Sequence[MemoryChange],
        *,
        by: CommitAuthor,
        why: str,
        session: str = "",
        is_outside: bool = False,
    ) -> list[Proposal]:
        """Put changes before the user; what was declined or waits already is left out.

        A new proposal for a file takes the place of the one that waits for it.
        """
        ids: list[int] = []
        for change in changes:
            self._store.check(change)
        refuse_secret("the reason given for this", why)
        with self._sql.writing():
            for change in changes:
                if change.text is None or self._is_known(change.file, change.text):
                    continue
                self._sql.all(
                    "UPDATE inbox SET state = 'replaced' WHERE file = ? AND state = 'waiting'",
                    change.file,
                )
                id = self._sql.insert(
                    "INSERT INTO inbox (at, by, why, file, text, before, session, is_outside, state)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'waiting')",
                    *(self._store.clock(), by, why, change.file, change.text, change.expected),
                    *(session, is_outside),
                )
                ids.append(id)
        return [self.find(id) for id in ids]

    def waiting(self) -> list[Proposal]:
        """Give what waits, the oldest first."""
        rows = self._sql.all("SELECT id FROM inbox WHERE state = 'waiting' ORDER BY id")
        return [self.find(row[0]) for row in rows]

    def find(self, id: int) -> Proposal:
        """Give one proposal by its number."""
        rows = self._sql.all(
            "SELECT id, at, by, why, file, text, before, session, is_outside, state"
            " FROM inbox WHERE id = ?",
            id,
        )
        if not rows:
            raise NoSuchMemory(f"nothing in the inbox has the number {id}")
        names = ("id", "at", "by", "why", "file", "text", "before", "session")
        found = dict(zip((*names, "is_outside", "state"), rows[0], strict=True))
        return Proposal(**found | {"is_outside": bool(found["is_outside"])})

    def diff(self, proposal: Proposal) -> str:
        """Show what accepting would change."""
        before = self._store.history.text(self._store.version(proposal.file))
        return diff(proposal.file, before, proposal.text)

    def accept(self, id: int) -> Commit | None:
        """Write a proposal; one made from an older version of its memory is a conflict."""
        proposal = self._waiting(id)
        change = MemoryChange(file=proposal.file, text=proposal.text, expected=proposal.before)
        done = self._store.commit([change], by=proposal.by, why=f"{proposal.why} (accepted)")
        self._settle(id, "accepted")
        return done

    def decline(self, id: int) -> None:
        """Turn a proposal down; the same is not proposed again, whenever and wherever it is said."""
        self._waiting(id)
        self._settle(id, "declined")

    def _waiting(self, id: int) -> Proposal:
        proposal = self.find(id)
        if proposal.state != "waiting":
            raise NoSuchMemory(f"number {id} was {proposal.state} before; nothing waits under it")
        return proposal

    def _settle(self, id: int, state: ProposalState) -> None:
        with self._sql.writing():
            self._sql.all("UPDATE inbox SET state = ? WHERE id = ?", state, id)

    def _is_known(self, file: str, text: str) -> bool:
        """Tell whether the user has seen this; dates and evidence do not make it another."""
        if self._store.version(file) == sha(text):
            return True
        rows = self._sql.all("SELECT file, text FROM inbox WHERE state IN ('waiting', 'declined')")
        return _essence(file, text) in {_essence(*row) for row in rows}


def _essence(file: str, text: str) -> Essence:
    """Give what a memory says, without when it was said and what it rests on."""
    memory = parse(file, text)
    return memory.name, memory.description, memory.type, memory.body.strip()
