"""A fork that updates notes can write only one file."""

import os

import pytest

from longhold.agent.tools.bash import BASH
from longhold.agent.tools.edit import EDIT, WRITE
from longhold.agent.tools.read import READ
from longhold.core.messages import ToolUse
from longhold.core.stages.notes.update import permit_only
from longhold.core.turn.round import Allowed


@pytest.fixture
def file(tmp_path):
    path = tmp_path.resolve() / "notes.draft.md"
    path.write_text("notes")
    (tmp_path / "other.md").write_text("other")
    return path


async def passes(file, tool, **given):
    return await permit_only(file)(ToolUse(id="1", name=tool.name, input=given), tool)


@pytest.mark.parametrize("tool", [EDIT, WRITE])
async def test_the_file_itself_may_be_changed(file, tool):
    for name in (str(file), f"{file.parent}/./x/../{file.name}"):
        verdict = await passes(file, tool, file_path=name, content="x")
        assert isinstance(verdict, Allowed)
        assert verdict.input["file_path"] == str(file)


@pytest.mark.parametrize(
    "name",
    [
        "{place}/other.md",
        "{place}/../notes.draft.md",
        "notes.draft.md",
        "~/notes.draft.md",
        "{place}/notes.draft.md/",
        "{place}/NOTES.draft.md",
        "{place}/notes.draft.md\x00",
        "/etc/passwd",
        "",
    ],
)
async def test_no_other_path_passes(file, name):
    given = name.format(place=file.parent)
    verdict = await passes(file, EDIT, file_path=given, old_string="a", new_string="b")
    assert isinstance(verdict, Allowed) is (given == f"{file}/")


async def test_a_path_that_is_no_text_is_refused(file):
    assert not isinstance(await passes(file, EDIT, file_path=[str(file)]), Allowed)
    assert not isinstance(await passes(file, EDIT), Allowed)


async def test_no_other_tool_passes(file):
    assert not isinstance(await passes(file, READ, file_path=str(file)), Allowed)
    forged = ToolUse(id="1", name="Edit", input={"file_path": str(file)})
    assert not isinstance(await permit_only(file)(forged, READ), Allowed)


async def test_no_command_passes(file):
    assert not isinstance(await passes(file, BASH, command=f"echo >> {file}"), Allowed)


async def test_a_link_in_its_place_is_refused(file):
    file.unlink()
    file.symlink_to(file.with_name("other.md"))
    assert not isinstance(await passes(file, EDIT, file_path=str(file)), Allowed)


async def test_a_second_name_in_its_place_is_refused(file):
    file.unlink()
    os.link(file.with_name("other.md"), file)
    assert not isinstance(await passes(file, EDIT, file_path=str(file)), Allowed)


async def test_a_link_on_the_way_is_refused(file, tmp_path):
    (tmp_path / "way").symlink_to(tmp_path)
    verdict = await passes(file, EDIT, file_path=str(tmp_path / "way" / file.name))
    assert not isinstance(verdict, Allowed)
