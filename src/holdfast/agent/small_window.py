"""What an agent goes without in a small window, which all its tools and prompts would fill."""

from dataclasses import replace
from typing import NamedTuple

from holdfast.settings import Settings
from holdfast.tools.protocol import Tool
from holdfast.view.window import window_for

CORE = frozenset({"Bash", "Edit", "Glob", "Grep", "Read", "Write"})
"""What work on a project cannot do without."""


class Fitted(NamedTuple):
    settings: Settings
    tools: tuple[Tool, ...]
    said: tuple[str, ...] = ()
    """What the user should know about it."""


def fitted(model: str, settings: Settings, tools: tuple[Tool, ...]) -> Fitted:
    """Leave out what a window has no room for."""
    limit, full = window_for(model, settings.window).limit_tokens, settings.prompt.full_tokens
    if limit >= full:
        return Fitted(settings, tools)
    said = (
        f"a window of {limit:,} tokens is small: this session has no agents, no memory and only"
        f" the core tools (prompt.full_tokens is {full:,})"
    )
    plain = replace(
        settings,
        agents=replace(settings.agents, on=False),
        memory=replace(settings.memory, on=False),
    )
    return Fitted(plain, tuple(tool for tool in tools if tool.name in CORE), (said,))
