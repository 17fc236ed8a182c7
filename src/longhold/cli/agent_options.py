"""Builds the agent of `run` and `chat` from their shared options.

The agent's modules are imported only when it starts, so that the screen can appear first.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from longhold.cli.options import base_url
from longhold.cli.output import show_notice
from longhold.core.settings import Mode, Settings, load_settings
from longhold.core.settings.installation import LOG, load_plugins
from longhold.core.settings.reading import user_home

if TYPE_CHECKING:
    from longhold.agent.agent import Agent
    from longhold.agent.permissions import AskUser
    from longhold.core.models.protocol import Model


OFFLINE_MODEL = "simulated/claude-sonnet-5-5"
"""The simulator answers for this name. It explores, edits and tests without a model."""


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

    @asynccontextmanager
    async def running(
        self,
        *,
        ask: "AskUser | None" = None,
        source: str = "run",
        listener: Callable[[str], None] | None = show_notice,
    ) -> "AsyncIterator[Agent]":
        """Run the agent that the options describe, in the current directory.

        The model opens in a thread, so the user can type while the screen waits for it.
        """
        if self.offline and (self.model or self.base_url):
            raise click.UsageError("--offline asks no model: leave out --model and --base-url")
        from longhold.core.models import open_model

        settings = load_settings(Path.cwd())
        name, address = self.model or settings.model.name, self.base_url or settings.model.base_url
        if self.offline:
            if listener is not None:
                listener(OFFLINE)
            model: Model = offline_model()
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
            source=source,
            listener=listener,
        ) as agent:
            yield agent


def agent_options(command: Callable[..., None]) -> Callable[..., None]:
    @click.option("--model", default="", help="The model, instead of the setting model.name.")
    @base_url
    @click.option("--offline", is_flag=True, help="Follow a fixed plan instead of asking a model.")
    @click.option("--resume", metavar="ID", default="", help="Resume a session, or `newest`.")
    @click.option("--mode", type=click.Choice(get_args(Mode)), help="The permission mode of tools.")
    @wraps(command)
    def with_options(**given: Any) -> None:
        chosen = AgentOptions(
            **{field.name: given.pop(field.name) for field in fields(AgentOptions)}
        )
        command(chosen, **given)

    return with_options


def offline_model(test_command: str = "") -> "Model":
    """Return a model that follows a fixed plan. It needs no server, key or extra."""
    from longhold.simulator.brains.digest import TEST_COMMAND, DigestBrain
    from longhold.simulator.in_process import SimulatedModel
    from longhold.simulator.simulation import Simulation

    return SimulatedModel(OFFLINE_MODEL, Simulation(DigestBrain(test_command or TEST_COMMAND)))


@asynccontextmanager
async def running_agent(
    model: "Model",
    settings: Settings,
    *,
    directory: Path | None = None,
    resume: str = "",
    mode: Mode | None = None,
    ask: "AskUser | None" = None,
    source: str = "run",
    listener: Callable[[str], None] | None = show_notice,
) -> "AsyncIterator[Agent]":
    from longhold.agent.build import build_agent
    from longhold.agent.tools.standard import STANDARD
    from longhold.core.log.stores import default_store
    from longhold.core.models import open_model

    user_home()  # because without a home every tool would fail
    fallback = settings.model.fallback
    own = {tool.name for tool in STANDARD}  # plug-ins cannot replace these
    more = load_plugins("tools", tell=listener or LOG.warning).values()
    agent = await build_agent(
        model,
        tools=(*STANDARD, *(one for one in more if one.name not in own)),
        directory=directory,
        resume=default_store().find(resume, by_prefix=True).id if resume else "",
        mode=mode,
        ask=ask,
        settings=settings,
        fallback=open_model(fallback) if fallback else None,
        source=source,
    )
    agent.notices.listen(listener)
    try:
        yield agent
    finally:
        await agent.close()
