"""Memories as a session writes them: committed at once, or proposed where consent is needed.

The model is told when a change waits for the user. A removal cannot wait in the inbox, so where
consent is needed only the user can remove a memory.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from holdfast.memory.commits import CommitAuthor, MemoryChange
from holdfast.memory.errors import MemoryRefused
from holdfast.memory.inbox import Inbox, must_ask
from holdfast.memory.provenance import Provenance
from holdfast.memory.store import MemoryStore

WAITS = "Nothing is changed yet: the change waits for the user's consent (`holdfast memory inbox`)."
NO_REMOVAL = (
    "only the user may remove or rename memories here; tell them which, `holdfast memory forget`"
    " does it"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentedMemories:
    open: Callable[[], MemoryStore]
    """Returns the store, created on first use."""
    by: CommitAuthor
    provenance: Callable[[], Provenance]
    is_outside: Callable[[], bool]
    """Whether the session read untrusted text."""

    def versions(self) -> dict[str, str]:
        return self.open().versions()

    def version(self, file: str) -> str:
        return self.open().version(file)

    def read(self, file: str) -> str:
        return self.open().read(file)

    def change(self, changes: Sequence[MemoryChange], *, why: str) -> str:
        kept = keep(
            self.open(),
            changes,
            by=self.by,
            why=why,
            provenance=self.provenance(),
            is_outside=self.is_outside(),
        )
        return WAITS if kept.is_asked else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptMemory:
    commit: int = 0
    """0 if nothing was committed."""
    names: tuple[str, ...] = ()
    is_asked: bool = False
    """The changes wait in the inbox."""


def keep(
    store: MemoryStore,
    changes: Sequence[MemoryChange],
    *,
    by: CommitAuthor,
    why: str,
    provenance: Provenance,
    is_outside: bool,
) -> KeptMemory:
    """Commit changes with their provenance, or propose them to the user."""
    traced = [provenance.on(change) for change in changes]
    if not must_ask(store.limits, is_outside=is_outside):
        done = store.commit(traced, by=by, why=why)
        names = tuple(change.file for change in traced) if done else ()
        return KeptMemory(commit=done.id if done else 0, names=names)
    if any(change.text is None for change in traced):
        raise MemoryRefused(NO_REMOVAL)
    asked = Inbox(store).propose(
        traced, by=by, why=why, session=provenance.session, is_outside=is_outside
    )
    return KeptMemory(names=tuple(one.file for one in asked), is_asked=True)
