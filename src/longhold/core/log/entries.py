"""The entries of a log: what happened, and what was decided, one frozen value each.

Past participles, because an entry is written after the fact. Content comes first, then what changes
the view of it, then bookkeeping. `n` is the entry's number in its log and the id of the message it
brings. Entries carry their measure, so that loading a log never counts again.
"""

from typing import Literal, TypeAlias

from msgspec import Struct, field, structs

from longhold.core.messages import (
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
from longhold.core.messages.measure import NOTHING, Measure, measure_content

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


class Section(Struct, frozen=True, omit_defaults=True):
    """A named part of the system prompt, as rendered."""

    name: str
    text: str
    scope: Literal["none", "organisation", "global"] = "none"


class Source(Struct, frozen=True, omit_defaults=True):
    """An instruction file whose text is in a frame or a message, as it was when it was read."""

    file: str
    kind: Literal["user", "project", "local"] = "project"
    measure: Measure = NOTHING
    digest: str = ""
    """Of the text; "gone" once the model was told that the file is."""


class Said(Entry, frozen=True, kw_only=True, tag="said"):
    """A message on the user's side: from the user, or from the program."""

    content: SpokenContent
    role: Literal["user", "system"] = "user"
    hidden: bool = False
    """For the model only: reminders, attachments, nudges."""
    sources: tuple[Source, ...] = ()
    """Instruction files this message brings: near what was touched, or changed since the frame."""
    servers: dict[str, str] = {}
    """MCP servers this message describes, each with a digest; an empty one for a server that left."""
    measure: Measure = NOTHING
    origin: str = ""
    """The message's id in the transcript it was imported from."""
    mail: str = ""
    """For mail from another agent: which mailbox, and how far it is read with this."""


class Replied(Entry, frozen=True, kw_only=True, tag="replied"):
    """The model answered; an answer may come in pieces, with one `response_id` after one `Asked`."""

    response_id: str
    content: AnswerContent
    model: str = ""
    stop_reason: str = ""
    usage: Usage | None = None
    applied: tuple[JsonObject, ...] = ()
    """What the provider says it cleared of the prompt on its side."""
    renamed: dict[str, str] = field(default_factory=dict)
    """For each tool use whose id was taken: the id the provider gave it."""
    measure: Measure = NOTHING
    origin: str = ""


class Began(Entry, frozen=True, kw_only=True, tag="began"):
    """A tool is about to run. Without a `Ran` after it, it was interrupted and is not rerun."""

    tool_use_id: str
    tool: str = ""


class Ran(Entry, frozen=True, kw_only=True, tag="ran"):
    """A tool returned its result."""

    tool_use_id: str
    content: ResultContent = ""
    is_error: bool = False
    exit_status: int | None = None
    """Of a command that ended by itself; a signal is its negative number."""
    refused: str | None = None
    """What the user said when refusing the call, "" without a word; None if they did not refuse."""
    extra: JsonObject | None = None
    seconds: float = 0.0
    file: str = ""
    """Where the body lies when it is too large for the log; `content` is then its head."""
    sha256: str = ""
    measure: Measure = NOTHING
    origin: str = ""


class Framed(Entry, frozen=True, kw_only=True, tag="framed"):
    """The frame of every request: system sections, tools, instructions, options, as rendered."""

    sections: tuple[Section, ...] = ()
    tools: tuple[JsonObject, ...] = ()
    instructions: str = ""
    sources: tuple[Source, ...] = ()
    """The files the instructions are from, in their order."""
    servers: dict[str, str] = {}
    """The MCP servers the prompt describes, each with a digest of its description."""
    options: JsonObject = field(default_factory=dict)
    """Request parameters that are part of the cached prefix: thinking, effort and the like."""
    betas: tuple[str, ...] = ()
    lifetime: Literal["5m", "1h"] = "5m"
    cached: bool = True
    """Requests carry markers; decided when the session began, whatever the setting says later."""
    max_output_tokens: int = 0
    rests_on: tuple[int, ...] = ()
    """The compaction it was made anew for; undone with it, the frame before is in force again."""
    measure: Measure = NOTHING


class Switched(Entry, frozen=True, kw_only=True, tag="switched"):
    """Another model answers from here on."""

    model: str
    reason: str = ""


class Asked(Entry, frozen=True, kw_only=True, tag="asked"):
    """A request was sent; enough of its shape to find out later what moved."""

    source: str = "main"
    options_hash: str = ""
    tool_hashes: dict[str, str] = field(default_factory=dict)
    section_hashes: dict[str, str] = field(default_factory=dict)
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
    """The kind of entry that announced it; empty for a break that no entry explains."""
    provider: str = ""
    """The provider's own word on the miss, where it gives one."""
    diff: str = ""
    """The file that shows what moved, or the text itself where there is none."""


class ViewChange(Entry, frozen=True, kw_only=True):
    """Changes what the model sees; it can be undone."""

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


# Bookkeeping changes no view: what the model is to see of it comes as a hidden message.


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
    skipped: dict[str, int] = field(default_factory=dict)
    """Records by kind that carry nothing a model sees."""
    malformed: tuple[tuple[int, str], ...] = ()
    """Line number and reason of each line that could not be read."""
    repaired: dict[str, int] = field(default_factory=dict)
    """What was mended on the way, by kind: duplicates, orphaned results and so on."""


class ToolTraits(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a program declares about one of its tools."""

    kind: Literal["", "read", "search", "shell", "fetch", "write", "ask", "other"] = ""
    """What it does; '' leaves that to its name."""
    clearable: bool | None = None
    """Whether old results may be cleared; None leaves that to its kind."""
    limit_chars: int | None = None
    """Longer results are spilled; None leaves that to its kind."""


class Configured(Entry, frozen=True, kw_only=True, tag="configured"):
    """How a program set its session up: what a resume takes up again. The newest one counts."""

    dialect: Literal["", "anthropic", "openai", "responses"] = ""
    """What requests are worded for; '' is told by the model's name."""
    max_tokens: int = 0
    """The output limit the program chose for each answer; 0 is none."""
    settings: dict[str, dict[str, Json]] = field(default_factory=dict)
    """Settings the program gave that are not the defaults, by group and key."""
    tools: dict[str, ToolTraits] = field(default_factory=dict)
    history: bool = False
    """The model has the History tool, which the session answers."""
    paths: bool = False
    """The model's tools can open files of this machine, so it is shown where they lie."""
    memory: bool = False
    """The session has long-term memory, and the model its tool."""
    why: str = ""


class Followed(Entry, frozen=True, kw_only=True, tag="followed"):
    """The program's own list of messages is in the log up to here."""

    kept: int = 0
    """How many of its leading messages are those of the list before."""
    keys: tuple[str, ...] = ()
    """A digest of each message after them."""
    ends: tuple[int, ...] = ()
    """The last entry that each of these brought."""


class Swept(Entry, frozen=True, kw_only=True, tag="swept"):
    """Files beside the log were removed, by the user's retention or to stay within a cap."""

    files: tuple[str, ...]
    """Names within the session's directory."""
    bytes: int = 0
    why: str = ""


class Dropped(Entry, frozen=True, kw_only=True, tag="dropped"):
    """Messages were marked to leave the view, or no longer are; they leave when the prefix may move."""

    targets: tuple[int, ...]
    on: bool = True
    by: Literal["user", "tool"] = "user"
    why: str = ""


class Forked(Entry, frozen=True, kw_only=True, tag="forked"):
    """A call was made beside the conversation; its answer is not part of it.

    By a fork on the conversation's prefix, or by an agent that has a prefix of its own.
    """

    source: str
    """Who asked: compact, notes, memory, agent:<id> and so on."""
    model: str = ""
    usage: Usage
    """What the call cost; of one that was not answered to its end, what is known of that."""
    turn: int = 1
    """Its place among the calls of one fork."""
    stop_reason: str = ""
    """The model's, or `aborted`, or `broken`."""
    seconds: float = 0.0
    response_id: str = ""
    """The provider's id of the answer, where a transcript has it: copies are one call."""
    measure: Measure = NOTHING
    """Of the answer's text, where a transcript has that and the usage may lack it."""


class Noted(Entry, frozen=True, kw_only=True, tag="noted"):
    """The session's notes were brought up to date."""

    cursor: int
    """The last message the notes cover."""
    by: Literal["engine", "model", "person"] = "engine"
    tokens: int = 0
    context_tokens: int = 0
    sha256: str = ""
    usage: Usage | None = None


class Remembered(Entry, frozen=True, kw_only=True, tag="remembered"):
    """Memories were written, or proposed to the user."""

    cursor: int
    """The last message that was looked at."""
    names: tuple[str, ...] = ()
    commit: str = ""
    inbox: bool = False
    by: Literal["agent", "extraction", "person"] = "extraction"
    usage: Usage | None = None


class Recalled(Entry, frozen=True, kw_only=True, tag="recalled"):
    """Memories were shown to the model."""

    names: tuple[str, ...]
    said: int = 0
    """The message that shows them."""
    bytes: int = 0


class Dreamt(Entry, frozen=True, kw_only=True, tag="dreamt"):
    """Memories were consolidated."""

    commit: str = ""
    by: Literal["engine", "model"] = "engine"
    merged: int = 0
    marked: int = 0
    removed: int = 0
    why: str = ""
    names: tuple[str, ...] = ()
    """The memories that were written or removed."""
    dropped: dict[str, str] = field(default_factory=dict)
    """Changes that were left out, by memory, each with the reason."""
    usage: Usage | None = None


class Directed(Entry, frozen=True, kw_only=True, tag="directed"):
    """The state of something the user asked for changed."""

    message: int
    """The user's message that holds the directive."""
    state: Literal["open", "done", "cancelled", "replaced"]
    rests_on: int = 0
    """The message that says so; none for a command of the user's."""
    by: Literal["user", "phrase", "model"] = "user"


class Spawned(Entry, frozen=True, kw_only=True, tag="spawned"):
    """An agent was started, or started again from its log."""

    agent: str
    """Its id; its log lies beside this one under that name."""
    kind: str = "general"
    name: str = ""
    task: str = ""
    tool_use_id: str = ""
    is_background: bool = False
    is_fork: bool = False
    worktree: str = ""
    branch: str = ""
    team: str = ""
    tools: tuple[str, ...] | None = None
    """What it could use, by name; started again it gets no more. None is whatever its parent has."""
    mode: Literal["", "ask", "accept_edits", "plan", "bypass"] = ""
    """What it worked in; started again it works in no wider one. '' is in an older log."""


class Ended(Entry, frozen=True, kw_only=True, tag="ended"):
    """An agent ended; resumed, it may end again."""

    agent: str
    state: Literal["completed", "failed", "stopped", "interrupted"]
    text: str = ""
    """Its last answer, cut to what is shown."""
    file: str = ""
    is_delivered: bool = False
    """The parent's model has been informed, or there is nothing to inform it of."""
    by_user: bool = False
    """The user stopped it: only the user starts it again."""
    usage: Usage | None = None


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
