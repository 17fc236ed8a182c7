"""The entries of a log: what happened, and what was decided, one frozen value each.

Past participles, because an entry is written after the fact. `content` brings messages and the
frame, `edits` change what of them the model sees and can be undone; `bookkeeping` is the rest. `n` is the entry's number in its log and the id of the
message it brings. Entries carry their measure, so that loading a log never counts again.
"""

from typing import TypeAlias

from msgspec import structs

from longhold.core.log.entries.bookkeeping import (
    Configured,
    Directed,
    Dreamt,
    Dropped,
    Ended,
    Failed,
    Followed,
    Forked,
    Imported,
    Noted,
    Recalled,
    Remembered,
    Spawned,
    Swept,
    Titled,
    ToolTraits,
)
from longhold.core.log.entries.content import (
    AnswerContent,
    Asked,
    Began,
    CacheBroke,
    Framed,
    Ran,
    Replied,
    Said,
    Section,
    Source,
    SpokenContent,
    Switched,
)
from longhold.core.log.entries.edits import (
    Cleared,
    ClearedInput,
    Collapsed,
    Compacted,
    How,
    Pinned,
    Redone,
    Restored,
    Rewound,
    Snipped,
    Spilled,
    Undone,
    ViewChange,
)
from longhold.core.messages.measure import NOTHING, measure_content

__all__ = [
    "AnswerContent",
    "AnyEntry",
    "Asked",
    "Began",
    "CacheBroke",
    "Cleared",
    "ClearedInput",
    "Collapsed",
    "Compacted",
    "Configured",
    "Directed",
    "Dreamt",
    "Dropped",
    "Ended",
    "Failed",
    "Followed",
    "Forked",
    "Framed",
    "How",
    "Imported",
    "Noted",
    "Pinned",
    "Ran",
    "Recalled",
    "Redone",
    "Remembered",
    "Replied",
    "Restored",
    "Rewound",
    "Said",
    "Section",
    "Snipped",
    "Source",
    "Spawned",
    "Spilled",
    "SpokenContent",
    "Swept",
    "Switched",
    "Titled",
    "ToolTraits",
    "Undone",
    "ViewChange",
    "add_measure",
    "references",
    "targets",
]

AnyEntry: TypeAlias = (
    Said
    | Replied
    | Began
    | Ran
    | Spilled
    | Snipped
    | Cleared
    | Collapsed
    | Compacted
    | Restored
    | Pinned
    | Rewound
    | Undone
    | Redone
    | Framed
    | Switched
    | Asked
    | CacheBroke
    | Failed
    | Titled
    | Configured
    | Followed
    | Imported
    | Swept
    | Dropped
    | Forked
    | Noted
    | Remembered
    | Recalled
    | Dreamt
    | Directed
    | Spawned
    | Ended
)


def references(entry: ViewChange) -> tuple[int, ...]:
    """List the numbers of the entries that a view change rests on."""
    match entry:
        case Snipped(targets=targets) | Pinned(targets=targets):
            return targets + entry.rests_on
        case Collapsed(first=first, last=last) | Compacted(first=first, last=last):
            return (first, last, *entry.rests_on)
        case Restored(compaction=compaction):
            return (compaction, *entry.rests_on)
    return entry.rests_on


def targets(entry: ViewChange) -> frozenset[int | str]:
    """Return what a view change acts on: message numbers and tool use ids."""
    match entry:
        case Spilled(tool_use_id=id):
            return frozenset({id})
        case Cleared(ids=ids, inputs=inputs, thinking=thinking):
            return frozenset({*ids, *(short.tool_use_id for short in inputs), *thinking})
        case Snipped(targets=numbers) | Pinned(targets=numbers):
            return frozenset(numbers)
        case Collapsed(first=first, last=last) | Compacted(first=first, last=last):
            return frozenset({first, last})
    return frozenset()


def add_measure(entry: AnyEntry) -> AnyEntry:
    if getattr(entry, "measure", NOTHING) is not NOTHING:
        return entry
    match entry:
        case Said(content=content) | Replied(content=content) | Restored(content=content):
            weight = measure_content(content)
        case Ran(content=result):
            weight = measure_content(result)
        case Compacted(summary=summary):
            weight = measure_content(summary)
        case Spilled(text=text) | Collapsed(text=text):
            weight = measure_content(text)
        case Cleared(texts=texts, measures=()):
            return structs.replace(entry, measures=tuple(map(measure_content, texts)))
        case _:
            return entry
    return structs.replace(entry, measure=weight)
