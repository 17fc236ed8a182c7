"""A provider that needs no network: it repeats the last text of the conversation."""

from collections.abc import AsyncIterator, Iterator

from longhold.core.messages import Text, Usage
from longhold.core.models.capabilities import Capabilities, capabilities
from longhold.core.models.protocol import Event, Reply, Request, play
from longhold.core.models.registry import ModelOptions

WINDOW_TOKENS = 32_000
CHARS_PER_TOKEN = 4


class EchoModel:
    def __init__(self, name: str, options: ModelOptions) -> None:
        self.name = name
        self._answers = 0
        known = {"window_tokens": WINDOW_TOKENS, **(options.overrides or {})}
        self.capabilities: Capabilities = capabilities(name, overrides=known)

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        self._answers += 1
        said = [text for message in request.kwargs["messages"] for text in texts_in(message)]
        last = said[-1] if said else "Nothing was said."
        usage = Usage(
            input_tokens=sum(map(len, said)) // CHARS_PER_TOKEN + 1,
            output_tokens=len(last) // CHARS_PER_TOKEN + 1,
        )
        reply = Reply(
            response_id=f"echo-{self._answers}",
            model=self.name,
            content=(Text(text=last),),
            stop_reason="end_turn",
            usage=usage,
        )
        for event in play(reply):
            yield event

    async def count(self, request: Request) -> int | None:
        return None

    async def close(self) -> None:
        pass


def texts_in(message: dict) -> Iterator[str]:
    content = message["content"]
    if isinstance(content, str):
        yield content
        return
    yield from (block["text"] for block in content if block["type"] == "text")
