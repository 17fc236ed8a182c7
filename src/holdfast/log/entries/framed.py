"""The frame of requests, the calls that went out, and what became of the cache."""

from typing import Literal

from msgspec import Struct, field

from holdfast.log.entries.entry import Entry
from holdfast.messages import JsonObject
from holdfast.messages.measure import NOTHING, Measure


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


class Framed(Entry, frozen=True, kw_only=True, tag="framed"):
    """The frame of every request: system sections, tools, instructions, options, as rendered."""

    sections: tuple[Section, ...] = ()
    tools: tuple[JsonObject, ...] = ()
    instructions: str = ""
    sources: tuple[Source, ...] = ()
    """The files the instructions are from, in their order."""
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
