"""The memories as an agent writes them: at once, or into the inbox where the user is to be asked.

Changes of the memory tool come in. Where the user's consent is not needed they are commits with
their evidence; where it is, they wait, and the model is told so. What waits can only be a text:
a removal needs the user's own hand then.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from holdfast.memory.commits import CommitAuthor, MemoryChange
from holdfast.memory.inbox import Inbox, must_ask
from holdfast.memory.provenance import Seal
from holdfast.memory.refusals import MemoryRefused
from holdfast.memory.store import MemoryStore

WAITS = (
    "Nothing is changed yet: it waits for the user's consent. They see it with `holdfast memory"
    " inbox`."
)
NO_REMOVAL = (
    "memories are only removed or renamed by the user while their consent is asked for; tell them"
    " which, `holdfast memory forget` does it"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsentedMemories:
    """Pages of the memory tool in a session."""

    open: Callable[[], MemoryStore]
    """Gives the store; it is made when it is first needed."""
    by: CommitAuthor
    seal: Callable[[], Seal]
    is_outside: Callable[[], bool]
    """Whether the session took in text from outside."""

    def versions(self) -> dict[str, str]:
        """Give every memory's file with its version."""
        return self.open().versions()

    def version(self, file: str) -> str:
        """Give the version of a file; '' is none."""
        return self.open().version(file)

    def read(self, file: str) -> str:
        """Give the content of a file."""
        return self.open().read(file)

    def change(self, changes: Sequence[MemoryChange], *, why: str) -> str:
        """Commit, or ask."""
        kept = keep(
            self.open(),
            changes,
            by=self.by,
            why=why,
            seal=self.seal(),
            is_outside=self.is_outside(),
        )
        return WAITS if kept.is_asked else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptMemory:
    """What became of changes."""

    commit: int = 0
    """0 if there is none."""
    names: tuple[str, ...] = ()
    is_asked: bool = False
    """They wait in the inbox."""


def keep(
    store: MemoryStore,
    changes: Sequence[MemoryChange],
    *,
    by: CommitAuthor,
    why: str,
    seal: Seal,
    is_outside: bool,
) -> KeptMemory:
    """Write changes with what they rest on, or put them before the user."""
    sealed = [seal.on(change) for change in changes]
    if not must_ask(store.limits, is_outside=is_outside):
        done = store.commit(sealed, by=by, why=why)
        names = tuple(change.file for change in sealed) if done else ()
        return KeptMemory(commit=done.id if done else 0, names=names)
    if any(change.text is None for change in sealed):
        raise MemoryRefused(NO_REMOVAL)
    asked = Inbox(store).propose(
        sealed, by=by, why=why, session=seal.session, is_outside=is_outside
    )
    return KeptMemory(names=tuple(one.file for one in asked), is_asked=True)
