"""What every model looks like from outside: it streams events for a request.

Deltas are for showing; what counts is `BlockFinished`, which the loop starts tools from, and the
`Reply` that `Finished` carries. A stream that ends without `Finished` is broken. Waiting, retrying
and checking the order of events are left to `retry` and `steady`.
"""

from collections.abc import AsyncIterable, AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from longhold.core.messages import Block, Content, JsonObject, Text, Thinking, Usage
from longhold.core.models.capabilities import Capabilities
from longhold.errors import ModelError, StreamBroken


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    kwargs: JsonObject
    """Exactly what `client.messages.create` takes, without `stream`."""
    betas: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    response_id: str
    model: str
    """The model that answered, as it calls itself."""
    content: Content
    stop_reason: str
    usage: Usage
    stop_sequence: str | None = None
    diagnostics: JsonObject | None = None
    """Why the prompt cache missed, when the provider says."""
    context_management: JsonObject | None = None
    """What the provider cleared on its side."""
    request_id: str = ""
    extra: JsonObject = field(default_factory=dict)
    """Unknown fields of the message, as they came."""

    @property
    def applied(self) -> tuple[JsonObject, ...]:
        """What the provider cleared of the prompt on its side, edit by edit."""
        edits = (self.context_management or {}).get("applied_edits")
        edits = edits if isinstance(edits, list) else ()
        return tuple(edit for edit in edits if isinstance(edit, dict))


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The provider accepted the request; the prompt is paid for from here on."""

    response_id: str
    model: str
    usage: Usage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    index: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingDelta:
    index: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """Something came over the wire that need not be shown: the stream is alive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockFinished:
    index: int
    block: Block


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarted:
    """The attempt failed and another follows: what was shown of this answer is void."""

    attempt: int
    """The number of the attempt that failed, from 1."""
    wait_seconds: float
    error: ModelError


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    reply: Reply


Event: TypeAlias = (
    Started | TextDelta | ThinkingDelta | Pulse | BlockFinished | Restarted | Finished
)


class Model(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def capabilities(self) -> Capabilities: ...

    def stream(self, request: Request) -> AsyncIterator[Event]:
        """Yield the answer as it comes; failures are `ModelError`s."""

    async def count(self, request: Request) -> int | None:
        """Ask the provider how many tokens the prompt has; None where it cannot say."""

    async def close(self) -> None:
        """Release connections and memory."""


async def collect(events: AsyncIterable[Event]) -> Reply:
    async for event in events:
        if isinstance(event, Finished):
            return event.reply
    raise StreamBroken("the stream ended before the answer did; send the request again")


def play(reply: Reply) -> Iterator[Event]:
    """Yield a finished answer as the events it could have come in."""
    yield Started(response_id=reply.response_id, model=reply.model, usage=reply.usage)
    for index, block in enumerate(reply.content):
        match block:
            case Text(text=text):
                yield TextDelta(index=index, text=text)
            case Thinking(thinking=text):
                yield ThinkingDelta(index=index, text=text)
            case _:
                yield Pulse()
        yield BlockFinished(index=index, block=block)
    yield Finished(reply=reply)
