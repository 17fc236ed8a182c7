"""A working directory, and a short way to call a tool there."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from longhold.agent.tools.standard import STANDARD
from longhold.core.messages import text_of
from longhold.core.tools.context import ToolContext
from longhold.core.tools.protocol import Outcome

Use = Callable[..., Awaitable[Outcome]]


@pytest.fixture
async def tool_context(tmp_path) -> AsyncIterator[ToolContext]:
    """An empty project with a home and a scratch directory beside it; closed at the end."""
    (tmp_path / "project").mkdir()
    place = ToolContext(
        root=tmp_path / "project", home=tmp_path / "home", scratch=tmp_path / "scratch"
    )
    yield place
    await place.close()


@pytest.fixture
def use(tool_context) -> Use:
    """Run a tool by name; inputs that are no Python names go in a dict."""

    async def run(name: str, more: dict[str, object] | None = None, **given: object) -> Outcome:
        (tool,) = (tool for tool in STANDARD if tool.name == name)
        return await tool.run({**given, **(more or {})}, tool_context)

    return run


@pytest.fixture
def said(use) -> Callable[..., Awaitable[str]]:
    """Run a tool that must succeed and give its text."""

    async def run(name: str, more: dict[str, object] | None = None, **given: object) -> str:
        outcome = await use(name, more, **given)
        assert not outcome.is_error, outcome.content
        return text_of(outcome.content)

    return run


@pytest.fixture
def refused(use) -> Callable[..., Awaitable[str]]:
    """Run a tool that must not succeed and give the reason."""

    async def run(name: str, more: dict[str, object] | None = None, **given: object) -> str:
        outcome = await use(name, more, **given)
        assert outcome.is_error
        return text_of(outcome.content)

    return run


@pytest.fixture
def until() -> Callable[[Callable[[], object]], Awaitable[None]]:
    """Wait for something that announces itself to nobody."""

    async def wait(condition: Callable[[], object]) -> None:
        async with asyncio.timeout(10):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    return wait
