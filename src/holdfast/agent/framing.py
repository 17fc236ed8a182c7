"""An agent's frame and instructions: made when a session begins, renewed after a compaction.

Between the two only what must be true is declared anew: the list of tools that MCP has loaded, and
sections that state why they change. Instructions near a file that was touched are said as messages.
"""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from holdfast.agent.parts import AgentParts
from holdfast.agent.toolkit import Toolkit
from holdfast.log.entries import Framed, Said
from holdfast.messages import Text
from holdfast.request.frame import Framer, MadeFrame, make_frame, reframed
from holdfast.request.instructions import Gathered, LoadReason, loaded_fields, said, sources
from holdfast.request.prompt.sections import Volatile, servers_text, updated
from holdfast.tools.mcp import McpTools
from holdfast.turn.engine import Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class Framing:
    """Makes the frames of one agent's session."""

    framer: Framer
    toolkit: Toolkit
    parts: AgentParts

    async def make(self) -> MadeFrame:
        return await make_frame(self.framer, Framed(tools=self.toolkit.definitions()))

    async def renew(self, engine: Engine) -> Framed:
        """Read prompt and instructions again, for a view that begins anew."""
        made = await make_frame(self.framer, engine.frame)
        await self.announce(made.gathered, "compact")
        return made.frame

    async def list_tools(self, engine: Engine) -> None:
        """A stage: keep the frame's list of tools true; what MCP loaded is declared by a new frame."""
        old, tools = engine.frame, self.toolkit.definitions()
        sections = updated(old, self.framer.volatile)
        if (tools, sections) != (old.tools, old.sections):
            engine.record(reframed(old, tools, sections))

    async def bring_nearby(self, engine: Engine) -> None:
        """A stage: say the instructions that lie near what was touched since the last call."""
        nearby = self.parts.nearby
        nearby.follow(engine.view.history)
        for touched, found in await asyncio.to_thread(nearby.due):
            if found.parts:
                text = Text(text=said(found.parts, "nested"))
                engine.record(Said(content=(text,), hidden=True, sources=sources(found.parts)))
            await self.announce(found, "nested", touched)

    async def announce(
        self, found: Gathered, reason: LoadReason, touched: Path | None = None
    ) -> None:
        """Let the user and the hooks know which instructions were read."""
        self.parts.notices.extend(found.notices)
        for part in found.parts:
            fields = loaded_fields(part, reason, touched)
            await self.parts.hooks.fire("InstructionsLoaded", fields)


def servers_section(mcp: McpTools) -> Volatile:
    return Volatile(
        name="mcp",
        reason="servers come and go; a tool that is gone must not be offered, nor a new one kept back",
        compute=lambda: servers_text(mcp.offers),
    )
