"""The entries of a log: immutable records of events and decisions.

Names are past participles, because an entry is written after its event. This file lists content
first, then changes to the view, then bookkeeping. `n` numbers the entry and identifies its message.
Each entry stores its token measure, so that loading a log needs no counting.
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
"""Content allowed in a user message. Tool results are `Ran` entries."""

AnswerContent: TypeAlias = tuple[Text | Thinking | RedactedThinking | ToolUse | Opaque, ...]


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
    """The entry's number in the log, counted from 1. It is 0 until the entry is appended."""
    at: float = 0.0
    """Unix time in seconds."""


class Section(Struct, frozen=True, omit_defaults=True):
    name: str
    text: str
    scope: Literal["none", "organisation", "global"] = "none"


class Source(Struct, frozen=True, omit_defaults=True):
    """An instruction file included in a frame or a message, as it was when read."""

    file: str
    kind: Literal["user", "project", "local"] = "project"
    measure: Measure = NOTHING
    digest: str = ""
    """Digest of the text, or "gone" once the model has been informed that the file was removed."""


class Said(Entry, frozen=True, kw_only=True, tag="said"):
    """A message with the role `user`, from the user or from the program."""

    content: SpokenContent
    role: Literal["user", "system"] = "user"
    hidden: bool = False
    """The message is shown only to the model, such as a reminder or an attachment."""
    sources: tuple[Source, ...] = ()
    """Instruction files in this message: files near one the model used, or changed files."""
    servers: dict[str, str] = {}
    """The MCP servers described in this message and their digests. A removed server has ""."""
    measure: Measure = NOTHING
    origin: str = ""
    """The message's id in the transcript it was imported from."""
    mail: str = ""
    """For mail from another agent: the mailbox, and the read position after this mail."""
    is_outside: bool = False
    """For mail from another session: the sender may have read untrusted text."""


class Replied(Entry, frozen=True, kw_only=True, tag="replied"):
    """An answer of the model. Parts of one answer share a `response_id` and follow one `Asked`."""

    response_id: str
    content: AnswerContent
    model: str = ""
    stop_reason: str = ""
    usage: Usage | None = None
    applied: tuple[JsonObject, ...] = ()
    renamed: dict[str, str] = field(default_factory=dict)
    """Maps the ids that Longhold gave to repeated tool uses to the provider's original ids."""
    thinking: str = ""
    """The thinking level of the call, such as "high" or "off". It is "" if unknown."""
    measure: Measure = NOTHING
    origin: str = ""


class Began(Entry, frozen=True, kw_only=True, tag="began"):
    """A tool is about to run. Without a later `Ran`, it counts as interrupted and is not rerun."""

    tool_use_id: str
    tool: str = ""


class Ran(Entry, frozen=True, kw_only=True, tag="ran"):
    tool_use_id: str
    content: ResultContent = ""
    is_error: bool = False
    exit_status: int | None = None
    """Exit status of a command that Longhold did not stop. It is negative after a signal."""
    refused: str | None = None
    """The user's words when refusing the call, possibly "". Other results have None."""
    extra: JsonObject | None = None
    seconds: float = 0.0
    file: str = ""
    """The file with a body that is too large for the log. `content` then has only its beginning."""
    sha256: str = ""
    measure: Measure = NOTHING
    origin: str = ""


class Framed(Entry, frozen=True, kw_only=True, tag="framed"):
    """The part that all requests share: system sections, tools, instructions and options."""

    sections: tuple[Section, ...] = ()
    tools: tuple[JsonObject, ...] = ()
    instructions: str = ""
    sources: tuple[Source, ...] = ()
    servers: dict[str, str] = {}
    options: JsonObject = field(default_factory=dict)
    """Request parameters that are part of the cached prefix, such as thinking and effort."""
    betas: tuple[str, ...] = ()
    lifetime: Literal["5m", "1h"] = "5m"
    system_lifetime: Literal["5m", "1h"] = "5m"
    """Minimum cache lifetime of the system prompt and tools, which rarely change."""
    held: int = 0
    """Messages before this entry are also cached for an hour."""
    cached: bool = True
    """Whether requests have cache breakpoints. This is fixed when the session begins."""
    max_output_tokens: int = 0
    rests_on: tuple[int, ...] = ()
    """The compaction that caused this frame. Undoing it restores the previous frame."""
    measure: Measure = NOTHING


class Switched(Entry, frozen=True, kw_only=True, tag="switched"):
    model: str
    reason: str = ""


class Asked(Entry, frozen=True, kw_only=True, tag="asked"):
    """A request was sent. Its hashes show later which part of the prefix changed."""

    source: str = "main"
    options_hash: str = ""
    tool_hashes: dict[str, str] = field(default_factory=dict)
    section_hashes: dict[str, str] = field(default_factory=dict)
    chain_length: int = 0
    chain_head: str = ""
    markers: tuple[int, ...] = ()


class CacheBroke(Entry, frozen=True, kw_only=True, tag="cachebroke"):
    """A call read less from the provider's cache than the previous call had left there."""

    cause: str
    """The cause, for example `tool`, `section`, `message`, `model`, `lifetime_5m` or `provider`."""
    detail: str = ""
    """One line that explains the break to the user."""
    source: str = "main"
    first_moved: str = ""
    """The first part of the prefix that changed, or "" if none did."""
    lost_tokens: int = 0
    """Tokens that missed the cache although they could have been read from it."""
    usd: float = 0.0
    """Cost of the lost tokens in US dollars, or 0 if the model has no published price."""
    expected: str = ""
    """Kind of the entry that explains the break, or "" if none does."""
    provider: str = ""
    diff: str = ""
    """A file that shows the change, or the change itself if there is no file."""


class ViewChange(Entry, frozen=True, kw_only=True):
    """A change to the model's view, which can be undone."""

    drops_thinking: bool = False
    """Later thinking is no longer sent, because the provider bound it to the old prefix."""
    rests_on: tuple[int, ...] = ()
    """Entries that this change is based on. Undoing one of them undoes this change."""
    why: str = ""
    """One line that explains the change to the user."""
    rule: str = ""
    """The rule that decided on the change, by its name in `core.policy.decide`."""
    lost: tuple[str, ...] = ()
    """The rules that did not apply, each with its reason."""


class Spilled(ViewChange, frozen=True, kw_only=True, tag="spilled"):
    """A result was stored on disk, or equals an earlier one. The model is shown `text`."""

    tool_use_id: str
    text: str
    file: str = ""
    """The file with the full result. It is "" for a repeated result, which only the log has."""
    same_as: str = ""
    """The tool use with an identical result that is still shown."""
    bytes: int = 0
    sha256: str = ""
    measure: Measure = NOTHING


class Snipped(ViewChange, frozen=True, kw_only=True, tag="snipped"):
    """Whole rounds of messages were removed from the view."""

    targets: tuple[int, ...]


How: TypeAlias = Literal["rewritten", "edited", "server", "limit"]


class ClearedInput(Struct, frozen=True):
    """A tool call's input as sent after clearing, with placeholders for its long texts."""

    tool_use_id: str
    input: JsonObject


class Cleared(ViewChange, frozen=True, kw_only=True, tag="cleared"):
    """Old tool results were cleared by Longhold, by a cache edit, or by the provider.

    Long inputs and old thinking may be cleared with them. While the cache is cold, they may be
    cleared alone.
    """

    ids: tuple[str, ...]
    texts: tuple[str, ...]
    how: How = "rewritten"
    measures: tuple[Measure, ...] = ()
    inferred: bool = False
    """The provider reported only a count. Longhold assumes it cleared the oldest results."""
    place: int = 0
    """For cache edits: the message with which every request repeats them."""
    inputs: tuple[ClearedInput, ...] = ()
    thinking: tuple[int, ...] = ()
    saved_tokens: int = 0
    """Freed tokens as counted by Longhold or the provider, or 0 if unknown."""
    cost_usd: float = 0.0
    """Expected extra cost of the next call in US dollars. It is negative if the call is cheaper."""
    saves_usd: float = 0.0


class Collapsed(ViewChange, frozen=True, kw_only=True, tag="collapsed"):
    first: int
    last: int
    text: str
    measure: Measure = NOTHING


class Compacted(ViewChange, frozen=True, kw_only=True, tag="compacted"):
    """A span of history is shown as a summary. Pinned messages in it are kept."""

    first: int
    last: int
    summary: SpokenContent
    kind: Literal["full", "from", "up_to"] = "full"
    trigger: Literal["manual", "auto", "reactive"] = "auto"
    by: Literal["model", "notes", "digest", "provider", "person", "import"] = "model"
    kept: tuple[int, int] | None = None
    before_tokens: int = 0
    after_tokens: int = 0
    focus: str = ""
    survived: float = 1.0
    """Share of the exact names from recent messages and directives that the summary contains."""
    seconds: float = 0.0
    usage: Usage | None = None
    measure: Measure = NOTHING
    origin: str = ""


class Restored(ViewChange, frozen=True, kw_only=True, tag="restored"):
    compaction: int
    content: SpokenContent
    measure: Measure = NOTHING


class Pinned(ViewChange, frozen=True, kw_only=True, tag="pinned"):
    """Later compactions keep these messages verbatim, or no longer keep them."""

    targets: tuple[int, ...]
    on: bool = True


class Rewound(ViewChange, frozen=True, kw_only=True, tag="rewound"):
    """Messages after an entry are no longer part of the conversation.

    The program that owns the messages went back or changed them. Decisions about the remaining
    messages stay in force, except decisions that also covered removed messages.
    """

    after: int
    """The last entry kept. Messages, answers and results after it are removed."""
    reason: Literal["shorter", "edited", "compacted", "replaced", "retracted"] = "edited"


class Undone(Entry, frozen=True, kw_only=True, tag="undone"):
    """An entry is ignored, together with entries that depend on it."""

    target: int


class Redone(Entry, frozen=True, kw_only=True, tag="redone"):
    target: int


# Bookkeeping does not change the view. Hidden messages inform the model where necessary.


class Failed(Entry, frozen=True, kw_only=True, tag="failed"):
    what: str
    error: str
    detail: Json = None


class Withheld(Entry, frozen=True, kw_only=True, tag="withheld"):
    """A budget did not allow a call. This is not a failure. Older versions wrote `Failed`."""

    what: str
    why: str


class Titled(Entry, frozen=True, kw_only=True, tag="titled"):
    title: str


class Imported(Entry, frozen=True, kw_only=True, tag="imported"):
    """The source of an imported log, and a count of the records that the model never sees."""

    format: str
    source: str
    records: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    """Number of records without content for the model, by kind."""
    malformed: tuple[tuple[int, str], ...] = ()
    repaired: dict[str, int] = field(default_factory=dict)


class ToolTraits(Struct, frozen=True, kw_only=True, omit_defaults=True):
    kind: Literal["", "read", "search", "shell", "fetch", "write", "ask", "other"] = ""
    """The kind of the tool. With "", Longhold derives the kind from the tool's name."""
    clearable: bool | None = None
    """Whether old results may be cleared. With None, the kind decides."""
    limit_chars: int | None = None
    """Results with more characters are spilled. With None, the kind decides."""


class Configured(Entry, frozen=True, kw_only=True, tag="configured"):
    """The program's session setup, which is restored on resume. The newest entry counts."""

    dialect: Literal["", "anthropic", "openai", "responses"] = ""
    """The API dialect of requests. With "", Longhold derives it from the model's name."""
    max_tokens: int = 0
    settings: dict[str, dict[str, Json]] = field(default_factory=dict)
    """The program's settings that differ from the defaults, by group and key."""
    tools: dict[str, ToolTraits] = field(default_factory=dict)
    history: bool = False
    """The model has the History tool, which the session executes."""
    paths: bool = False
    """The model's tools can open local files, so Longhold shows it their paths."""
    memory: bool = False
    """The session has long-term memory, and the model has the memory tool."""
    client: str = ""
    """The name that the client of the gateway gives itself."""
    simulated: bool = False
    """The simulator answers, so calls cost no real money."""
    why: str = ""


class Followed(Entry, frozen=True, kw_only=True, tag="followed"):
    """The program's own message list has been copied to the log up to this entry."""

    kept: int = 0
    """The number of leading messages that did not change since the previous list."""
    keys: tuple[str, ...] = ()
    """A digest of each message after the first `kept` messages."""
    ends: tuple[int, ...] = ()
    """The last entry written for each of these messages."""


class Swept(Entry, frozen=True, kw_only=True, tag="swept"):
    """The retention setting or a size limit removed files of the session."""

    files: tuple[str, ...]
    bytes: int = 0
    why: str = ""


class Dropped(Entry, frozen=True, kw_only=True, tag="dropped"):
    """Messages were marked for removal at the next change of the prefix, or unmarked."""

    targets: tuple[int, ...]
    on: bool = True
    by: Literal["user", "tool"] = "user"
    why: str = ""


class Forked(Entry, frozen=True, kw_only=True, tag="forked"):
    """A call outside the conversation, by a fork that shares its prefix or by an agent."""

    source: str
    """The caller, for example `compact`, `notes`, `memory` or `agent:<id>`."""
    model: str = ""
    usage: Usage
    """Usage of the call. For an incomplete answer, this is the known part."""
    turn: int = 1
    stop_reason: str = ""
    """The model's stop reason, or `aborted` or `broken`."""
    seconds: float = 0.0
    response_id: str = ""
    """The provider's id of the answer. Copies of the answer in a transcript count as one call."""
    measure: Measure = NOTHING
    """Measure of an imported answer's text, because its recorded usage may be incomplete."""


class Noted(Entry, frozen=True, kw_only=True, tag="noted"):
    cursor: int
    """The number of the last message that the notes cover."""
    by: Literal["engine", "model", "person"] = "engine"
    tokens: int = 0
    context_tokens: int = 0
    sha256: str = ""
    usage: Usage | None = None


class Remembered(Entry, frozen=True, kw_only=True, tag="remembered"):
    """Memories were written to the store, or proposed to the user."""

    cursor: int
    names: tuple[str, ...] = ()
    forgot: tuple[str, ...] = ()
    commit: str = ""
    inbox: bool = False
    by: Literal["agent", "extraction", "person"] = "extraction"
    usage: Usage | None = None


class Recalled(Entry, frozen=True, kw_only=True, tag="recalled"):
    names: tuple[str, ...]
    said: int = 0
    """The number of the message that shows the memories."""
    bytes: int = 0


class Dreamt(Entry, frozen=True, kw_only=True, tag="dreamt"):
    commit: str = ""
    by: Literal["engine", "model"] = "engine"
    merged: int = 0
    marked: int = 0
    removed: int = 0
    why: str = ""
    names: tuple[str, ...] = ()
    dropped: dict[str, str] = field(default_factory=dict)
    usage: Usage | None = None


class Directed(Entry, frozen=True, kw_only=True, tag="directed"):
    """The state of a user's directive changed."""

    message: int
    state: Literal["open", "done", "cancelled", "replaced"]
    rests_on: int = 0
    """The message that changed the state, or 0 if a user command did."""
    by: Literal["user", "phrase", "model"] = "user"


class Spawned(Entry, frozen=True, kw_only=True, tag="spawned"):
    """An agent was started, or restarted from its log."""

    agent: str
    """The agent's id, which is also the name of its log."""
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
    """Names of the tools the agent may use, even after a restart. None means its parent's tools."""
    mode: Literal["", "ask", "accept_edits", "plan", "bypass"] = ""
    """The agent's permission mode, which a restart may not exceed. Older logs have ""."""


class Ended(Entry, frozen=True, kw_only=True, tag="ended"):
    """An agent ended. A resumed agent can end again."""

    agent: str
    state: Literal["completed", "failed", "stopped", "interrupted"]
    text: str = ""
    file: str = ""
    is_delivered: bool = False
    """The parent's model knows that the agent ended, or does not need to know."""
    by_user: bool = False
    """The user stopped the agent, so only the user may restart it."""
    usage: Usage | None = None


_Content: TypeAlias = Said | Replied | Began | Ran | Framed | Switched | Asked | CacheBroke
_Shown: TypeAlias = Spilled | Snipped | Cleared | Collapsed | Compacted | Restored | Pinned
_Changed: TypeAlias = _Shown | Rewound | Undone | Redone
_Reported: TypeAlias = Failed | Withheld | Noted | Remembered | Recalled | Dreamt | Forked
_Kept: TypeAlias = Titled | Imported | Configured | Followed | Swept | Dropped | Directed
AnyEntry: TypeAlias = _Content | _Changed | _Reported | _Kept | Spawned | Ended


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
