"""The frame of a session: made when it begins, made anew after a clear or a compaction.

A `Framer` knows where to look; `make_frame` looks once and freezes what it saw (the system
prompt's sections, the instructions) as one `Framed` entry. In between nothing is looked at
again: a resumed session sends what it always sent. Recording the entry is left to whoever
asked for it.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import structs

from holdfast.log.entries import Framed, Section
from holdfast.messages import JsonObject
from holdfast.messages.measure import measure_json, measure_text
from holdfast.request.instructions import Gathered, Ground, load, said, sources
from holdfast.request.prompt.environment import look_around
from holdfast.request.prompt.sections import Volatile, boundary, custom, sections, updated
from holdfast.request.server_side import excluding
from holdfast.settings import PromptSettings
from holdfast.tools.permissions import trusted
from holdfast.tools.skills import find_skills, listing


@dataclass(frozen=True, slots=True, kw_only=True)
class Framer:
    """Where the parts of a session's frame are found."""

    ground: Ground
    prompt: PromptSettings = field(default_factory=PromptSettings)
    skills: tuple[Path, ...] = ()
    """Directories of skills, the weightiest first."""
    scratchpad: Path | None = None
    memory: Callable[[], str] = str
    """Gives the section on long-term memory as it is now."""
    system: str = ""
    """A prompt of somebody's own; it replaces all."""
    volatile: tuple[Volatile, ...] = ()
    more: tuple[Section, ...] = ()
    clock: Callable[[], float] = time.time


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeFrame:
    """A frame, and what was found on the way to it."""

    frame: Framed
    gathered: Gathered


async def make_frame(
    framer: Framer, tools: Iterable[JsonObject], options: JsonObject | None = None
) -> MadeFrame:
    """Look at everything once and freeze it."""
    return await _made(framer, Framed(tools=tuple(tools), options=options or {}))


async def renew_frame(framer: Framer, old: Framed) -> MadeFrame:
    """Look at everything again, for a view that begins anew.

    Tools, options and what is latched stay; so does a prompt that was somebody's own.
    """
    return await _made(framer, old)


async def _made(framer: Framer, old: Framed) -> MadeFrame:
    gathered = await asyncio.to_thread(load, framer.ground, trusted=trusted())
    fresh = structs.replace(
        old,
        sections=await _sections(framer, old),
        instructions=said(gathered.parts, "start"),
        sources=sources(gathered.parts),
    )
    settled = updated(fresh, framer.volatile)
    return MadeFrame(
        frame=weighed(structs.replace(fresh, sections=settled or fresh.sections)), gathered=gathered
    )


async def _sections(framer: Framer, old: Framed) -> tuple[Section, ...]:
    if framer.system:
        return custom(framer.system)
    if old.sections and not boundary(old.sections):
        return old.sections
    names = tuple(str(tool.get("name")) for tool in old.tools)
    skills = ""
    if "Skill" in names:
        skills = listing(await asyncio.to_thread(find_skills, framer.skills))
    return sections(
        await look_around(
            framer.ground.directory,
            framer.prompt,
            tools=names,
            skills=skills,
            memory=framer.memory(),
            scratchpad=framer.scratchpad,
            more=framer.more,
            clock=framer.clock,
        )
    )


def frame(
    system: str | Sequence[Section], tools: Iterable[JsonObject], options: JsonObject
) -> Framed:
    """Freeze a prompt and tools that were given as they are."""
    listed = (Section(name="system", text=system),) if isinstance(system, str) else tuple(system)
    kept = tuple(section for section in listed if section.text.strip())
    return weighed(Framed(sections=kept, tools=tuple(tools), options=options))


def reframed(
    frame: Framed, tools: tuple[JsonObject, ...], sections: tuple[Section, ...] | None = None
) -> Framed:
    """Give the same frame another list of tools, and other sections if they changed."""
    kept = frame.sections if sections is None else sections
    return weighed(excluding(structs.replace(frame, tools=tools, sections=kept)))


def weighed(frame: Framed) -> Framed:
    """Count all that a frame adds to every request, as an entry that is still to be written."""
    weight = measure_text("\n".join(section.text for section in frame.sections))
    weight = weight + measure_text(frame.instructions)
    for tool in frame.tools:
        weight = weight + measure_json(tool)
    return structs.replace(frame, n=0, at=0.0, measure=weight)
