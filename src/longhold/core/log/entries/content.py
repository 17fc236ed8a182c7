"""What every entry has; what was said and done, and the frame it was sent in."""

from typing import Literal, TypeAlias

from msgspec import Struct, field

from longhold.core.messages import (
    Document,
    Image,
    JsonObject,
    Opaque,
    RedactedThinking,
    ResultContent,
    Text,
    Thinking,
    ToolUse,
    Usage,
)
from longhold.core.messages.measure import NOTHING, Measure

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
