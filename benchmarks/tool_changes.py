"""How much of the prompt cache is read after tools, servers and instructions changed.

An agent with real MCP servers works over HTTP with the official SDK against the simulator. It looks a
deferred tool up and calls it; a server joins, an instruction file changes, a server goes. Nothing of
this may move the prompt: `read_share` is what the next call read, over what the call before it had
left in the cache, for each change. Once with a model that takes deferred tools, once with one that
does not; `tool_change_read_share` is the least of all.

    python benchmarks/tool_changes.py [--json]
"""

import argparse
import asyncio
import itertools
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from longhold.agent.agent import Agent
from longhold.agent.build import build_agent
from longhold.core.log.entries import AnyEntry, Framed, Replied
from longhold.core.models import open_model
from longhold.core.settings import home
from longhold.simulator import BrainAnswer, BrainRequest, RunningServer, run_simulator
from longhold.simulator.brains import text, tool_use

MODELS = {"deferred": "claude-sonnet-5-5", "fixed": "claude-opus-4-1"}
"""One that takes deferred tools, and one for which the fixed calling tool stands in."""
SERVER = '''
import sys
from mcp.server.mcpserver import MCPServer

server = MCPServer(sys.argv[1], instructions=f"I am {sys.argv[1]}.")

@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b

server.run()
'''


class Caller:
    """Looks up the tool that the user names, calls it as it was told to, and says what came of it."""

    def answer(self, request: BrainRequest) -> BrainAnswer:
        block = request.messages[-1]["content"][0]
        if block["type"] == "text":
            name = block["text"].removeprefix("use ")
            if name == block["text"]:
                return BrainAnswer(blocks=(text("Fine."),))
            return BrainAnswer(blocks=(tool_use("ToolSearch", {"query": f"select:{name}"}),))
        content = block["content"]
        if isinstance(content, list) and content[0]["type"] == "tool_reference":
            return BrainAnswer(blocks=(tool_use(content[0]["tool_name"], {"a": 1, "b": 2}),))
        said = content if isinstance(content, str) else content[0]["text"]
        if "CallTool" in said:
            name = next(line for line in said.splitlines() if line.startswith("mcp__"))
            given = {"name": name, "input": {"a": 1, "b": 2}}
            return BrainAnswer(blocks=(tool_use("CallTool", given),))
        return BrainAnswer(blocks=(text(f"It is {said}."),))


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """What a session read of its cache after each change, and what the tools answered."""

    read_share: dict[str, float]
    answers: list[str]
    frames: int
    """How many frames the log has; one, if nothing moved."""


async def changed(model: str, place: Path) -> Changed:
    """Run a session through all changes; `place` holds its project, and its home is `home()`."""
    project = place / "project"
    project.mkdir(parents=True)
    (project / "AGENTS.md").write_text("Use tabs.\n")
    (place / "server.py").write_text(SERVER)
    shares: dict[str, float] = {}
    answers: list[str] = []
    with run_simulator(Caller()) as simulator:
        _configure(place, "alpha")
        async with _agent(simulator, model, project) as agent:
            await _say(agent, "hello")
            answers.append(await _say(agent, "use mcp__alpha__add"))
            shares["search"] = read_share(agent.session.view.history, calls=3)
            (project / "AGENTS.md").write_text("Use spaces.\n")
            await _say(agent, "go on")
            shares["instructions"] = read_share(agent.session.view.history)
        _configure(place, "alpha", "beta")
        async with _agent(simulator, model, project, agent.session.id) as agent:
            await _say(agent, "hello")
            shares["join"] = read_share(agent.session.view.history)
            answers.append(await _say(agent, "use mcp__beta__add"))
            shares["search_joined"] = read_share(agent.session.view.history, calls=3)
        _configure(place, "beta")
        async with _agent(simulator, model, project, agent.session.id) as agent:
            await _say(agent, "hello")
            shares["go"] = read_share(agent.session.view.history)
            answers.append(await _say(agent, "use mcp__beta__add"))
    frames = sum(isinstance(entry, Framed) for entry in agent.session.view.history)
    return Changed(read_share=shares, answers=answers, frames=frames)


def _configure(place: Path, *names: str) -> None:
    script = str(place / "server.py")
    servers = {name: {"command": sys.executable, "args": [script, name]} for name in names}
    home().mkdir(parents=True, exist_ok=True)
    (home() / "settings.json").write_text(json.dumps({"mcpServers": servers}))


@asynccontextmanager
async def _agent(
    simulator: RunningServer, model: str, project: Path, resume: str = ""
) -> AsyncIterator[Agent]:
    opened = open_model(model, base_url=simulator.url, api_key="none")
    agent = await build_agent(opened, directory=project, resume=resume, mode="bypass")
    try:
        yield agent
    finally:
        await agent.close()


async def _say(agent: Agent, words: str) -> str:
    """Let the agent work; return its last words."""
    said = ""
    async for event in agent.run(words):
        said = getattr(event, "text", "") or said
    return said


def read_share(history: list[AnyEntry], calls: int = 1) -> float:
    """Return the least share of the cache that one of the last calls read."""
    usages = [entry.usage for entry in history if isinstance(entry, Replied) and entry.usage]
    pairs = list(itertools.pairwise(usages))[-calls:]
    return min(
        after.cache_read_tokens / (before.cache_read_tokens + before.cache_write_tokens)
        for before, after in pairs
    )


async def all_changes(place: Path) -> dict[str, Changed]:
    return {kind: await changed(model, place / kind) for kind, model in MODELS.items()}


def tool_change_read_share(found: dict[str, Changed]) -> float:
    """Return the least share of the cache that was read after any change."""
    return min(share for one in found.values() for share in one.read_share.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        os.environ["LONGHOLD_HOME"] = f"{place}/home"
        found = asyncio.run(all_changes(Path(place)))
    figures = {kind: one.read_share for kind, one in found.items()}
    figures_all = {"tool_change_read_share": tool_change_read_share(found), **figures}
    if options.json:
        print(json.dumps(figures_all))
        return
    for kind, shares in figures.items():
        print(f"{kind:9}", ", ".join(f"{change} {share:.2%}" for change, share in shares.items()))
    print(f"tool_change_read_share {figures_all['tool_change_read_share']:.4f}")


if __name__ == "__main__":
    main()
