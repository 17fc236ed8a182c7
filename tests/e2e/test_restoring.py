"""After a compaction, an agent continues with its files restored."""

import pytest

from longhold.agent.build import build_agent
from longhold.agent.tools.edit import EDIT
from longhold.agent.tools.read import READ
from longhold.core.log.entries import Restored
from longhold.core.messages import text_of
from longhold.core.messages.rules import violations
from longhold.core.models.scripted import ScriptedModel
from longhold.core.settings import CompactSettings, Settings

LONG = "\n".join(f"value_{i} = {i} * {i}  # a line of some length" for i in range(400))
SCRIPT = """\
tool: Read {"file_path": "code.py"}
---
tool: Read {"file_path": "notes.txt"}
---
text: I have read both.
---
text: ok
"""
OFFLINE = Settings(compact=CompactSettings(model=False))


@pytest.fixture
def project(tmp_path):
    (tmp_path / "code.py").write_text("x = 1\n")
    (tmp_path / "notes.txt").write_text(LONG)
    return tmp_path


async def worked(project):
    """An agent that has read two files."""
    model = ScriptedModel(SCRIPT, name="claude-opus-4-6")
    agent = await build_agent(model, directory=project, mode="ask", settings=OFFLINE)
    async for _ in agent.run("look at both"):
        pass
    return agent


def restored(agent):
    found = [entry for entry in agent.engine.view.history if isinstance(entry, Restored)]
    return [text_of((block,)) for entry in found for block in entry.content]


async def test_files_are_before_the_model_again_and_count_as_read(project):
    agent = await worked(project)
    (project / "code.py").write_text("x = 2\n")
    await agent.compact()
    texts = restored(agent)
    assert [text.partition(",")[0] for text in texts] == [
        f"[Restored file {project / 'notes.txt'}",
        f"[Restored file {project / 'code.py'}",
    ]
    assert "x = 2" in texts[1]
    assert violations(agent.engine.view.messages()) == []
    again = await READ.run({"file_path": "code.py"}, agent.tool_context)
    assert "is unchanged" in text_of(again.content)
    change = {"file_path": "code.py", "old_string": "x = 2", "new_string": "x = 3"}
    assert not (await EDIT.run(change, agent.tool_context)).is_error
    await agent.close()


async def test_an_undo_takes_back_what_was_restored(project):
    agent = await worked(project)
    before = agent.engine.view.messages()
    entry = await agent.compact()
    assert entry is not None
    agent.session.undo(entry.n)
    assert agent.engine.view.messages() == before
    await agent.close()


async def test_a_resumed_session_knows_the_files_it_read_and_nobody_changed(project):
    agent = await worked(project)
    session = agent.session.id
    await agent.close()
    (project / "notes.txt").write_text("changed by somebody else")
    model = ScriptedModel("text: ok", name="claude-opus-4-6")
    again = await build_agent(model, directory=project, resume=session, settings=OFFLINE)
    known = [seen.path.name for seen in again.tool_context.files.list_newest()]
    await again.close()
    assert known == ["code.py"]
