"""Bookkeeping: failures, the title, where a log came from, what is gone; and what was done beside.

Forks, notes, memories, dreams and agents do not change the view: what the model is to see of them
is a hidden message.
"""

from typing import Literal

from msgspec import Struct, field

from longhold.core.log.entries.content import Entry
from longhold.core.messages import Json, Usage
from longhold.core.messages.measure import NOTHING, Measure


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
