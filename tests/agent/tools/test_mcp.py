"""MCP clients against real servers, over stdio and HTTP."""

import asyncio
import json
import os
import socket
import sys
import time

import pytest
import pytest_asyncio

from casting import until
from lazy import needs
from longhold.agent.mcp import McpServer, McpTools, load_servers
from longhold.agent.permissions import trust
from longhold.agent.permissions.rules import is_for_tool, parse_rule
from longhold.core.messages import Image, Text, text_of
from longhold.core.tools.context import ToolContext
from longhold.errors import ConfigError
from programs import is_running

needs("mcp")
pytestmark = pytest.mark.asyncio(loop_scope="module")

SERVER = '''
import asyncio, os, sys
from pathlib import Path
from mcp.server.mcpserver import Image, MCPServer

server = MCPServer("probe", instructions="Add before you subtract.")

@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b

@server.tool()
def long(words: int) -> str:
    """Say a lot."""
    return " ".join(f"word{n}" for n in range(words))

@server.tool()
def picture() -> Image:
    """Give a picture."""
    return Image(data=b"not really", format="png")

@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("it is broken")

@server.tool()
async def hang() -> str:
    """Never answer."""
    Path(__file__).with_name("called").touch()
    await asyncio.sleep(600)
    return ""

@server.tool()
def die() -> str:
    """End at once."""
    print("out of cheese", file=sys.stderr, flush=True)
    os._exit(3)

@server.tool()
def pid() -> int:
    """Give the number of this process."""
    return os.getpid()

@server.tool(name="odd name", description="Odd\\u200b and\\u202e hidden")
def odd() -> str:
    return "odd"

if sys.argv[1:]:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    server.run("stdio")
'''


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    """Write the server down."""
    file = tmp_path_factory.mktemp("server") / "server.py"
    file.write_text(SERVER)
    return file


@pytest.fixture
def tool_context(tmp_path):
    """Give a place to work in."""
    return ToolContext(root=tmp_path, home=tmp_path / "home", scratch=tmp_path / "scratch")


def probe(script, **fields):
    """Describe the server."""
    return McpServer(name="probe", command=sys.executable, args=(str(script),), **fields)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tools(script):
    """Connect to one server for all tests that leave it alive."""
    tools = McpTools([probe(script)])
    assert await tools.connect() == ()
    yield tools
    await tools.close()


def tool(tools, name):
    """Load one tool."""
    tools.load([f"mcp__probe__{name}"])
    return next(tool for tool in tools.loaded if tool.name == f"mcp__probe__{name}")


async def test_only_names_are_listed_until_something_is_loaded(script, tools):
    assert "mcp__probe__add" in tools.names
    fresh = McpTools([probe(script)])
    assert fresh.loaded == ()
    await fresh.close()


async def test_a_server_offers_its_names_and_what_it_says_of_itself(tools):
    tools.load(["mcp__probe__add"])
    (offer,) = tools.offers
    assert (offer.server, offer.names) == ("probe", tools.names)
    assert offer.instructions == "Add before you subtract."


async def test_a_tool_is_called_over_there(tools, tool_context):
    outcome = await tool(tools, "add").run({"a": 1, "b": 2}, tool_context)
    assert (text_of(outcome.content), outcome.is_error) == ("3", False)


async def test_a_loaded_tool_has_its_definition(tools):
    add = tool(tools, "add")
    assert add.definition()["description"] == "Add two numbers."
    assert sorted(add.input_schema["properties"]) == ["a", "b"]
    assert (add.kind, add.is_read_only({})) == ("other", False)


async def test_a_search_shows_what_it_finds(tools, tool_context):
    outcome = await tools.search_tool.run({"query": "add numbers", "max_results": 1}, tool_context)
    shown = text_of(outcome.content)
    assert shown.startswith("Call these through CallTool.\n\nmcp__probe__add\nAdd two numbers.\n")
    assert "\ninput: {" in shown
    assert "mcp__probe__add" in [loaded.name for loaded in tools.loaded]


async def test_a_search_can_name_tools_exactly(tools, tool_context):
    query = "select:mcp__probe__pid, mcp__probe__fail"
    outcome = await tools.search_tool.run({"query": query}, tool_context)
    assert outcome.note == "found mcp__probe__pid, mcp__probe__fail"


async def test_a_search_refers_to_what_the_provider_has(script, tool_context):
    tools = McpTools([probe(script)], can_refer=lambda name: name != "mcp__probe__pid")
    await tools.connect()
    found = await tools.search_tool.run({"query": "select:mcp__probe__add"}, tool_context)
    both = "select:mcp__probe__add,mcp__probe__pid"
    mixed = await tools.search_tool.run({"query": both}, tool_context)
    await tools.close()
    assert [block.raw for block in found.content] == [
        {"type": "tool_reference", "tool_name": "mcp__probe__add"}
    ]
    assert "CallTool" in text_of(mixed.content)


async def test_a_server_that_was_away_is_found_by_a_later_search(script, tool_context):
    port = free_port()
    late = McpServer(name="late", url=f"http://127.0.0.1:{port}/mcp", retry_seconds=0)
    tools = McpTools([late])
    (problem,) = await tools.connect()
    assert "late" in problem
    assert tools.offers == ()
    process = await serve(script, port)
    try:
        await tools.search_tool.run({"query": "add numbers"}, tool_context)
        assert [offer.server for offer in tools.offers] == ["late"]
    finally:
        await tools.close()
        process.kill()
        await process.wait()


async def test_a_server_that_cannot_be_started_again_offers_nothing(script, tmp_path, tool_context):
    copy = tmp_path / "server.py"
    copy.write_text(script.read_text())
    tools = McpTools([probe(copy)])
    await tools.connect()
    copy.unlink()
    await tool(tools, "die").run({}, tool_context)
    outcome = await tool(tools, "add").run({"a": 1, "b": 1}, tool_context)
    await tools.close()
    assert outcome.is_error
    assert (tools.offers, "mcp__probe__add" in tools.names) == ((), True)


async def test_a_search_that_finds_nothing_says_so(tools, tool_context):
    outcome = await tools.search_tool.run({"query": "select:nothing"}, tool_context)
    assert outcome.is_error
    assert "No tool matches" in text_of(outcome.content)


@pytest.mark.parametrize("name", ["probe__evil", "probe_", "probe__", "probe.", "_probe__x"])
async def test_a_rule_for_a_server_covers_no_other_server(script, name):
    server = McpServer(name=name, command=sys.executable, args=(str(script),))
    tools = McpTools([server])
    try:
        await tools.connect()
        assert len(tools.names) > 3
        assert not any(is_for_tool(parse_rule("mcp__probe"), each) for each in tools.names)
    finally:
        await tools.close()


async def test_a_failing_tool_is_an_error_result(tools, tool_context):
    outcome = await tool(tools, "fail").run({}, tool_context)
    assert outcome.is_error
    assert text_of(outcome.content) == "Error executing tool fail"


async def test_a_wrong_input_is_an_error_result(tools, tool_context):
    outcome = await tool(tools, "add").run({"a": "x"}, tool_context)
    assert outcome.is_error


async def test_a_picture_stays_a_picture(tools, tool_context):
    outcome = await tool(tools, "picture").run({}, tool_context)
    (image,) = outcome.content
    assert isinstance(image, Image)
    assert image.source["media_type"] == "image/png"


async def test_a_long_result_is_told_to_the_user(tools, tool_context):
    outcome = await tool(tools, "long").run({"words": 6_000}, tool_context)
    assert text_of(outcome.content).endswith("word5999")
    assert "tokens from mcp__probe__long" in outcome.note


async def test_a_result_over_the_limit_comes_out_whole(tools, tool_context):
    long = tool(tools, "long")
    outcome = await long.run({"words": 40_000}, tool_context)
    assert text_of(outcome.content).endswith("word39999")
    assert long.limit_chars == 100_000
    assert not tool_context.scratch.exists()


@pytest.mark.parametrize(
    ("meta", "limit_chars"),
    [(None, 100_000), (250_000, 250_000), (9e9, 500_000), (0, 100_000), ("many", 100_000)],
)
async def test_a_tool_may_ask_for_longer_results_within_reason(meta, limit_chars):
    from mcp.types import Tool

    from longhold.agent.mcp import McpLink, as_tool

    asked = {"anthropic/maxResultSizeChars": meta} if meta is not None else None
    offered = Tool(name="query", input_schema={}, _meta=asked)
    link = McpLink(McpServer(name="db", url="http://127.0.0.1:9/mcp"))
    assert as_tool(offered, link).limit_chars == limit_chars
    await link.close()


async def test_odd_names_and_hidden_characters_are_cleaned(tools, tool_context):
    (name,) = [name for name in tools.names if "odd" in name]
    assert name.replace("_", "").replace("-", "").isalnum()
    (listed,) = tools.load([name])
    assert listed.description == "Odd and hidden"
    outcome = await next(t for t in tools.loaded if t.name == name).run({}, tool_context)
    assert text_of(outcome.content) == "odd"


async def test_a_server_that_dies_is_told_and_started_again(script, tool_context):
    tools = McpTools([probe(script)])
    await tools.connect()
    died = await tool(tools, "die").run({}, tool_context)
    again = await tool(tools, "add").run({"a": 2, "b": 2}, tool_context)
    await tools.close()
    assert died.is_error
    assert "ended in the middle" in text_of(died.content)
    assert "out of cheese" in text_of(died.content)
    assert text_of(again.content) == "4"


async def test_a_call_that_hangs_is_given_up_and_the_server_stays_usable(script, tool_context):
    tools = McpTools([probe(script, call_seconds=0.5)])
    await tools.connect()
    begun = time.monotonic()
    hung = await tool(tools, "hang").run({}, tool_context)
    assert time.monotonic() - begun < 5
    assert "within 0.5 s" in text_of(hung.content)
    pid = int(text_of((await tool(tools, "pid").run({}, tool_context)).content))
    await tools.close()
    assert not is_running(pid)


async def test_a_cancelled_call_leaves_the_connection_usable(script, tools, tool_context):
    called = script.with_name("called")
    called.unlink(missing_ok=True)
    call = asyncio.ensure_future(tool(tools, "hang").run({}, tool_context))
    await until(called.exists)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    outcome = await tool(tools, "add").run({"a": 1, "b": 1}, tool_context)
    assert text_of(outcome.content) == "2"


async def test_a_server_that_never_answers_is_a_problem_not_an_exception(tmp_path):
    command = f"echo $$ > {tmp_path}/pid; exec sleep 600"
    tools = McpTools(
        [McpServer(name="mute", command="sh", args=("-c", command), start_seconds=0.5)]
    )
    (problem,) = await tools.connect()
    pid = int((tmp_path / "pid").read_text())
    await tools.close()
    assert "'mute' did not answer within 0.5 s" in problem
    assert not is_running(pid)


@pytest.mark.parametrize(
    "server",
    [
        McpServer(name="gone", command="/no/such/program"),
        McpServer(name="gone", command="sh", args=("-c", "echo no licence >&2; exit 1")),
        McpServer(name="gone", url="http://127.0.0.1:9/mcp", start_seconds=5),
    ],
    ids=["missing", "ends", "unreachable"],
)
async def test_a_server_that_cannot_be_reached_is_a_problem(server):
    tools = McpTools([server])
    (problem,) = await tools.connect()
    await tools.close()
    assert "The MCP server 'gone'" in problem


async def test_a_server_is_reached_over_http(script, tool_context):
    port = free_port()
    process = await serve(script, port)
    try:
        tools = McpTools([McpServer(name="probe", url=f"http://127.0.0.1:{port}/mcp")])
        assert await tools.connect() == ()
        outcome = await tool(tools, "add").run({"a": 20, "b": 22}, tool_context)
        await tools.close()
    finally:
        process.kill()
        await process.wait()
    assert text_of(outcome.content) == "42"


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


async def serve(script, port):
    """Start the server over HTTP, and wait until it answers."""
    nowhere = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(script), str(port), stdout=nowhere, stderr=nowhere
    )
    await _listening(port)
    return process


async def _listening(port):
    """Wait until somebody answers on a port."""
    for _ in range(1_000):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return
    raise AssertionError("the server did not start")


async def test_a_projects_servers_wait_for_trust(tmp_path):
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"x": {"command": "evil"}}}))
    plan = load_servers(project, at=home)
    assert (plan.servers, len(plan.untrusted)) == ((), 1)
    trust(plan.untrusted[0], at=home)
    assert [server.command for server in load_servers(project, at=home).servers] == ["evil"]


async def test_variables_are_filled_in_when_a_server_starts(tmp_path, monkeypatch):
    monkeypatch.setenv("PROBE_TOKEN", "s3cret")
    seen = tmp_path / "seen"
    script = f'echo "$TOKEN $OTHER" > {seen}'
    server = McpServer(
        name="x",
        command="sh",
        args=("-c", script),
        env={"TOKEN": "${PROBE_TOKEN}", "OTHER": "${PROBE_MISSING:-none}"},
    )
    tools = McpTools([server])
    await tools.connect()
    await tools.close()
    assert seen.read_text() == "s3cret none\n"
    assert "PROBE_TOKEN" in os.environ


@pytest.mark.parametrize("value", [{}, {"command": "a", "url": "b"}, {"command": 1}, []])
async def test_a_server_without_sense_is_an_error(tmp_path, value):
    (tmp_path / "settings.json").write_text(json.dumps({"mcpServers": {"x": value}}))
    with pytest.raises(ConfigError, match=r"settings\.json: mcpServers\.x"):
        load_servers(None, at=tmp_path)


async def test_importing_the_module_does_not_import_the_sdk():
    code = "import sys, longhold.agent.mcp; print('mcp' in sys.modules, 'pydantic' in sys.modules)"
    done = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await done.communicate()
    assert out.decode().split() == ["False", "False"]


async def test_text_blocks_beside_pictures_are_kept_apart(tool_context):
    from mcp.types import CallToolResult, ImageContent, TextContent

    from longhold.agent.mcp import read_result

    result = CallToolResult(
        content=[
            TextContent(type="text", text="before"),
            ImageContent(type="image", data="aGk=", mime_type="image/png"),
        ]
    )
    outcome = read_result(result, "x", tool_context)
    assert [type(block) for block in outcome.content] == [Text, Image]


async def test_more_blocks_than_anyone_reads_are_left_out(tool_context):
    from mcp.types import CallToolResult, TextContent

    from longhold.agent.mcp import MAX_BLOCKS, read_result

    result = CallToolResult(content=[TextContent(text="a")] * (MAX_BLOCKS + 5))
    outcome = read_result(result, "x", tool_context)
    assert outcome.content.endswith("[5 more blocks are left out]")
    assert outcome.content.count("a\n") <= MAX_BLOCKS
