"""One-line descriptions of entries, for explanations and the terminal."""

from collections.abc import Mapping

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
    Noted,
    Pinned,
    Recalled,
    Redone,
    Remembered,
    Restored,
    Rewound,
    Snipped,
    Spawned,
    Spilled,
    Swept,
    Switched,
    Undone,
    ViewChange,
    Withheld,
)
from longhold.core.messages import ToolUse
from longhold.core.messages.text import clean_line, exact_dollars, list_some, pluralize

FOCUS_CHARS = 200

CLEARED_SHOWN = 4

CALL_CHARS = 60

_FORKED_BY = {"stopped": "an answer that was stopped", "branch": "another branch"}

_NOTED_BY = {"engine": "the log alone", "model": "a model", "person": "a person"}

_REMEMBERED_BY = {"agent": "the agent", "extraction": "a background job", "person": "a person"}


def kind_of(entry: AnyEntry) -> str:
    return type(entry).__name__.lower()


def describe_entry(entry: AnyEntry, uses: Mapping[str, ToolUse] | None = None) -> str:
    """Describe an entry in one line. `uses` maps ids to the earlier tool calls."""
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
            said = why or _describe_change(entry)  # the reason already includes the count
            named = [_call(uses[id]) for id in ids if uses and id in uses]
            return f"{said} ({list_some(named, CLEARED_SHOWN)})" if named else said
        case ViewChange():
            said = _describe_change(entry)
            return f"{said}: {entry.why}" if entry.why else said
    return _describe_other(entry)


def _describe_change(entry: ViewChange) -> str:
    match entry:
        case Spilled(tool_use_id=id, same_as=same) if same:
            return f"the result of {id} equals that of {same}"
        case Spilled(tool_use_id=id, file=file):
            return f"the result of {id} went to {file}"
        case Cleared(ids=ids, how=how):
            return f"{pluralize(len(ids), 'result')} cleared ({how})"
        case Snipped(targets=targets):
            return f"{pluralize(len(targets), 'message')} left the view"
        case Collapsed(first=first, last=last):
            return f"messages {first} to {last} are shown as one line"
        case Compacted(first=first, last=last, by=by, trigger=trigger, focus=focus):
            asked = f", with the focus {clean_line(focus, FOCUS_CHARS)!r}" if focus else ""
            writer = "its client" if by == "import" else by
            return (
                f"messages {first} to {last} are shown as a summary (by {writer}, {trigger}{asked})"
            )
        case Restored(compaction=n):
            return f"context was restored after compaction {n}"
        case Rewound(after=n):
            return f"messages after {n} left the conversation"
        case Pinned(targets=targets, on=on):
            return f"{pluralize(len(targets), 'message')} {'pinned' if on else 'unpinned'}"
    return ""


def _call(use: ToolUse) -> str:
    given = next((str(value) for value in use.input.values() if isinstance(value, str)), "")
    return clean_line(f"{use.name} {given}", CALL_CHARS)


def _describe_memory(entry: Remembered | Recalled | Dreamt) -> str:
    match entry:
        case Recalled(names=names, said=n):
            return f"shown to the model in message {n}: {', '.join(names)}"
        case Remembered(names=names, forgot=forgot, inbox=inbox, by=by, cursor=n):
            how = "waits for your consent" if inbox else f"written by {_REMEMBERED_BY[by]}"
            if forgot:
                return f"forgot {', '.join(forgot)}" + (
                    f"; {', '.join(names)} ({how})" if names else ""
                )
            return f"{', '.join(names)} ({how})" if names else f"nothing new up to message {n}"
        case Dreamt(why=why, by=by, commit=commit):
            undo = f" (undo: longhold memory undo {commit})" if commit else ""
            how = "by a model" if by == "model" else "without a model"
            return f"memories were tidied {how}: {why or 'no change'}{undo}"


def _describe_other(entry: AnyEntry) -> str:
    match entry:
        case Swept(files=files, bytes=count, why=why):
            return f"{pluralize(len(files), 'file')} of {count:,} bytes removed, {why}"
        case Dropped(targets=targets, on=on, by=by):
            verb = "marked to leave the view" if on else "no longer marked"
            return f"{pluralize(len(targets), 'message')} {verb} by the {by}"
        case Undone(target=n) | Redone(target=n):
            return f"entry {n} was {kind_of(entry)}"
        case Switched(model=model, reason=reason):
            return f"{model} answers from here on" + (f" ({reason})" if reason else "")
        case CacheBroke(detail=detail, lost_tokens=lost, usd=usd, expected=expected):
            said = f"{lost:,} tokens were not read from the cache ({exact_dollars(usd)}): {detail}"
            return f"{said} (expected: {expected})" if expected else said
        case Failed(what=what, error=error) | Withheld(what=what, why=error):
            return f"{what}: {' '.join(error.split())[:200]}"
    return ""


def _describe_fork(entry: Forked) -> str:
    usage, stop = entry.usage, entry.stop_reason
    share = usage.cache_read_tokens / usage.prompt_tokens if usage.prompt_tokens else 0.0
    text = (
        f"{_FORKED_BY.get(entry.source, entry.source)} asked the model outside the conversation: "
    )
    text += f"{usage.prompt_tokens:,} tokens, {share:.0%} from the cache"
    return f"{text} ({stop})" if stop in ("aborted", "broken") else text
