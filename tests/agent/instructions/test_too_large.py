"""Instructions too large for the window: the error comes before a call and lists sizes."""

from longhold.agent.build import build_agent
from longhold.core.models.scripted import ScriptedModel
from longhold.core.turn.loop import Stopped


async def test_a_file_larger_than_the_window_ends_the_run_before_a_call(tmp_path):
    (tmp_path / "AGENTS.md").write_text("word " * 300_000)
    model = ScriptedModel("text: never", name="claude-haiku-4-5")
    agent = await build_agent(model, directory=tmp_path)
    try:
        end = [event async for event in agent.run("hello")][-1]
    finally:
        await agent.close()
    assert isinstance(end, Stopped)
    assert end.reason == "context_overflow"
    assert "Heaviest: instructions" in end.detail
    assert "AGENTS.md" in end.detail
    assert model.requests == []
