"""A symlink that changes between check and use does not redirect a tool."""

import json
import threading
import time

import pytest

from longhold.agent.build import build_agent
from longhold.agent.permissions import Answer, Gate, Places, parse_rules
from longhold.agent.tools.edit import EDIT, WRITE
from longhold.agent.tools.read import READ
from longhold.core.log.entries import Ran
from longhold.core.messages import text_of
from longhold.core.models.scripted import ScriptedModel
from longhold.core.settings.project import UnusableFile, read_text
from longhold.core.tools.context import ToolContext

SECRET = "the secret"
SECONDS = 1.5
CALLS = {
    "Read": (READ, {}),
    "Write": (WRITE, {"content": "evil"}),
    "Edit": (EDIT, {"old_string": "", "new_string": "evil"}),
}


@pytest.fixture
def world(tmp_path):
    """A project with a link `at` to a directory in it, and a directory outside it."""
    for place in (project := tmp_path / "project", outside := tmp_path / "outside"):
        (place / "real").mkdir(parents=True)
    (project / "real" / "file").write_text("harmless")
    (outside / "real" / "file").write_text(SECRET)
    point(project / "at", project / "real")
    return project, outside


def point(link, target):
    made = link.with_name(f"{link.name}.new")
    made.symlink_to(target)
    made.replace(link)


@pytest.mark.parametrize("tool", CALLS)
@pytest.mark.parametrize("name", ["at/file", "file"])
async def test_what_the_user_said_yes_to_is_what_is_opened(world, tool, name):
    """The link changes while the question is on the screen."""
    project, outside = world
    point(project / "file", project / "real" / "file")
    if tool == "Edit":  # an empty `old_string` makes a new file
        for place in world:
            (place / "real" / "file").write_text("")
    before = (outside / "real" / "file").read_text()
    call = json.dumps({"file_path": name, **CALLS[tool][1]})
    given = ScriptedModel(f"tool: {tool} {call}\n---\ntext: done\n", name="claude-opus-4-6")

    async def ask(question):
        point(project / "at", outside / "real")
        point(project / "file", outside / "real" / "file")
        return Answer(choice="once")

    agent = await build_agent(given, directory=project, mode="ask", ask=ask)
    try:
        if tool == "Write":  # a file must have been read before it is replaced
            await READ.run({"file_path": name}, agent.tool_context)
        async for _ in agent.run("go"):
            pass
        [ran] = [entry for entry in agent.session.view.history if isinstance(entry, Ran)]
    finally:
        await agent.close()
    assert (outside / "real" / "file").read_text() == before
    assert SECRET not in text_of(ran.content)
    if tool != "Read":
        assert "evil" in (project / "real" / "file").read_text()


@pytest.mark.parametrize("tool", CALLS)
async def test_a_link_that_changes_all_the_time_never_leads_outside(world, tool):
    project, outside = world
    is_over = threading.Event()

    def swap():
        while not is_over.is_set():
            point(project / "at", outside / "real")
            point(project / "at", project / "real")

    swapping = threading.Thread(target=swap)
    made, extra = CALLS[tool]
    gate = Gate(rules=parse_rules(), mode="accept_edits")
    places = Places(roots=(project,), cwd=project)
    allowed = 0
    swapping.start()
    try:
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            context = ToolContext(root=project, home=project, scratch=project)
            given = {"file_path": f"at/new{allowed}" if extra else "at/file", **extra}
            if gate.judge(made, given, places).outcome != "allow":
                continue
            allowed += 1
            outcome = await made.run(given, context)
            assert SECRET not in text_of(outcome.content)
            assert [one.name for one in (outside / "real").iterdir()] == ["file"]
    finally:
        is_over.set()
        swapping.join()
    assert allowed > 20
    assert (outside / "real" / "file").read_text() == SECRET


def test_a_projects_own_files_are_not_read_through_a_changing_link(world):
    project, outside = world
    is_over = threading.Event()

    def swap():
        """Put a link in the place of the directory itself, and the directory back."""
        while not is_over.is_set():
            (project / "real").rename(project / "kept")
            (project / "real").symlink_to(outside / "real")
            (project / "real").unlink()
            (project / "kept").rename(project / "real")
            time.sleep(0.0002)

    swapping = threading.Thread(target=swap)
    swapping.start()
    read = 0
    try:
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            try:
                assert read_text(project / "real" / "file", 1_000, within=project) == "harmless"
                read += 1
            except UnusableFile:
                continue
    finally:
        is_over.set()
        swapping.join()
    assert read
