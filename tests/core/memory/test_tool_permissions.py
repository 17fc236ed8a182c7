"""Attacks through memory forks: writes elsewhere, disguised commands, changed inputs."""

import pytest

from longhold.agent.tools.standard import STANDARD
from longhold.core.memory.branch import Branch
from longhold.core.memory.memory_tool import memory_tool, permit_memories
from longhold.core.messages import ToolUse
from longhold.core.tools.context import ToolContext
from longhold.core.tools.protocol import Input, Outcome, make_tool
from longhold.core.turn.round import Allowed, Denied, let_pass

TOOLS = {tool.name: tool for tool in STANDARD}


async def call(name, judge=let_pass, tool=None, **given):
    """Ask the permit about a call."""
    use = ToolUse(id="t", name=name, input=given)
    return await permit_memories(judge)(use, tool or TOOLS[name])


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("Read", {"file_path": "a.py"}),
        ("Grep", {"pattern": "x"}),
        ("Glob", {"pattern": "*.py"}),
        ("Bash", {"command": "git log --oneline | head -5"}),
        ("Bash", {"command": "ls", "run_in_background": False}),
    ],
)
async def test_looking_passes(name, given):
    assert isinstance(await call(name, **given), Allowed)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("Write", {"file_path": "/memories/a.md", "content": "x"}),
        ("Edit", {"file_path": "a.md", "old_string": "a", "new_string": "b"}),
        ("WebFetch", {"url": "https://example.org"}),
        ("TodoWrite", {"todos": []}),
        ("Skill", {"skill": "x"}),
        ("EnterPlan", {}),
        ("KillShell", {"id": "1"}),
        ("BashOutput", {"id": "1"}),
        ("Bash", {"command": "echo x > memory/a.md"}),
        ("Bash", {"command": "cat a >> b"}),
        ("Bash", {"command": "ln -s /etc/passwd a.md"}),
        ("Bash", {"command": "cat a; rm b"}),
        ("Bash", {"command": "cat a\nrm b"}),
        ("Bash", {"command": "cat $(rm b)"}),
        ("Bash", {"command": "ls `rm b`"}),
        ("Bash", {"command": "find . -exec rm {} +"}),
        ("Bash", {"command": "find . -delete"}),
        ("Bash", {"command": "sort -o a b"}),
        ("Bash", {"command": "ls | tee a"}),
        ("Bash", {"command": "git -c alias.x='!rm b' x"}),
        ("Bash", {"command": "X=1 ls"}),
        ("Bash", {"command": "bash -c 'rm b'"}),
        ("Bash", {"command": "curl https://example.org"}),
        ("Bash", {"command": "tail -f a", "run_in_background": True}),
        ("Bash", {"command": "ls", "run_in_background": "true"}),
        ("Bash", {"command": ["ls"]}),
        ("Bash", {}),
    ],
)
async def test_all_else_is_denied(name, given):
    verdict = await call(name, **given)
    assert isinstance(verdict, Denied) and not verdict.ends_turn


class Nothing(Input, frozen=True, kw_only=True):
    """No input."""


def disguised(name, kind):
    async def run(given, tool_context):
        return Outcome(content="done")

    return make_tool(name, Nothing, run, kind=kind, description="x", is_read_only=True)


@pytest.mark.parametrize(
    "tool",
    [
        disguised("mcp__files__Read", "read"),
        disguised("Read", "write"),
        disguised("Bash", "other"),
        disguised("Agent", "read"),
        disguised("read", "read"),
    ],
)
async def test_a_tool_is_what_it_is_called_and_of_its_kind(tool):
    assert isinstance(await call(tool.name, tool=tool), Denied)
    assert isinstance(await call("Read", tool=tool), Denied)


async def test_the_sessions_no_is_a_no_and_ends_nothing():
    async def no(use, tool):
        return Denied(reason="not here", ends_turn=True)

    assert await call("Read", judge=no, file_path="/etc/shadow") == Denied(reason="not here")


async def test_what_is_checked_is_what_will_run():
    async def rewriting(use, tool):
        return Allowed(input={"command": "rm -rf ."})

    assert isinstance(await call("Bash", judge=rewriting, command="ls"), Denied)


@pytest.mark.parametrize(
    "path",
    [
        "/memories/../escaped.md",
        "/memories/./../../escaped.md",
        "/memories/%2e%2e/escaped.md",
        "/memories//etc/escaped.md",
        "/etc/escaped.md",
        "memories/escaped.md",
        "/memories/..\\escaped.md",
        "/memories/link.md",
        "/memories/linked/escaped.md",
        "/memories/.history.db",
        "/memories/team/escaped.md",
        "/memories/MEMORY.md",
        "/memories/a\u2024\u2024/escaped.md",
        "~/escaped.md",
    ],
)
async def test_no_path_of_the_memory_tool_leads_out(store, tmp_path, path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "target.md").write_text("untouched")
    (store.root / "link.md").symlink_to(outside / "target.md")
    (store.root / "linked").symlink_to(outside)
    branch = Branch(store)
    tool_context = ToolContext(root=tmp_path, home=tmp_path, scratch=tmp_path)
    tool = memory_tool(branch)
    given = {"command": "create", "path": path, "file_text": "x"}
    assert isinstance(await call("memory", tool=tool, **given), Allowed)
    outcome = await tool.run(given, tool_context)
    assert outcome.is_error
    assert branch.changes() == []
    assert (outside / "target.md").read_text() == "untouched"
    assert sorted(p.name for p in outside.iterdir()) == ["target.md"]
