"""What happened in a session, turn by turn: read back from its entries.

A history comes in; turns go out, each with its calls, its cost, and every act that changed what
the model sees, with the tokens that act saved. Sizes are the gauge's, prices the tables'; all
else is read from the log.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from holdfast.entries import (
    AnyEntry,
    CacheBroke,
    Cleared,
    Collapsed,
    Compacted,
    Ended,
    Failed,
    Forked,
    Noted,
    Pinned,
    Ran,
    Redone,
    Replied,
    Restored,
    Said,
    Shaped,
    Snipped,
    Spawned,
    Spilled,
    Swept,
    Switched,
    Undone,
)
from holdfast.gauge import Follower
from holdfast.messages import ToolUse, text_of
from holdfast.spending import Spent, spent_on
from holdfast.view import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One entry that changed what the model sees, or tells of trouble."""

    n: int
    kind: str
    text: str
    saved_tokens: int = 0
    """How much smaller the context is by it."""


@dataclass(slots=True, kw_only=True)
class Turn:
    """From one thing the user said to the next."""

    n: int
    at: float
    said: str
    answers: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    errors: int = 0
    """Tool results that were errors."""
    spent: Spent = field(default_factory=Spent)
    acts: list[Act] = field(default_factory=list)
    tokens_before: int = 0
    tokens_after: int = 0


def explain(entries: Iterable[AnyEntry]) -> list[Turn]:
    """Tell a history turn by turn."""
    teller = _Teller()
    for entry in entries:
        teller.take(entry)
    return teller.turns


class _Teller:
    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self._view, self._follower = View(), Follower()
        self._paid: dict[str, Spent] = {}
        """What each answer cost so far: pieces repeat their usage."""

    def take(self, entry: AnyEntry) -> None:
        before = self._size()
        self._view.apply(entry)
        after = self._size()
        if (isinstance(entry, Said) and not entry.hidden) or not self.turns:
            said = text_of(entry.content) if isinstance(entry, Said) else ""
            self.turns.append(Turn(n=entry.n, at=entry.at, said=said, tokens_before=before))
        turn = self.turns[-1]
        turn.tokens_after = after
        match entry:
            case Replied():
                self._answer(turn, entry)
            case Ran(is_error=True):
                turn.errors += 1
            case Forked(source=source):
                turn.spent = turn.spent + spent_on(entry.model, entry.usage)
                if source.startswith("agent:"):
                    return  # its start and its end are told; its calls are in its own log
                turn.acts.append(Act(n=entry.n, kind=_kind(entry), text=_told_beside(entry)))
            case Spawned() | Ended():
                told = _told_of_agent(entry)
                turn.acts.append(Act(n=entry.n, kind=_kind(entry), text=told))
            case Noted():
                turn.acts.append(Act(n=entry.n, kind=_kind(entry), text=_told_noted(entry)))
            case Shaped() | Undone() | Redone() | Switched() | Failed() | CacheBroke() | Swept():
                saved = before - after if isinstance(entry, Shaped | Undone | Redone) else 0
                turn.acts.append(
                    Act(n=entry.n, kind=_kind(entry), text=_told(entry), saved_tokens=saved)
                )

    def _size(self) -> int:
        return self._follower.follow(self._view).size_tokens(self._view.total)

    def _answer(self, turn: Turn, entry: Replied) -> None:
        turn.calls.update(block.name for block in entry.content if isinstance(block, ToolUse))
        if entry.response_id not in self._paid:
            turn.answers += 1
        if entry.usage:
            spent = spent_on(entry.model, entry.usage)
            turn.spent = turn.spent + spent - self._paid.get(entry.response_id, Spent())
            self._paid[entry.response_id] = spent
        self._paid.setdefault(entry.response_id, Spent())


_NOTED_BY = {"engine": "the log alone", "model": "a model", "person": "a person"}


def _kind(entry: AnyEntry) -> str:
    return type(entry).__name__.lower()


def _told(entry: AnyEntry) -> str:
    """Say in one line what an entry did."""
    match entry:
        case Spilled(tool_use_id=id, same_as=same) if same:
            told = f"the result of {id} is that of {same}"
        case Spilled(tool_use_id=id, file=file):
            told = f"the result of {id} went to {file}"
        case Swept(files=files, bytes=count, why=why):
            told = f"{len(files)} files of {count:,} bytes were removed, {why}"
        case Cleared(ids=ids, how=how):
            told = f"{len(ids)} results were cleared ({how})"
        case Snipped(targets=targets):
            told = f"{len(targets)} messages left the view"
        case Collapsed(first=first, last=last):
            told = f"messages {first} to {last} are shown as one line"
        case Compacted(first=first, last=last, by=by, trigger=trigger):
            told = f"messages {first} to {last} are shown as a summary (by {by}, {trigger})"
        case Restored(compaction=n):
            told = f"context was restored after compaction {n}"
        case Pinned(targets=targets, on=on):
            told = f"{len(targets)} messages were {'pinned' if on else 'unpinned'}"
        case Undone(target=n) | Redone(target=n):
            told = f"entry {n} was {_kind(entry)}"
        case Switched(model=model, reason=reason):
            told = f"{model} answers from here on" + (f" ({reason})" if reason else "")
        case CacheBroke(detail=detail, lost_tokens=lost, usd=usd, expected=expected):
            told = f"{lost:,} tokens were not read from the cache (${usd:.4f}): {detail}"
            told += f" (expected: {expected})" if expected else ""
        case Failed(what=what, error=error):
            told = f"{what}: {' '.join(error.split())[:200]}"
        case _:
            told = ""
    why = entry.why if isinstance(entry, Shaped) else ""
    return f"{told}: {why}" if why else told


def _told_of_agent(entry: Spawned | Ended) -> str:
    """Say in one line that an agent was started, or how it ended."""
    if isinstance(entry, Ended):
        by = ", by the user" if entry.by_user else ""
        return f"the agent {entry.agent} {entry.state}{by}"
    where = " in the background" if entry.is_background else ""
    return f"the agent {entry.agent} ({entry.kind}) was started{where}: {entry.task}"


def _told_noted(entry: Noted) -> str:
    """Say how far notes reach, who wrote them and how long they are."""
    return f"up to message {entry.cursor}, by {_NOTED_BY[entry.by]}: about {entry.tokens:,} tokens"


def _told_beside(entry: Forked) -> str:
    """Say who asked, how long the prompt was and how much of it came from the cache."""
    usage, stop = entry.usage, entry.stop_reason
    share = usage.cache_read_tokens / usage.prompt_tokens if usage.prompt_tokens else 0.0
    told = f"{entry.source} asked the model beside the conversation: "
    told += f"{usage.prompt_tokens:,} tokens, {share:.0%} from the cache"
    return f"{told} ({stop})" if stop in ("aborted", "broken") else told
