"""A working directory with files around it, and tools as permissions see them."""

import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from longhold.agent.permissions import Places

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))  # the attacks are made up there


@dataclass(frozen=True, kw_only=True)
class Described:
    """A tool reduced to what a decision looks at."""

    name: str
    kind: str
    path_inputs: tuple = ()
    command_input: str = ""
    is_read_only: object = field(default=lambda given: False)


BASH = Described(name="Bash", kind="shell", command_input="command")
READ = Described(name="Read", kind="read", path_inputs=("file_path",))
EDIT = Described(name="Edit", kind="write", path_inputs=("file_path",))
WRITE = Described(name="Write", kind="write", path_inputs=("file_path",))
GREP = Described(name="Grep", kind="search", path_inputs=("path",))
GLOB = Described(name="Glob", kind="search", path_inputs=("path",))
FETCH = Described(name="WebFetch", kind="fetch")
MCP = Described(name="mcp__tracker__create", kind="other")
FIND = Described(name="mcp__tracker__find", kind="search")
TODO = Described(name="TodoWrite", kind="other")
KILL = Described(name="KillShell", kind="shell")
EXIT = Described(name="ExitPlan", kind="ask")
ASK = Described(name="AskUser", kind="ask")
LOOK = Described(name="Lookup", kind="other", is_read_only=lambda given: True)
TOOLS = (BASH, READ, EDIT, WRITE, GREP, GLOB, FETCH, MCP, TODO, KILL, EXIT, ASK, LOOK, FIND)


@pytest.fixture
def tools():
    """Give the tools by name."""
    return {t.name: t for t in TOOLS}


@pytest.fixture
def places(tmp_path):
    """Make a working directory with links, hidden places and neighbours."""
    work, outside, home = tmp_path / "project", tmp_path / "outside", tmp_path / "home"
    for directory in (work / "src", work / ".git" / "hooks", work / ".longhold", outside, home):
        directory.mkdir(parents=True)
    (work / "src" / "a.py").write_text("a = 1\n")
    (work / ".env").write_text("KEY=value\n")
    (outside / "secret").write_text("secret\n")
    (work / "link").symlink_to(outside)
    (work / "src" / "secret-link").symlink_to(outside / "secret")
    (work / "dangling").symlink_to(outside / "new-file")
    (work / "loop").symlink_to(work / "loop")
    (tmp_path / "project-evil").mkdir()
    (tmp_path / "spill").mkdir()
    return Places(
        roots=(work,),
        cwd=work,
        readable=(tmp_path / "spill",),
        writable=(home / "plan.md",),
        home=home,
    )
