"""The agent that `run` and `chat` are given, and the options that shape it.

The agent itself is imported when one is started, so that a screen can be there before it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from longhold.cli.options import base_url
from longhold.cli.output import show_notice
from longhold.core.settings import Mode, Settings, load_settings

if TYPE_CHECKING:
    from longhold.agent.agent import Agent
    from longhold.agent.permissions import AskUser
    from longhold.core.models import Model


OFFLINE_MODEL = "simulated/claude-sonnet-5-5"
"""Answered by the simulator's digest brain, which explores, edits and tests without a model."""


OFFLINE = (
    "offline: a fixed plan on a simulated API, no model; tokens are simulated and cost nothing"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    model: str
    base_url: str
    offline: bool
    resume: str
    mode: Mode | None
    system: Path | None

    def system_prompt(self) -> str:
        """Read the user's own system prompt; a resumed session keeps the one it began with."""
        file = self.system
        if file is None:
            return ""
        if self.resume:
            raise click.UsageError("--system is for a new session; a resumed one keeps its prompt")
        try:
            text = file.read_text(encoding="utf-8-sig").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise click.UsageError(f"--system {file}: {error}") from error
        if not text:
            raise click.UsageError(f"--system {file}: it is empty")
        return text

    @asynccontextmanager
    async def running(
        self,
        *,
        ask: "AskUser | None" = None,
        source: str = "run",
        listener: Callable[[str], None] | None = show_notice,
    ) -> "AsyncIterator[Agent]":
        """Run the agent that was asked for, in the current directory.

        Its model is opened in a thread: a screen that waits for it can still be typed into.
        """
        if self.offline and (self.model or self.base_url):
            raise click.UsageError("--offline asks no model: leave out --model and --base-url")
        from longhold.core.models import open_model

        system, settings = self.system_prompt(), load_settings(Path.cwd())
        name, address = self.model or settings.model.name, self.base_url or settings.model.base_url
        with ExitStack() as stack:
            if self.offline:
                if listener is not None:
                    listener(OFFLINE)
                model = await asyncio.to_thread(stack.enter_context, offline_model())
            else:
                model = await asyncio.to_thread(
                    open_model, name, base_url=address or None, is_typed=bool(self.model)
                )
            async with running_agent(
                model,
                settings,
                resume=self.resume,
                mode=self.mode,
                ask=ask,
                system=system,
                source=source,
                listener=listener,
            ) as agent:
                yield agent


def agent_options(command: Callable[..., None]) -> Callable[..., None]:
    @click.option("--model", default="", help="The model, instead of the setting model.name.")
    @base_url
    @click.option("--offline", is_flag=True, help="Follow a fixed plan instead of asking a model.")
    @click.option("--resume", metavar="ID", default="", help="Resume a session, or `newest`.")
    @click.option("--mode", type=click.Choice(get_args(Mode)), help="How freely tools may run.")
    @click.option(
        "--system",
        type=click.Path(path_type=Path, dir_okay=False),
        help="A file that replaces the whole system prompt of a new session.",
    )
    @wraps(command)
    def with_options(**given: Any) -> None:
        chosen = AgentOptions(
            **{field.name: given.pop(field.name) for field in fields(AgentOptions)}
        )
        command(chosen, **given)

    return with_options


@contextmanager
def offline_model(test_command: str = "") -> "Iterator[Model]":
    from longhold.core.models import open_model
    from longhold.simulator import run_simulator
    from longhold.simulator.brains.digest import TEST_COMMAND, DigestBrain

    with run_simulator(DigestBrain(test_command or TEST_COMMAND)) as server:
        yield open_model(OFFLINE_MODEL, base_url=server.url, api_key="offline")


@asynccontextmanager
async def running_agent(
    model: "Model",
    settings: Settings,
    *,
    directory: Path | None = None,
    resume: str = "",
    mode: Mode | None = None,
    ask: "AskUser | None" = None,
    system: str = "",
    source: str = "run",
    listener: Callable[[str], None] | None = show_notice,
) -> "AsyncIterator[Agent]":
    from longhold.agent.build import build_agent
    from longhold.core.models import open_model

    fallback = settings.model.fallback
    agent = await build_agent(
        model,
        directory=directory,
        resume=resume,
        mode=mode,
        ask=ask,
        settings=settings,
        fallback=open_model(fallback) if fallback else None,
        system=system,
        source=source,
    )
    agent.notices.listen(listener)
    try:
        yield agent
    finally:
        await agent.close()
