"""What an entry did, in one line for people."""

from holdfast.log.entries import (
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
    Redone,
    Restored,
    Snipped,
    Spawned,
    Spilled,
    Swept,
    Switched,
    Undone,
    ViewChange,
)

_NOTED_BY = {"engine": "the log alone", "model": "a model", "person": "a person"}


def kind_of(entry: AnyEntry) -> str:
    return type(entry).__name__.lower()


def counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def told(entry: AnyEntry) -> str:
    """Describe in one line what an entry did."""
    match entry:
        case Forked():
            return _told_beside(entry)
        case Spawned() | Ended():
            return _told_of_agent(entry)
        case Noted():
            return _told_noted(entry)
        case Cleared(why=why) if why:
            return why  # it says itself how many
        case ViewChange():
            said = _told_shaped(entry)
            return f"{said}: {entry.why}" if entry.why else said
    return _told_kept(entry)


def _told_shaped(entry: ViewChange) -> str:
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
        case Compacted(first=first, last=last, by=by, trigger=trigger):
            return f"messages {first} to {last} are shown as a summary (by {by}, {trigger})"
        case Restored(compaction=n):
            return f"context was restored after compaction {n}"
        case Pinned(targets=targets, on=on):
            return f"{counted(len(targets), 'message')} {'pinned' if on else 'unpinned'}"
    return ""


def _told_kept(entry: AnyEntry) -> str:
    match entry:
        case Swept(files=files, bytes=count, why=why):
            return f"{counted(len(files), 'file')} of {count:,} bytes removed, {why}"
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


def _told_of_agent(entry: Spawned | Ended) -> str:
    if isinstance(entry, Ended):
        by = ", by the user" if entry.by_user else ""
        return f"the agent {entry.agent} {entry.state}{by}"
    where = " in the background" if entry.is_background else ""
    return f"the agent {entry.agent} ({entry.kind}) was started{where}: {entry.task}"


def _told_noted(entry: Noted) -> str:
    return f"up to message {entry.cursor}, by {_NOTED_BY[entry.by]}: about {entry.tokens:,} tokens"


def _told_beside(entry: Forked) -> str:
    usage, stop = entry.usage, entry.stop_reason
    share = usage.cache_read_tokens / usage.prompt_tokens if usage.prompt_tokens else 0.0
    told = f"{entry.source} asked the model beside the conversation: "
    told += f"{usage.prompt_tokens:,} tokens, {share:.0%} from the cache"
    return f"{told} ({stop})" if stop in ("aborted", "broken") else told
