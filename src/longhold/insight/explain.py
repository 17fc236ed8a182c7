"""What happened in a session, turn by turn: calls, costs, and what changed what the model sees."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from longhold.core.log.entries import (
    AnyEntry,
    CacheBroke,
    Cleared,
    Collapsed,
    Compacted,
    Dreamt,
    Dropped,
    Ended,
    Failed,
    Forked,
    Framed,
    Noted,
    Pinned,
    Ran,
    Recalled,
    Redone,
    Remembered,
    Replied,
    Restored,
    Rewound,
    Snipped,
    Spawned,
    Spilled,
    Swept,
    Switched,
    Undone,
    ViewChange,
)
from longhold.core.log.spending import Spent, spent_on
from longhold.core.log.unique_answers import UniqueAnswer, all_answers, day_of
from longhold.core.messages import ToolUse
from longhold.core.messages.text import counted, printable_line
from longhold.core.view import View
from longhold.core.view.gauge import Follower
from longhold.insight.cost import begins_turn, words_of

FOCUS_CHARS = 200
"""Of what a summary was asked to dwell on."""
CLEARED_SHOWN = 4
"""Of the results that were cleared; the rest is counted."""
CALL_CHARS = 60
"""Of a call, to recognise it."""

DROP_TOKENS, DROP_SHARE = 5_000, 0.1
"""Below this the thinking of a finished turn may have left the prompt, as some models have it."""

_MOVES = (ViewChange, Undone, Redone)
_FORKED_BY = {"stopped": "an answer that was stopped", "branch": "another branch"}
_NOTED_BY = {"engine": "the log alone", "model": "a model", "person": "a person"}
_REMEMBERED_BY = {"agent": "the agent", "extraction": "a job beside it", "person": "a person"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One entry that changed what the model sees, or reports a failure."""

    n: int
    kind: str
    text: str
    saved_tokens: int = 0
    """How much smaller the context is by it."""
    times: int = 1
    """How often in a row, of a failure; `n` is the first."""


@dataclass(slots=True, kw_only=True)
class ExplainedTurn:
    """From one message of the user to the next."""

    n: int
    at: float
    said: str
    answers: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    errors: int = 0
    spent: Spent = field(default_factory=Spent)
    acts: list[Act] = field(default_factory=list)
    tokens_before: int = 0
    tokens_after: int = 0


def explain(entries: Iterable[AnyEntry]) -> list[ExplainedTurn]:
    """Describe a history turn by turn; an answer in pieces belongs to the turn it began in."""
    history = list(entries)
    answers = all_answers(history)
    reader = _Reader()
    for at, entry in enumerate(history):
        reader.take(entry)
        if at in answers:
            reader.pay(answers[at])
    return reader.turns


class _Reader:
    def __init__(self) -> None:
        self.turns: list[ExplainedTurn] = []
        self._view, self._follower = View(), Follower()
        self._uses: dict[str, ToolUse] = {}
        self._prompt_tokens = 0
        self._is_moved = False
        """An entry since the last call explains that the prompt is another."""

    def take(self, entry: AnyEntry) -> None:
        before = self._size()
        self._is_moved = self._is_moved or isinstance(entry, (*_MOVES, Switched, Framed))
        self._view.apply(entry)
        after = self._size()
        if not self.turns or begins_turn(entry):
            said = words_of(entry)
            self.turns.append(
                ExplainedTurn(n=entry.n, at=entry.at, said=said, tokens_before=before)
            )
        turn = self.turns[-1]
        turn.tokens_after = after
        match entry:
            case Replied():
                uses = [block for block in entry.content if isinstance(block, ToolUse)]
                turn.calls.update(use.name for use in uses)
                self._uses |= {use.id: use for use in uses}
            case Ran(is_error=True):
                turn.errors += 1
            case Forked():
                self._spend(entry)
        if _is_act(entry):
            saved = before - after if isinstance(entry, _MOVES) else 0
            if isinstance(entry, Cleared):
                saved = entry.saved_tokens or saved
            text = describe_entry(entry, self._uses)
            act = Act(n=entry.n, kind=kind_of(entry), text=text, saved_tokens=saved)
            turn.acts = _with_act(turn.acts, act)

    def pay(self, answer: UniqueAnswer) -> None:
        turn = self.turns[-1]
        turn.answers += 1
        if answer.usage.total_tokens:
            self._spend(answer)
            self._notice_drop(answer)

    def _notice_drop(self, answer: UniqueAnswer) -> None:
        """Report a prompt that is much smaller than the one before, if no entry says why."""
        before, now = self._prompt_tokens, answer.usage.prompt_tokens
        gone, was_moved = before - now, self._is_moved
        self._prompt_tokens, self._is_moved = now, False
        if was_moved or gone < max(DROP_TOKENS, DROP_SHARE * before):
            return
        text = (
            f"the prompt fell from {before:,} to {now:,} tokens, and the log does not say why: "
            "its agent left something out"
        )
        self.turns[-1].acts.append(Act(n=answer.n, kind="shrank", text=text, saved_tokens=gone))

    def _spend(self, call: UniqueAnswer | Forked) -> None:
        turn = self.turns[-1]
        turn.spent = turn.spent + spent_on(call.model, call.usage, day_of(call.at))

    def _size(self) -> int:
        return self._follower.follow(self._view).size_tokens(self._view.total)


def _with_act(acts: list[Act], act: Act) -> list[Act]:
    """Add an act; a failure that only repeats the one before it is counted there."""
    last = acts[-1] if acts else None
    is_same = last and last.kind == act.kind == "failed" and last.text == act.text
    if last and is_same:
        return [*acts[:-1], replace(last, times=last.times + 1)]
    return [*acts, act]


def _is_act(entry: AnyEntry) -> bool:
    if isinstance(entry, Forked):
        return not entry.source.startswith("agent:")  # an agent's calls are in its own log
    changes = ViewChange | Undone | Redone | Switched | CacheBroke | Dropped
    beside = Spawned | Ended | Noted | Remembered | Recalled | Dreamt
    return isinstance(entry, changes | Failed | Swept | beside)


def kind_of(entry: AnyEntry) -> str:
    return type(entry).__name__.lower()


def describe_entry(entry: AnyEntry, uses: Mapping[str, ToolUse] | None = None) -> str:
    """Describe in one line what an entry did; `uses` are the calls made before it, by id."""
    match entry:
        case Forked():
            return _describe_fork(entry)
        case Remembered() | Recalled() | Dreamt():
            return _describe_memory(entry)
        case Ended(agent=agent, state=state, by_user=by_user):
            return f"the agent {agent} {state}" + (", by the user" if by_user else "")
        case Spawned(agent=agent, kind=kind, task=task):
            where = " in the background" if entry.is_background else ""
            return f"the agent {agent} ({kind}) was started{where}: {task}"
        case Noted(cursor=n, by=by, tokens=tokens):
            return f"up to message {n}, by {_NOTED_BY[by]}: about {tokens:,} tokens"
        case Cleared(ids=ids, why=why):
            said = why or _describe_change(entry)  # a reason says itself how many
            named = [_call(uses[id]) for id in ids if uses and id in uses]
            more = f" and {len(named) - CLEARED_SHOWN} more" if len(named) > CLEARED_SHOWN else ""
            return f"{said} ({', '.join(named[:CLEARED_SHOWN])}{more})" if named else said
        case ViewChange():
            said = _describe_change(entry)
            return f"{said}: {entry.why}" if entry.why else said
    return _describe_other(entry)


def _describe_change(entry: ViewChange) -> str:
    match entry:
        case Spilled(tool_use_id=id, same_as=same) if same:
            return f"the result of {id} is that of {same}"
        case Spilled(tool_use_id=id, file=file):
            return f"the result of {id} went to {file}"
        case Cleared(ids=ids, how=how):
            return f"{counted(len(ids), 'result')} cleared ({how})"
        case Snipped(targets=targets):
            return f"{counted(len(targets), 'message')} left the view"
        case Collapsed(first=first, last=last):
            return f"messages {first} to {last} are shown as one line"
        case Compacted(first=first, last=last, by=by, trigger=trigger, focus=focus):
            asked = f", with the focus {printable_line(focus, FOCUS_CHARS)!r}" if focus else ""
            writer = "its client" if by == "import" else by
            return (
                f"messages {first} to {last} are shown as a summary (by {writer}, {trigger}{asked})"
            )
        case Restored(compaction=n):
            return f"context was restored after compaction {n}"
        case Rewound(after=n):
            return f"what came after message {n} left the conversation"
        case Pinned(targets=targets, on=on):
            return f"{counted(len(targets), 'message')} {'pinned' if on else 'unpinned'}"
    return ""


def _call(use: ToolUse) -> str:
    given = next((str(value) for value in use.input.values() if isinstance(value, str)), "")
    return printable_line(f"{use.name} {given}", CALL_CHARS)


def _describe_memory(entry: Remembered | Recalled | Dreamt) -> str:
    match entry:
        case Recalled(names=names, said=n):
            return f"shown to the model in message {n}: {', '.join(names)}"
        case Remembered(names=names, inbox=inbox, by=by, cursor=n):
            how = "waits for your consent" if inbox else f"written by {_REMEMBERED_BY[by]}"
            return f"{', '.join(names)} ({how})" if names else f"nothing new up to message {n}"
        case Dreamt(why=why, by=by, commit=commit):
            undo = f" (undo: longhold memory undo {commit})" if commit else ""
            how = "by a model" if by == "model" else "without a model"
            return f"memories were put in order {how}: {why or 'no change'}{undo}"


def _describe_other(entry: AnyEntry) -> str:
    match entry:
        case Swept(files=files, bytes=count, why=why):
            return f"{counted(len(files), 'file')} of {count:,} bytes removed, {why}"
        case Dropped(targets=targets, on=on, by=by):
            verb = "marked to leave the view" if on else "no longer marked"
            return f"{counted(len(targets), 'message')} {verb} by the {by}"
        case Undone(target=n) | Redone(target=n):
            return f"entry {n} was {kind_of(entry)}"
        case Switched(model=model, reason=reason):
            return f"{model} answers from here on" + (f" ({reason})" if reason else "")
        case CacheBroke(detail=detail, lost_tokens=lost, usd=usd, expected=expected):
            said = f"{lost:,} tokens were not read from the cache (${usd:.4f}): {detail}"
            return f"{said} (expected: {expected})" if expected else said
        case Failed(what=what, error=error):
            return f"{what}: {' '.join(error.split())[:200]}"
    return ""


def _describe_fork(entry: Forked) -> str:
    usage, stop = entry.usage, entry.stop_reason
    share = usage.cache_read_tokens / usage.prompt_tokens if usage.prompt_tokens else 0.0
    text = f"{_FORKED_BY.get(entry.source, entry.source)} asked the model beside the conversation: "
    text += f"{usage.prompt_tokens:,} tokens, {share:.0%} from the cache"
    return f"{text} ({stop})" if stop in ("aborted", "broken") else text
