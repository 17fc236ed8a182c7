"""The memory tool: its commands on the store and on a branch, and refusals."""

import pytest

from longhold.core.memory.branch import Branch
from longhold.core.memory.inbox import ConsentedMemories
from longhold.core.memory.memory import Memory
from longhold.core.memory.memory_tool import memory_tool, usable_tools
from longhold.core.tools.context import ToolContext

HEAD = "---\nname: Deploys\ndescription: when we deploy\ntype: project\n---\n\n"


class NoOrigin:
    """Leaves memories as they are."""

    session = "s"

    def on(self, change):
        return change


def direct(store):
    """The store itself, for a session that read nothing from outside."""
    return ConsentedMemories(
        open=lambda: store, by="agent", provenance=NoOrigin, is_outside=lambda: False
    )


@pytest.fixture
def tool_context(tmp_path):
    """Somewhere to work."""
    return ToolContext(root=tmp_path, home=tmp_path, scratch=tmp_path)


@pytest.fixture
def memory(store, tool_context, clock):
    """Call the tool on the store."""

    async def call(command, **given):
        tool = memory_tool(direct(store), clock)
        outcome = await tool.run({"command": command, **given}, tool_context)
        assert isinstance(outcome.content, str)
        return outcome

    return call


async def test_what_is_created_is_a_commit_of_the_agents(store, memory, clock):
    done = await memory("create", path="/memories/deploy.md", file_text=HEAD + "On Tuesday.\n")
    assert not done.is_error
    kept = store.memory("deploy.md")
    assert (kept.name, kept.body, kept.modified) == ("Deploys", "On Tuesday.\n", clock.at)
    assert store.history.log()[0].by == "agent"
    assert "when we deploy" in store.index()


async def test_a_file_without_a_head_gets_one(store, memory):
    await memory("create", path="/memories/a.md", file_text="The board is in Linear.\n")
    assert store.memory("a.md").description == "The board is in Linear."
    assert store.read("a.md").startswith("---\nname: a\n")


async def test_a_file_that_exists_is_not_written_over(memory):
    await memory("create", path="/memories/a.md", file_text="one\n")
    done = await memory("create", path="/memories/a.md", file_text="two\n")
    assert done.is_error and "exists already" in done.content


async def test_view_lists_and_shows_lines(store, memory):
    await memory("create", path="/memories/ops/db.md", file_text=HEAD + "one\ntwo\n")
    root = await memory("view", path="/memories")
    assert "holds 1 files" in root.content and "/memories/ops/db.md" in root.content
    assert "/memories/ops/db.md" in (await memory("view", path="/memories/ops")).content
    whole = await memory("view", path="/memories/ops/db.md")
    assert "     2\tname: Deploys" in whole.content
    some = await memory("view", path="/memories/ops/db.md", view_range=[2, 3])
    assert some.content.splitlines()[1:] == ["     2\tname: Deploys", "     3\tdescription: when we deploy"]  # fmt: skip
    assert "ops/db.md" in (await memory("view", path="/memories/MEMORY.md")).content
    assert (await memory("view", path="/memories/ops/db.md", view_range=[5, 99])).is_error
    assert (await memory("view", path="/memories/no.md")).is_error


async def test_str_replace_changes_what_occurs_once(store, memory):
    await memory("create", path="/memories/a.md", file_text=HEAD + "a b a\n")
    assert not (
        await memory("str_replace", path="/memories/a.md", old_str="b", new_str="c")
    ).is_error
    assert store.memory("a.md").body == "a c a\n"
    for text in ("a", "zebra", ""):
        done = await memory("str_replace", path="/memories/a.md", old_str=text, new_str="x")
        assert done.is_error


async def test_insert_puts_text_after_a_line(store, memory):
    await memory("create", path="/memories/a.md", file_text="one\ntwo\n")
    lines = len(store.read("a.md").splitlines())
    await memory("insert", path="/memories/a.md", insert_line=lines - 1, insert_text="middle")
    assert store.memory("a.md").body == "one\nmiddle\ntwo\n"
    done = await memory("insert", path="/memories/a.md", insert_line=99, insert_text="x")
    assert done.is_error and "insert_line must be" in done.content


async def test_delete_leaves_tombstones(store, memory):
    for name in ("ops/a.md", "ops/b.md", "c.md"):
        await memory("create", path=f"/memories/{name}", file_text="x\n")
    assert not (await memory("delete", path="/memories/ops")).is_error
    assert store.versions().keys() == {"c.md"}
    assert {stone.file for stone in store.history.tombstones()} == {"ops/a.md", "ops/b.md"}
    assert (await memory("delete", path="/memories")).is_error
    assert (await memory("delete", path="/memories/none.md")).is_error


async def test_rename_keeps_the_text(store, memory):
    await memory("create", path="/memories/a.md", file_text="x\n")
    await memory("create", path="/memories/ops/b.md", file_text="y\n")
    text = store.read("a.md")
    await memory("rename", old_path="/memories/a.md", new_path="/memories/c.md")
    assert store.read("c.md") == text and not store.version("a.md")
    await memory("rename", old_path="/memories/ops", new_path="/memories/duty")
    assert store.version("duty/b.md")
    done = await memory("rename", old_path="/memories/c.md", new_path="/memories/duty/b.md")
    assert done.is_error and "exists already" in done.content


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "/memories/../../etc/passwd.md",
        "/memories/%2e%2e/x.md",
        "/memoriesx/a.md",
        "memories/a.md",
        "",
        "/memories/.hidden.md",
        "/memories/a.txt",
        "/memories/MEMORY.md",
        "/memories/team/a.md",
    ],
)
async def test_a_path_out_of_the_store_is_refused(store, memory, path):
    assert (await memory("create", path=path, file_text="x")).is_error
    assert store.versions() == {}


async def test_a_secret_is_refused(store, memory):
    done = await memory("create", path="/memories/a.md", file_text="AKIA" + "Z7QKX2VBMTN4RWLS")
    assert done.is_error and "secret" in done.content and "Z7QKX" not in done.content


async def test_on_a_branch_nothing_happens_yet(store, write, tool_context):
    write(Memory(file="a.md", name="a", description="one"))
    branch = Branch(store)
    tool = memory_tool(branch)
    made = {"command": "create", "path": "/memories/b.md", "file_text": "two\n"}
    await tool.run(made, tool_context)
    await tool.run({"command": "delete", "path": "/memories/a.md"}, tool_context)
    assert store.versions().keys() == {"a.md"}
    branch.merge(by="dream", why="x")
    assert store.versions().keys() == {"b.md"}


def test_only_view_changes_nothing(store):
    tool = memory_tool(direct(store))
    assert tool.is_read_only({"command": "view", "path": "/memories"})
    assert not tool.is_read_only({"command": "delete", "path": "/memories/a.md"})


async def test_search_finds_what_the_index_has_no_room_for(store, tool_context, clock):
    branch = Branch(store)
    branch.put(Memory(file="db.md", name="db", description="the staging database is db-7"))
    branch.put(Memory(file="tea.md", name="tea", description="Ann drinks tea"))
    branch.merge(by="agent", why="x")
    mine = Branch(store)
    mine.put(Memory(file="new.md", name="new", description="the production database is db-9"))
    mine.remove("tea.md", "old")
    for pages, query, found in (
        (direct(store), "staging database", ["db.md"]),
        (mine, "database", ["db.md", "new.md"]),
        (mine, "tea", []),
    ):
        done = await memory_tool(pages, clock).run(
            {"command": "search", "query": query}, tool_context
        )
        lines = done.content.splitlines()
        assert lines[0] == f"{len(found)} memories match, best first:"
        assert [line.partition(":")[0] for line in lines[1:]] == [f"/memories/{f}" for f in found]


async def test_a_search_for_nothing_is_refused(memory):
    done = await memory("search", query=" ")
    assert done.is_error and "needs a query" in done.content


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        (("Bash", "Grep", "Read", "Write", "memory"), "Read, Grep and commands that only read"),
        (("Read", "memory"), "to look at other things, Read."),
        (("Write", "memory"), "You have the `memory` tool for `/memories`. Everything else"),
    ],
)
def test_a_fork_is_told_of_the_tools_its_prompt_lists(tools, said):
    assert said in usable_tools([{"name": name} for name in tools])


def test_without_the_tool_there_is_nothing_to_tell():
    assert usable_tools([{"name": "Read"}]) == ""
