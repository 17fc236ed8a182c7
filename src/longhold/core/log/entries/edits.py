"""What changes the view: each can be undone, and says in a plain line why it is there."""

from typing import Literal, TypeAlias

from msgspec import Struct

from longhold.core.log.entries.content import Entry, SpokenContent
from longhold.core.messages import JsonObject, Usage
from longhold.core.messages.measure import NOTHING, Measure


class ViewChange(Entry, frozen=True, kw_only=True):
    drops_thinking: bool = False
    """Thinking after the change is no longer sent: it was bound to the old prefix."""
    rests_on: tuple[int, ...] = ()
    """Entries this one was made from; if one of them is undone, so is this."""
    why: str = ""
    """One plain line for the user."""


class Spilled(ViewChange, frozen=True, kw_only=True, tag="spilled"):
    """A result's full text went to disk, or is that of an earlier result; `text` is shown instead."""

    tool_use_id: str
    text: str
    file: str = ""
    """Where the whole lies; nowhere but in the log for a repetition."""
    same_as: str = ""
    """The tool use whose result was the same, byte for byte, and is shown."""
    bytes: int = 0
    sha256: str = ""
    measure: Measure = NOTHING


class Snipped(ViewChange, frozen=True, kw_only=True, tag="snipped"):
    """Messages left the view, whole rounds together."""

    targets: tuple[int, ...]


How: TypeAlias = Literal["rewritten", "edited", "server"]


class ClearedInput(Struct, frozen=True):
    """What is sent instead of a call's input, its long texts replaced by lines."""

    tool_use_id: str
    input: JsonObject


class Cleared(ViewChange, frozen=True, kw_only=True, tag="cleared"):
    """Old results were emptied: by us, by an edit in the provider's cache, or by its server.

    With them, or by themselves while the cache is dead, long inputs and old thinking leave.
    """

    ids: tuple[str, ...]
    texts: tuple[str, ...]
    """What stands in for each result, in the order of `ids`."""
    how: How = "rewritten"
    measures: tuple[Measure, ...] = ()
    inferred: bool = False
    """The provider gave a count only; the ids are our best guess, oldest first."""
    place: int = 0
    """For edits in the provider's cache: the message they were first sent with, and are again."""
    inputs: tuple[ClearedInput, ...] = ()
    thinking: tuple[int, ...] = ()
    """The answers whose thinking is no longer sent."""
    saved_tokens: int = 0
    """How much it freed by the count of whoever cleared; 0 where nobody counted."""
    cost_usd: float = 0.0
    """How much more the next call was expected to cost; negative if less."""
    saves_usd: float = 0.0
    """What each later call was expected to save."""


class Collapsed(ViewChange, frozen=True, kw_only=True, tag="collapsed"):
    """A span of finished work is shown as one line."""

    first: int
    last: int
    text: str
    measure: Measure = NOTHING


class Compacted(ViewChange, frozen=True, kw_only=True, tag="compacted"):
    """A span of history is shown as a summary; pinned messages within it stay."""

    first: int
    last: int
    summary: SpokenContent
    kind: Literal["full", "from", "up_to"] = "full"
    trigger: Literal["manual", "auto", "reactive"] = "auto"
    by: Literal["model", "notes", "digest", "provider", "person", "import"] = "model"
    kept: tuple[int, int] | None = None
    """First and last message that were kept verbatim beside the summary."""
    before_tokens: int = 0
    after_tokens: int = 0
    focus: str = ""
    """What the summary was asked to dwell on, by a person or a hook."""
    survived: float = 1.0
    """The share of exact names in recent and directing messages that the summary still has."""
    seconds: float = 0.0
    usage: Usage | None = None
    """What writing the summary took."""
    measure: Measure = NOTHING
    origin: str = ""


class Restored(ViewChange, frozen=True, kw_only=True, tag="restored"):
    """Files, plan, skills and state were brought back after a compaction."""

    compaction: int
    content: SpokenContent
    measure: Measure = NOTHING


class Pinned(ViewChange, frozen=True, kw_only=True, tag="pinned"):
    """Messages are kept verbatim by any later compaction, or no longer are."""

    targets: tuple[int, ...]
    on: bool = True


class Rewound(ViewChange, frozen=True, kw_only=True, tag="rewound"):
    """What was said after an entry is no longer part of the conversation.

    The owner of the messages went back, or changed them. Decisions about what stays remain in
    force; those that also covered what is gone do not.
    """

    after: int
    """The last entry that stays; of later ones, what was said, answered and returned is gone."""
    reason: Literal["shorter", "edited", "compacted", "replaced", "retracted"] = "edited"


class Undone(Entry, frozen=True, kw_only=True, tag="undone"):
    """Fold as if that entry were not there; what rests on it goes with it."""

    target: int


class Redone(Entry, frozen=True, kw_only=True, tag="redone"):
    """Take an undo back."""

    target: int
