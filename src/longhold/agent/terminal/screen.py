"""What a chat needs of a screen: say, show, read, ask, choose."""

from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

if TYPE_CHECKING:
    from longhold.agent.permissions import Question
    from longhold.core.turn.loop import LoopEvent
    from longhold.core.turn.status import Status

T = TypeVar("T")
Tone: TypeAlias = Literal["plain", "dim", "notice", "error", "user", "document"]
"""How something is said; a document is Markdown."""


class Screen(Protocol):
    @property
    def shows_suggestions(self) -> bool:
        """Whether there is a place for what the user might say next."""
        ...

    async def run(self, chat: Coroutine[Any, Any, T]) -> T:
        """Hold a conversation on this screen, and leave the terminal as it was found."""
        ...

    def say(self, text: str, tone: Tone = "plain") -> None:
        """Print text without disturbing what is being typed."""
        ...

    def show(self, event: "LoopEvent") -> None: ...

    def tool_output(self, line: str) -> None:
        """Show the last line that a running tool printed."""
        ...

    def show_question(self, question: "Question") -> None: ...

    async def words(self) -> str:
        """Wait for what the user says next; raise `EOFError` when they leave."""
        ...

    async def answer(self, question: str) -> str:
        """Wait for the answer to a question, which is never taken for a message."""
        ...

    async def secret(self, question: str) -> str:
        """Wait for an answer that is neither shown nor kept."""
        ...

    async def choose(self, title: str, rows: Sequence[str]) -> int | None:
        """Let the user pick a row; None if they do not want any."""
        ...

    def half_typed(self) -> str: ...

    def draft(self, text: str) -> None:
        """Put text into the input, to be edited and sent."""
        ...

    def suggest(self, text: str) -> None:
        """Offer what the user might say next; '' takes the offer back."""
        ...

    def remind(self, after_seconds: float, lines: Callable[[], str]) -> None:
        """Say this to someone who comes back to the keyboard after so long."""
        ...

    def working(
        self,
        stop: Callable[[], None],
        *,
        what: str = "",
        at_once: Callable[[str], bool] = lambda words: False,
    ) -> AbstractContextManager[None]:
        """Show that work goes on, and what if it is no answer; `stop` interrupts it.

        What is sent meanwhile goes to `at_once`; if that returns False, it waits for the end.
        """
        ...

    async def hand_over(self, work: Callable[[], None]) -> None:
        """Let something that prints by itself, or an editor, have the terminal meanwhile."""
        ...

    def follow(self, status: "Callable[[], Status] | None") -> None:
        """Keep the state of the session in sight."""
        ...

    def show_status(self) -> None:
        """Say once how full the context is, where it is not in sight anyway."""
        ...
