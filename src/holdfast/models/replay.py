"""Answers recorded earlier, given again in their order.

Replies come in, from a log or from a test; each request gets the next one. What was asked
does not matter: whoever replays decides whether the question still fits.
"""

from collections.abc import AsyncIterator, Iterable, Mapping

from holdfast.errors import RequestRejected
from holdfast.models.capabilities import Capabilities, capabilities
from holdfast.models.protocol import Event, Reply, Request, play


class ReplayModel:
    """Gives recorded answers, one per request."""

    def __init__(
        self,
        replies: Iterable[Reply],
        *,
        name: str = "replay",
        overrides: Mapping[str, object] | None = None,
    ) -> None:
        self._replies = iter(replies)
        self._name = name
        self._capabilities = capabilities(name, overrides)
        self.requests: list[Request] = []

    @property
    def name(self) -> str:
        return self._name

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        """Give the next recorded answer."""
        self.requests.append(request)
        reply = next(self._replies, None)
        if reply is None:
            count = len(self.requests) - 1
            raise RequestRejected(f"the recording is over after {count} answers; record more")
        for event in play(reply):
            yield event

    async def count(self, request: Request) -> int | None:
        """Answer None: a recording does not count."""
        return None

    async def close(self) -> None:
        """Nothing to let go of."""
