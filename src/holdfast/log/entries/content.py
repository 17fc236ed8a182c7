"""What was said and done: the entries that bring content."""

from typing import Literal, TypeAlias

from holdfast.log.entries.entry import Entry
from holdfast.log.entries.framed import Source
from holdfast.messages import (
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
from holdfast.messages.measure import NOTHING, Measure

SpokenContent: TypeAlias = tuple[Text | Image | Document | Opaque, ...]
"""Content that may stand on the user's side; a tool's result comes as `Ran`."""

AnswerContent: TypeAlias = tuple[Text | Thinking | RedactedThinking | ToolUse | Opaque, ...]
"""Content that may stand on the model's side."""


class Said(Entry, frozen=True, kw_only=True, tag="said"):
    """A message on the user's side: from the user, or from the program."""

    content: SpokenContent
    role: Literal["user", "system"] = "user"
    hidden: bool = False
    """For the model only: reminders, attachments, nudges."""
    sources: tuple[Source, ...] = ()
    """Instruction files this message brings, because something near them was touched."""
    measure: Measure = NOTHING
    origin: str = ""
    """The message's id in the transcript it was imported from."""
    mail: str = ""
    """For mail from another agent: which mailbox, and how far it is read with this."""


class Replied(Entry, frozen=True, kw_only=True, tag="replied"):
    """The model answered; several entries with one `response_id` are one answer in pieces."""

    response_id: str
    content: AnswerContent
    model: str = ""
    stop_reason: str = ""
    usage: Usage | None = None
    applied: tuple[JsonObject, ...] = ()
    """What the provider says it cleared of the prompt on its side."""
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
    extra: JsonObject | None = None
    seconds: float = 0.0
    file: str = ""
    """Where the body lies when it is too large for the log; `content` is then its head."""
    sha256: str = ""
    measure: Measure = NOTHING
    origin: str = ""
