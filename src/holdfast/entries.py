"""The entries of a log: what happened, and what was decided, one frozen value each.

Past participles, because an entry is written after the fact. Those under "said and done"
bring content; those under "shaped" change what of it the model sees and can be undone;
the rest record the frame, the calls and the bookkeeping. `n` is the entry's number in its
log and the id of the message it brings; it is given by the log when the entry is appended.
Entries carry what was measured when they were made, so that loading never counts again.
"""

from typing import Literal, TypeAlias

from msgspec import Struct, structs

from holdfast.measure import NOTHING, Measure, measure_content
from holdfast.messages import (
    Document,
    Image,
    Json,
    JsonObject,
    Opaque,
    RedactedThinking,
    ResultContent,
    Text,
    Thinking,
    ToolUse,
    Usage,
)

SpokenContent: TypeAlias = tuple[Text | Image | Document | Opaque, ...]
"""Content that may stand on the user's side; a tool's result comes as `Ran`."""

AnswerContent: TypeAlias = tuple[Text | Thinking | RedactedThinking | ToolUse | Opaque, ...]
"""Content that may stand on the model's side."""


class Entry(
    Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    tag_field="entry",
    gc=False,
    weakref=False,
):
    n: int = 0
    """Number in the log, from 1; zero until it is appended."""
    at: float = 0.0
    """Seconds since the epoch."""


class Said(Entry, frozen=True, kw_only=True, tag="said"):
    """A message came in: from the user, or from us on the user's side."""

    content: SpokenContent
    role: Literal["user", "system"] = "user"
    hidden: bool = False
    """For the model only: reminders, attachments, nudges."""
    measure: Measure = NOTHING
    origin: str = ""
    """The message's id in the transcript it was imported from."""


class Replied(Entry, frozen=True, kw_only=True, tag="replied"):
    """The model answered; several entries with one `response_id` are one answer in pieces."""

    response_id: str
    content: AnswerContent
    model: str = ""
    stop_reason: str = ""
    usage: Usage | None = None
    measure: Measure = NOTHING
    origin: str = ""


class Began(Entry, frozen=True, kw_only=True, tag="began"):
    """A tool is about to run. Without a `Ran` after it, it was interrupted, never rerun."""

    tool_use_id: str
    tool: str = ""


class Ran(Entry, frozen=True, kw_only=True, tag="ran"):
    """A tool gave its result."""

    tool_use_id: str
    content: ResultContent = ""
    is_error: bool = False
    extra: JsonObject | None = None
    seconds: float = 0.0
    file: str = ""
    """Where the body lies when it is too large for the log; `content` is then its head."""
    sha256: str = ""
    measure: Measure = NOTHING
    origin: str = ""


class Shaped(Entry, frozen=True, kw_only=True):
    """What every entry that changes the view has in common."""

    drops_thinking: bool = False
    """Thinking after the change is no longer sent: it was bound to the old prefix."""
    rests_on: tuple[int, ...] = ()
    """Entries this one was made from; if one of them is undone, so is this."""
    why: str = ""
    """One plain line for the user."""


class Spilled(Shaped, frozen=True, kw_only=True, tag="spilled"):
    """A result's full text went to disk; `text` stands in for it."""

    tool_use_id: str
    text: str
    file: str
    bytes: int = 0
    sha256: str = ""
    measure: Measure = NOTHING


class Snipped(Shaped, frozen=True, kw_only=True, tag="snipped"):
    """Messages left the view, whole rounds together."""

    targets: tuple[int, ...]


How: TypeAlias = Literal["rewritten", "edited", "server"]


class Cleared(Shaped, frozen=True, kw_only=True, tag="cleared"):
    """Old results were emptied: by us, by an edit in the provider's cache, or by its server."""

    ids: tuple[str, ...]
    texts: tuple[str, ...]
    """What stands in for each result, in the order of `ids`."""
    how: How = "rewritten"
    measures: tuple[Measure, ...] = ()
    inferred: bool = False
    """The provider gave a count only; the ids are our best guess, oldest first."""


class Collapsed(Shaped, frozen=True, kw_only=True, tag="collapsed"):
    """A span of finished work is shown as one line."""

    first: int
    last: int
    text: str
    measure: Measure = NOTHING


class Compacted(Shaped, frozen=True, kw_only=True, tag="compacted"):
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
    measure: Measure = NOTHING
    origin: str = ""


class Restored(Shaped, frozen=True, kw_only=True, tag="restored"):
    """Files, plan, skills and state were brought back after a compaction."""

    compaction: int
    content: SpokenContent
    measure: Measure = NOTHING


class Pinned(Shaped, frozen=True, kw_only=True, tag="pinned"):
    """Messages are kept verbatim by any later compaction, or no longer are."""

    targets: tuple[int, ...]
    on: bool = True


class Undone(Entry, frozen=True, kw_only=True, tag="undone"):
    """Fold as if that entry were not there; what rests on it goes with it."""

    target: int


class Redone(Entry, frozen=True, kw_only=True, tag="redone"):
    """Take an undo back."""

    target: int


class Section(Struct, frozen=True, omit_defaults=True):
    """A named part of the system prompt, as rendered."""

    name: str
    text: str
    scope: Literal["none", "organisation", "global"] = "none"


class Framed(Entry, frozen=True, kw_only=True, tag="framed"):
    """The frame of every request: system sections, tools, instructions, options, as rendered."""

    sections: tuple[Section, ...] = ()
    tools: tuple[JsonObject, ...] = ()
    instructions: str = ""
    options: JsonObject = {}
    """Request parameters that are part of the cached prefix: thinking, effort and the like."""
    betas: tuple[str, ...] = ()
    lifetime: Literal["5m", "1h"] = "5m"
    max_output_tokens: int = 0
    measure: Measure = NOTHING


class Switched(Entry, frozen=True, kw_only=True, tag="switched"):
    """From here on another model answers."""

    model: str
    reason: str = ""


class Asked(Entry, frozen=True, kw_only=True, tag="asked"):
    """A request went out; enough of its shape to say later what moved."""

    source: str = "main"
    options_hash: str = ""
    tool_hashes: dict[str, str] = {}
    section_hashes: dict[str, str] = {}
    chain_length: int = 0
    chain_head: str = ""
    markers: tuple[int, ...] = ()


class CacheBroke(Entry, frozen=True, kw_only=True, tag="cachebroke"):
    """A call read less from the provider's cache than the call before it had left there."""

    cause: str
    """What is to blame: tool, section, message, model, lifetime_5m, provider and so on."""
    detail: str = ""
    """One plain line for the user."""
    source: str = "main"
    first_moved: str = ""
    """The first part of the prefix that was not as before; empty if nothing moved."""
    lost_tokens: int = 0
    """Tokens that could have been read and were not."""
    usd: float = 0.0
    """What that cost; nothing where the model has no published price."""
    expected: str = ""
    """The kind of entry that announced it; empty for a break nobody asked for."""
    provider: str = ""
    """The provider's own word on the miss, where it gives one."""
    diff: str = ""


class Failed(Entry, frozen=True, kw_only=True, tag="failed"):
    """Something went wrong and the session went on."""

    what: str
    error: str
    detail: Json = None


class Titled(Entry, frozen=True, kw_only=True, tag="titled"):
    """What people call this session."""

    title: str


class Imported(Entry, frozen=True, kw_only=True, tag="imported"):
    """Where an imported log came from and what of it has no place in a view."""

    format: str
    source: str
    records: int = 0
    skipped: dict[str, int] = {}
    """Records by kind that carry nothing a model sees."""
    malformed: tuple[tuple[int, str], ...] = ()
    """Line number and reason of each line that could not be read."""
    repaired: dict[str, int] = {}
    """What was mended on the way, by kind: duplicates, orphaned results and so on."""


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
    | Undone
    | Redone
    | Framed
    | Switched
    | Asked
    | CacheBroke
    | Failed
    | Titled
    | Imported
)


def references(entry: Shaped) -> tuple[int, ...]:
    """List the numbers of the entries that a shaping entry rests on."""
    match entry:
        case Snipped(targets=targets) | Pinned(targets=targets):
            return targets + entry.rests_on
        case Collapsed(first=first, last=last) | Compacted(first=first, last=last):
            return (first, last, *entry.rests_on)
        case Restored(compaction=compaction):
            return (compaction, *entry.rests_on)
    return entry.rests_on


def targets(entry: Shaped) -> frozenset[int | str]:
    """Name what a shaping entry acts on: message numbers and tool use ids."""
    match entry:
        case Spilled(tool_use_id=id):
            return frozenset({id})
        case Cleared(ids=ids):
            return frozenset(ids)
        case Snipped(targets=numbers) | Pinned(targets=numbers):
            return frozenset(numbers)
        case Collapsed(first=first, last=last) | Compacted(first=first, last=last):
            return frozenset({first, last})
    return frozenset()


def measured(entry: AnyEntry) -> AnyEntry:
    """Weigh what an entry brings, unless that was done when it was made."""
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
