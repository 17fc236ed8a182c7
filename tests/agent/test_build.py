"""Opening an agent: its prompt, its instructions, and later additions."""

import json
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest

from longhold.agent.build import build_agent
from longhold.agent.prompt.sections import STATIC
from longhold.core.log.entries import Began, Framed, Ran, Said
from longhold.core.log.store import FileStore
from longhold.core.messages import Text, text_of
from longhold.core.messages.rules import violations
from longhold.core.models import open_model
from longhold.core.models.scripted import ScriptedModel
from longhold.core.settings import home
from longhold.simulator import run_simulator
from longhold.simulator.brains.digest import DigestBrain

MODEL = "claude-opus-4-6"
READ = 'tool: Read {"file_path": "api/code.py"}'


@pytest.fixture
def project(tmp_path):
    """A repository with instructions at its top and in a part of it."""
    place = tmp_path / "project"
    (place / "api").mkdir(parents=True)
    (place / "AGENTS.md").write_text("Use tabs.")
    (place / "api" / "AGENTS.md").write_text("No globals here.")
    (place / "api" / "code.py").write_text("x = 1\n")
    subprocess.run(["git", "init", "-q"], cwd=place, check=True)
    return place


@asynccontextmanager
async def agent(project, script, **options):
    """An agent with a scripted model, closed at the end."""
    model = ScriptedModel(script, name=MODEL)
    opened = await build_agent(model, directory=project, mode="bypass", **options)
    try:
        yield opened
    finally:
        await opened.close()


async def run(opened, prompt="look"):
    """Let it work; the view stays legal."""
    events = [event async for event in opened.run(prompt)]
    assert violations(opened.session.view.messages()) == []
    return events


def brought(opened):
    """The hidden messages that bring instructions."""
    return [
        text_of(entry.content)
        for entry in opened.session.view.history
        if isinstance(entry, Said) and entry.sources
    ]


async def test_a_session_begins_with_one_frame(project):
    async with agent(project, "text: ok") as one:
        await run(one)
        frames = [entry for entry in one.session.view.history if isinstance(entry, Framed)]
    assert len(frames) == 1
    assert [section.name for section in frames[0].sections][: len(STATIC)] == list(STATIC)
    assert "Use tabs." in frames[0].instructions
    assert "No globals here." not in frames[0].instructions


async def test_the_scratchpad_it_is_told_of_is_there(project):
    async with agent(project, "text: ok") as one:
        pad = one.tool_context.more_roots[-1]
        assert pad.is_dir()
        assert pad.stat().st_mode & 0o777 == 0o700
        texts = {section.name: section.text for section in one.engine.frame.sections}
        assert str(pad) in texts["scratchpad"]


async def test_instructions_come_once_something_near_them_is_touched(project):
    async with agent(project, f"{READ}\n---\n{READ}\n---\ntext: ok") as one:
        await run(one)
        (said,) = brought(one)
    assert "No globals here." in said
    assert "Use tabs." not in said


async def test_a_resumed_session_does_not_bring_them_again(project):
    async with agent(project, f"{READ}\n---\ntext: ok") as one:
        await run(one)
        frame, id = one.engine.frame, one.session.id
    async with agent(project, f"{READ}\n---\ntext: ok", resume=id) as two:
        await run(two, "again")
        assert len(brought(two)) == 1
        assert two.engine.frame == frame


async def test_a_failed_read_touches_nothing(project):
    script = 'tool: Read {"file_path": "api/gone.py"}\n---\ntext: ok'
    async with agent(project, script) as one:
        await run(one)
        assert brought(one) == []


async def test_hooks_hear_which_instructions_were_read(project, tmp_path):
    heard = tmp_path / "heard"
    hook = {"type": "command", "command": f"cat >> {heard}; echo >> {heard}"}
    home().mkdir(parents=True, exist_ok=True)
    (home() / "hooks.json").write_text(
        json.dumps({"hooks": {"InstructionsLoaded": [{"hooks": [hook]}]}})
    )
    async with agent(project, f"{READ}\n---\ntext: ok") as one:
        await run(one)
        await one.session._layers.compact.hooks.renew()
    told = [json.loads(line) for line in heard.read_text().splitlines()]
    assert [(t["reason"], t["load_reason"], t["file_path"]) for t in told] == [
        ("startup", "session_start", str(project / "AGENTS.md")),
        ("nested", "nested_traversal", str(project / "api" / "AGENTS.md")),
        ("compact", "compact", str(project / "AGENTS.md")),
    ]
    assert told[1]["trigger_file_path"] == str(project / "api" / "code.py")
    assert {t["memory_type"] for t in told} == {"Project"}


async def test_a_frame_made_anew_sees_what_changed(project):
    async with agent(project, "text: ok") as one:
        await run(one)
        (project / "AGENTS.md").write_text("Use spaces.")
        fresh = await one.session._layers.compact.hooks.renew()
        assert "Use spaces." in fresh.instructions
        assert "Use tabs." in one.engine.frame.instructions
        assert fresh.tools == one.engine.frame.tools


async def test_a_prompt_of_ones_own_replaces_all(project):
    async with agent(project, "text: ok", system="Be a pirate.") as one:
        assert [section.text for section in one.engine.frame.sections] == ["Be a pirate."]
        assert "Use tabs." in one.engine.frame.instructions


async def test_what_was_left_out_is_told(project):
    (project.parent / "secret.md").write_text("s")
    (project / "AGENTS.md").write_text("@../secret.md")
    async with agent(project, "text: ok") as one:
        assert any("outside the project" in notice for notice in one.notices.take())
        assert 'secret.md"' not in one.engine.frame.instructions


SERVER = """
from mcp.server.mcpserver import MCPServer

server = MCPServer("probe", instructions="Add before you subtract.")

@server.tool()
def add(a: int, b: int) -> int:
    return a + b

server.run()
"""


async def test_instructions_that_changed_are_said_and_the_frame_stays(project):
    async with agent(project, "text: ok\n---\ntext: ok") as one:
        await run(one)
        frame, id = one.engine.frame, one.session.id
        (project / "AGENTS.md").write_text("Use spaces.")
        (project / "CLAUDE.md").write_text("Be brief.")
        await run(one, "again")
        (said,) = brought(one)
        assert "Use spaces." in said
        assert "Be brief." in said
    (project / "AGENTS.md").unlink()
    async with agent(project, "text: ok\n---\ntext: ok", resume=id) as two:
        await run(two, "again")
        await run(two, "and again")
        _, gone = brought(two)
        assert f"{project / 'AGENTS.md'} is gone" in gone
        assert two.engine.frame == frame


async def test_servers_and_their_tools_are_the_same_after_a_resume(project, tmp_path):
    pytest.importorskip("mcp")
    (tmp_path / "server.py").write_text(SERVER)
    probe = {"command": sys.executable, "args": [str(tmp_path / "server.py")]}
    home().mkdir(parents=True, exist_ok=True)
    (home() / "settings.json").write_text(json.dumps({"mcpServers": {"probe": probe}}))
    find = 'tool: ToolSearch {"query": "select:mcp__probe__add"}'
    async with agent(project, f"{find}\n---\ntext: ok") as one:
        texts = {section.name: section.text for section in one.engine.frame.sections}
        assert "tools: mcp__probe__add\n> Add before you subtract." in texts["mcp"]
        await run(one)
        frame, id = one.engine.frame, one.session.id
        assert frame.tools[-1] == frame.tools[-1] | {
            "name": "mcp__probe__add",
            "defer_loading": True,
        }
    async with agent(project, "text: ok", resume=id) as two:
        await run(two, "again")
        assert two.engine.frame == frame


@pytest.mark.parametrize(
    ("rules", "mode", "is_run"),
    [
        ({}, "ask", False),
        ({"allow": ["mcp__probe__add"]}, "ask", True),
        ({"deny": ["mcp__probe__add"]}, "bypass", False),
    ],
    ids=["not asked for", "allowed", "denied"],
)
async def test_a_call_through_the_fixed_tool_needs_the_inner_tools_permission(
    project, tmp_path, rules, mode, is_run
):
    pytest.importorskip("mcp")
    (tmp_path / "server.py").write_text(SERVER)
    probe = {"command": sys.executable, "args": [str(tmp_path / "server.py")]}
    home().mkdir(parents=True, exist_ok=True)
    (home() / "settings.json").write_text(
        json.dumps({"mcpServers": {"probe": probe}, "permissions": rules})
    )
    call = 'tool: CallTool {"name": "mcp__probe__add", "input": {"a": 1, "b": 2}}'
    model = ScriptedModel(f"{call}\n---\ntext: ok", name="claude-opus-4-1")
    one = await build_agent(model, directory=project, mode=mode)
    await run(one)
    await one.close()
    history = one.session.view.history
    began = [entry.tool for entry in history if isinstance(entry, Began)]
    (ran,) = (text_of(entry.content) for entry in history if isinstance(entry, Ran))
    assert began == (["mcp__probe__add"] if is_run else [])
    assert ran == "3" if is_run else "Not allowed" in ran


async def test_a_session_that_has_no_frame_gets_one(project):
    log = FileStore().create(directory=project)
    log.append(Said(content=(Text(text="hello"),)))
    log.close()
    async with agent(project, "text: ok", resume=log.header.session) as one:
        assert one.engine.frame.sections[0].name == STATIC[0]
        assert "Use tabs." in one.engine.frame.instructions


async def test_the_offline_agent_is_not_led_astray_by_a_reminder(project):
    with run_simulator(DigestBrain("true")) as simulator:
        name = "simulated/claude-sonnet-5-5"
        model = open_model(name, base_url=simulator.url, api_key="none")
        one = await build_agent(model, directory=project, mode="bypass")
        await run(one, 'replace "x = 1" with "x = 2" in api/code.py')
        await one.close()
        assert len(brought(one)) == 1
    assert (project / "api" / "code.py").read_text() == "x = 2\n"
