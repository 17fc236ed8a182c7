"""Consent: a session's memories are committed immediately or wait in the inbox for the user.

They wait if `memory.consent` is "ask" or the session read untrusted text. Declined proposals are
kept, so that they are not proposed again. Removals cannot wait. In these cases, only the user may
remove memories.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal, Protocol, TypeAlias

from longhold.core.memory.commits import Commit, CommitAuthor, MemoryChange, diff, sha
from longhold.core.memory.memory import MemoryRefused, NoSuchMemory, parse
from longhold.core.memory.store import MemoryStore, refuse_secret
from longhold.core.settings import MemorySettings

WAITS = "Nothing is changed yet: the change waits for the user's consent (`{command} inbox`)."
NO_REMOVAL = (
    "only the user may remove or rename memories here; tell them which, `{command} forget` does it"
)

ProposalState: TypeAlias = Literal["waiting", "accepted", "declined", "replaced"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    id: int
    at: float
    by: CommitAuthor
    why: str
    file: str
    text: str
    before: str
    """The version that the proposal changes, or '' for a new memory."""
    session: str
    is_outside: bool
    """The session had read untrusted text."""
    state: ProposalState


def must_ask(limits: MemorySettings, *, is_outside: bool) -> bool:
    return is_outside or limits.consent == "ask"


class Inbox:
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
        """Add proposals that are new and not declined. Each replaces older ones of its file."""
        ids: list[int] = []
        for change in changes:
            self._store.check(change)
        refuse_secret("the reason for this", why)
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
        rows = self._sql.all("SELECT id FROM inbox WHERE state = 'waiting' ORDER BY id")
        return [self.find(row[0]) for row in rows]

    def find(self, id: int) -> Proposal:
        names = [field.name for field in fields(Proposal)]
        rows = self._sql.all(f"SELECT {', '.join(names)} FROM inbox WHERE id = ?", id)
        if not rows:
            raise NoSuchMemory(f"there is no proposal {id} in the inbox")
        found = dict(zip(names, rows[0], strict=True))
        return Proposal(**found | {"is_outside": bool(found["is_outside"])})

    def diff(self, proposal: Proposal) -> str:
        before = self._store.history.text(self._store.version(proposal.file))
        return diff(proposal.file, before, proposal.text)

    def accept(self, id: int) -> Commit | None:
        """Commit a proposal. Raise if its memory has changed since."""
        proposal = self._waiting(id)
        change = MemoryChange(file=proposal.file, text=proposal.text, expected=proposal.before)
        done = self._store.commit([change], by=proposal.by, why=f"{proposal.why} (accepted)")
        self._set_state(id, "accepted")
        return done

    def decline(self, id: int) -> None:
        """Decline a proposal permanently. The same memory is not proposed again."""
        self._waiting(id)
        self._set_state(id, "declined")

    def _waiting(self, id: int) -> Proposal:
        proposal = self.find(id)
        if proposal.state != "waiting":
            raise NoSuchMemory(f"proposal {id} is no longer waiting: it was {proposal.state}")
        return proposal

    def _set_state(self, id: int, state: ProposalState) -> None:
        with self._sql.writing():
            self._sql.all("UPDATE inbox SET state = ? WHERE id = ?", state, id)

    def _is_known(self, file: str, text: str) -> bool:
        """Return whether the user has already seen this memory, ignoring dates and evidence."""
        if self._store.version(file) == sha(text):
            return True
        rows = self._sql.all("SELECT file, text FROM inbox WHERE state IN ('waiting', 'declined')")
        return _essence(file, text) in {_essence(*row) for row in rows}


def _essence(file: str, text: str) -> tuple[str, ...]:
    memory = parse(file, text)
    return memory.name, memory.description, memory.type, memory.body.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptMemory:
    commit: int = 0
    names: tuple[str, ...] = ()
    """Names of new and changed memories."""
    changed: tuple[str, ...] = ()
    forgot: tuple[str, ...] = ()
    is_asked: bool = False


class Origin(Protocol):
    """The origin of memories, which `on` writes into a change."""

    @property
    def session(self) -> str: ...
    def on(self, change: MemoryChange) -> MemoryChange: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentedMemories:
    open: Callable[[], MemoryStore]
    by: CommitAuthor
    provenance: Callable[[], Origin]
    is_outside: Callable[[], bool]
    """Whether the session read untrusted text."""
    command: str = "longhold memory"
    """The command with which the user answers proposals."""

    def versions(self) -> dict[str, str]:
        return self.open().versions()

    def read(self, file: str) -> str:
        return self.open().read(file)

    def search(self, query: str, limit: int) -> Mapping[str, str]:
        return self.open().find(query, limit)

    def change(self, changes: Sequence[MemoryChange], *, why: str) -> str:
        is_asked = self.keep(changes, why=why).is_asked
        return WAITS.format(command=self.command) if is_asked else ""

    def keep(self, changes: Sequence[MemoryChange], *, why: str) -> KeptMemory:
        store, provenance, is_outside = self.open(), self.provenance(), self.is_outside()
        traced = [provenance.on(change) for change in changes]
        if not must_ask(store.limits, is_outside=is_outside):
            done = store.commit(traced, by=self.by, why=why)
            if done is None:
                return KeptMemory()
            names = tuple(change.file for change in traced if change.text is not None)
            gone = tuple(change.file for change in traced if change.text is None)
            changed = tuple(one.file for one in traced if one.expected and one.file in names)
            return KeptMemory(commit=done.id, names=names, changed=changed, forgot=gone)
        if any(change.text is None for change in traced):
            raise MemoryRefused(NO_REMOVAL.format(command=self.command))
        asked = Inbox(store).propose(
            traced, by=self.by, why=why, session=provenance.session, is_outside=is_outside
        )
        return KeptMemory(names=tuple(one.file for one in asked), is_asked=True)

    def take_written(self, store: MemoryStore, written: Mapping[str, float]) -> KeptMemory:
        """Store files that the agent wrote into the store's directory, as the memory tool would."""
        if not written:
            return KeptMemory()
        with store.database.writing():  # a file is removed from disk only if it is stored
            changes = store.take_edits(written)
            if not changes:
                return KeptMemory()
            return replace(self, open=lambda: store).keep(changes, why="written into the directory")
