"""A session's frame: made at its start, renewed after a clear or a compaction.

A `Framer` holds where to look; `make_frame` looks once and freezes the result (system prompt
sections, instructions) in a `Framed` entry. Nothing is looked at again in between, so a resumed
session sends what it always sent. Recording the entry is left to the caller.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import structs

from longhold.agent.instructions import Gathered, Ground, load, said, sources
from longhold.agent.mcp import ServerOffer
from longhold.agent.permissions import trusted
from longhold.agent.prompt.sections import (
    Environment,
    boundary,
    custom,
    look_at_repository,
    sections,
    server_digests,
    servers_text,
)
from longhold.agent.tools.skills import Skill, listing
from longhold.core.log.entries import Framed, Section
from longhold.core.messages import JsonObject
from longhold.core.messages.measure import measure_json, measure_text
from longhold.core.request.server_side import excluding
from longhold.core.request.tool_references import is_deferred
from longhold.core.settings import PromptSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Framer:
    """Where the parts of a session's frame come from."""

    ground: Ground
    prompt: PromptSettings = field(default_factory=PromptSettings)
    skills: Callable[[], tuple[Skill, ...]] = tuple
    """Finds the skills there are now."""
    scratchpad: Path | None = None
    memory: Callable[[], str] = str
    """Renders the section on long-term memory as it is now."""
    system: str = ""
    """A custom prompt; replaces all sections."""
    servers: Callable[[], tuple[ServerOffer, ...]] = tuple
    """What the MCP servers offer just now."""
    more: tuple[Section, ...] = ()
    clock: Callable[[], float] = time.time


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeFrame:
    frame: Framed
    gathered: Gathered


async def make_frame(framer: Framer, old: Framed) -> MadeFrame:
    """Look at everything, for a session's start and again after a clear or a compaction.

    Tools, options, lifetime, headers and a custom prompt are those of `old`.
    """
    gathered = await asyncio.to_thread(load, framer.ground, trusted=trusted())
    listed, offers = await _sections(framer, old), framer.servers()
    is_custom = not boundary(listed)
    if not is_custom and (text := servers_text(offers)):
        listed = (*listed, Section(name="mcp", text=text))
    fresh = structs.replace(
        old,
        sections=listed,
        instructions=said(gathered.parts, "start"),
        sources=sources(gathered.parts),
        servers={} if is_custom else server_digests(offers),
    )
    return MadeFrame(frame=weighed(excluding(fresh)), gathered=gathered)


async def _sections(framer: Framer, old: Framed) -> tuple[Section, ...]:
    if framer.system:
        return custom(framer.system)
    if old.sections and not boundary(old.sections):
        return old.sections
    names = tuple(str(tool.get("name")) for tool in old.tools)
    skills = await asyncio.to_thread(framer.skills) if "Skill" in names else ()
    return sections(
        Environment(
            directory=framer.ground.directory,
            date=time.strftime("%Y-%m-%d", time.localtime(framer.clock())),
            repository=await look_at_repository(framer.ground.directory, framer.prompt),
            tools=names,
            skills=listing(skills),
            memory=framer.memory(),
            language=framer.prompt.language,
            scratchpad=framer.scratchpad,
            more=framer.more,
        )
    )


def frame(
    system: str | Sequence[Section], tools: Iterable[JsonObject], options: JsonObject
) -> Framed:
    listed = (Section(name="system", text=system),) if isinstance(system, str) else tuple(system)
    kept = tuple(section for section in listed if section.text.strip())
    return weighed(Framed(sections=kept, tools=tuple(tools), options=options))


def reframed(frame: Framed, tools: tuple[JsonObject, ...]) -> Framed:
    return weighed(excluding(structs.replace(frame, tools=tools)))


def weighed(frame: Framed) -> Framed:
    """Measure what a frame adds to every request, and reset it to an unwritten entry."""
    prompt = measure_text("\n".join(section.text for section in frame.sections))
    texts = prompt + measure_text(frame.instructions)
    listed = (tool for tool in frame.tools if not is_deferred(tool))
    return structs.replace(frame, n=0, at=0.0, measure=sum(map(measure_json, listed), texts))
