"""A conversation, built line by line."""

import pytest

from longhold.core.messages import Block, Text, Thinking, ToolUse
from longhold.core.view.items import Item, Result, Round, Spoken


class Talk:
    """Items as a view holds them, in the order they are said."""

    def __init__(self) -> None:
        self.items: list[Item] = []

    @property
    def last(self) -> int:
        """The number of the last message."""
        return self.items[-1].id if self.items else 0

    def user(self, text: str, *more: Block, hidden: bool = False) -> int:
        """Let the user say something."""
        n = self.last + 1
        self.items.append(Spoken(id=n, order=n, content=(Text(text=text), *more), hidden=hidden))
        return n

    def summary(self, text: str) -> int:
        """Put a summary in place of what came before."""
        n = self.last + 1
        self.items.append(Spoken(id=n, order=n, content=(Text(text=text),), kind="summary"))
        return n

    def answer(self, text: str, *more: Block) -> int:
        """Let the model say something."""
        n = self.last + 1
        content = (*more, Text(text=text))
        self.items.append(Round(id=n, order=n, response_id=f"r{n}", content=content))
        return n

    def think(self, text: str) -> int:
        """Let the model think, and say nothing much."""
        return self.answer("Fine.", Thinking(thinking=text))

    def call(
        self,
        name: str,
        result: str = "",
        *,
        is_error: bool = False,
        refused: str | None = None,
        **given: object,
    ) -> int:
        """Let the model call a tool; the user may refuse it."""
        n = self.last + 1
        use = ToolUse(id=f"t{n}", name=name, input=given)
        is_error = is_error or refused is not None
        came = Result(id=n, tool_use_id=f"t{n}", content=result, is_error=is_error, refused=refused)
        self.items.append(
            Round(id=n, order=n, response_id=f"r{n}", content=(use,), results=(came,))
        )
        return n


@pytest.fixture
def talk() -> Talk:
    """Begin an empty conversation."""
    return Talk()
