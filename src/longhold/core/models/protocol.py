"""The interface of every model. It streams events for a request and ends with `Finished`."""

from collections.abc import AsyncIterable, AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from longhold.core.messages import Block, Content, JsonObject, Text, Thinking, Usage
from longhold.core.models.capabilities import Capabilities
from longhold.errors import ModelError, StreamBroken


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    kwargs: JsonObject  # the arguments of `client.messages.create`, without `stream`
    betas: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    response_id: str
    model: str
    content: Content
    stop_reason: str
    usage: Usage
    stop_sequence: str | None = None
    diagnostics: JsonObject | None = None  # why the prompt cache missed, if the provider reports it
    context_management: JsonObject | None = None
    request_id: str = ""
    extra: JsonObject = field(default_factory=dict)

    @property
    def applied(self) -> tuple[JsonObject, ...]:
        edits = (self.context_management or {}).get("applied_edits")
        edits = edits if isinstance(edits, list) else ()
        return tuple(edit for edit in edits if isinstance(edit, dict))


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The provider accepted the request. The prompt is billed from now on."""

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
    """The stream is alive. The event has no content to show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockFinished:
    index: int
    block: Block


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarted:
    """The attempt failed and another follows. Discard everything shown of this answer."""

    attempt: int  # number of the failed attempt, from 1
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
        """Yield the answer as it arrives. Failures raise `ModelError`."""

    async def count(self, request: Request) -> int | None:
        """Ask the provider for the prompt's token count, or return None if it cannot count."""

    async def close(self) -> None:
        """Release connections and memory."""


async def collect(events: AsyncIterable[Event]) -> Reply:
    async for event in events:
        if isinstance(event, Finished):
            return event.reply
    raise StreamBroken("the stream ended before the answer was complete; send the request again")


def play(reply: Reply) -> Iterator[Event]:
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
