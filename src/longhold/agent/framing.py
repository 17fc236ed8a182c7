"""An agent's frame and instructions. Changes between two frames are sent as messages."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import structs

from longhold.agent.instructions.gathering import Gathered, Ground, load
from longhold.agent.instructions.nearby import (
    LoadReason,
    build_hook_fields,
    instruction_changes,
    render_instructions,
    sources,
)
from longhold.agent.mcp import ServerOffer
from longhold.agent.parts import AgentParts, Toolkit
from longhold.agent.permissions import load_trusted
from longhold.agent.prompt.sections import (
    Environment,
    boundary,
    build_custom,
    look_at_repository,
    sections,
    server_digests,
    servers_news,
    servers_text,
)
from longhold.agent.tools.skills import Skill, listing
from longhold.core.log.cursor import LogCursor
from longhold.core.log.entries import AnyEntry, Framed, Said, Section, Source
from longhold.core.messages import Text
from longhold.core.request.frame import replace_tools, weigh_frame
from longhold.core.request.server_side import update_excluded
from longhold.core.settings import PromptSettings
from longhold.core.turn.engine import Engine
from longhold.core.view.items import Spoken


@dataclass(frozen=True, slots=True, kw_only=True)
class Framer:
    ground: Ground
    prompt: PromptSettings = field(default_factory=PromptSettings)
    skills: Callable[[], tuple[Skill, ...]] = tuple
    scratchpad: Path | None = None
    memory: Callable[[], str] = str
    system: str = ""
    servers: Callable[[], tuple[ServerOffer, ...]] = tuple
    more: tuple[Section, ...] = ()
    clock: Callable[[], float] = time.time


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeFrame:
    frame: Framed
    gathered: Gathered


async def make_frame(framer: Framer, old: Framed) -> MadeFrame:
    """Build a frame from the current files, servers and environment.

    Tools, options, lifetime, headers and a custom prompt come from `old`.
    """
    gathered = await asyncio.to_thread(load, framer.ground, trusted=load_trusted())
    listed, offers = await _sections(framer, old), framer.servers()
    is_custom = not boundary(listed)
    if not is_custom and (text := servers_text(offers)):
        listed = (*listed, Section(name="mcp", text=text))
    fresh = structs.replace(
        old,
        sections=listed,
        instructions=render_instructions(gathered.parts, "start"),
        sources=sources(gathered.parts),
        servers={} if is_custom else server_digests(offers),
    )
    return MadeFrame(frame=weigh_frame(update_excluded(fresh)), gathered=gathered)


async def _sections(framer: Framer, old: Framed) -> tuple[Section, ...]:
    if framer.system:
        return build_custom(framer.system)
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


@dataclass(slots=True)
class Announced:
    """The log's messages about servers and files, without those before the current frame."""

    _said: list[Said] = field(default_factory=list)
    _cursor: LogCursor = field(default_factory=LogCursor)

    def follow(self, history: Sequence[AnyEntry]) -> None:
        for entry in self._cursor.advance(history):
            if isinstance(entry, Said) and (entry.sources or entry.servers):
                self._said.append(entry)

    def servers(self, frame: Framed) -> dict[str, str]:
        """Return the last announced digest of each MCP server, or "" if the server is gone."""
        return {k: v for entry in self._list_from(frame) for k, v in entry.servers.items()}

    def files(self, frame: Framed) -> dict[str, Source]:
        return {one.file: one for entry in self._list_from(frame) for one in entry.sources}

    def _list_from(self, frame: Framed) -> list[Framed | Said]:
        return [frame, *(entry for entry in self._said if entry.n > frame.n)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Framing:
    framer: Framer
    toolkit: Toolkit
    parts: AgentParts
    announced: Announced = field(default_factory=Announced)

    async def make(self) -> MadeFrame:
        return await make_frame(self.framer, Framed(tools=self.toolkit.definitions()))

    async def renew(self, engine: Engine) -> Framed:
        old = structs.replace(engine.frame, tools=self.toolkit.definitions())
        made = await make_frame(self.framer, old)
        await self.announce(made.gathered, "compact")
        return made.frame

    async def say_changes(self, engine: Engine) -> None:
        """A stage that announces changed servers and instruction files."""
        if not self.toolkit.is_listed_in(engine.frame):  # for example after an upgrade
            engine.record(replace_tools(engine.frame, self.toolkit.definitions()))
        self.announced.follow(engine.view.history)
        text, servers = servers_news(self.announced.servers(engine.frame), self.framer.servers())
        last = engine.view.items[-1] if engine.view.items else None
        if isinstance(last, Spoken) and last.is_asked():  # because files are read once a turn
            await self._say_changed_files(engine)
        if text:
            engine.record(Said(content=(Text(text=text),), hidden=True, servers=servers))

    async def _say_changed_files(self, engine: Engine) -> None:
        told = self.announced.files(engine.frame)
        found = await asyncio.to_thread(load, self.framer.ground, trusted=load_trusted())
        parts, gone = instruction_changes(told, found)
        if text := render_instructions(parts, "changed", gone=[source.file for source in gone]):
            all_sources = (*sources(parts), *gone)
            engine.record(Said(content=(Text(text=text),), hidden=True, sources=all_sources))
            await self.announce(Gathered(parts=parts), "changed")

    async def bring_nearby(self, engine: Engine) -> None:
        """A stage that adds the instructions near files that were touched since the last call."""
        nearby = self.parts.nearby
        nearby.follow(engine.view.history)
        for touched, found in await asyncio.to_thread(nearby.due):
            if found.parts:
                text = Text(text=render_instructions(found.parts, "nested"))
                engine.record(Said(content=(text,), hidden=True, sources=sources(found.parts)))
            await self.announce(found, "nested", touched)

    async def announce(
        self, found: Gathered, reason: LoadReason, touched: Path | None = None
    ) -> None:
        self.parts.notices.extend(found.notices)
        for part in found.parts:
            fields = build_hook_fields(part, reason, touched)
            await self.parts.hooks.fire("InstructionsLoaded", fields)
