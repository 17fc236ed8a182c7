"""`Agent.open`, as a program uses it."""

import pytest

from longhold import Agent, Session, Settings
from longhold.core.turn.loop import Stopped
from longhold.errors import ConfigError


async def test_an_agent_is_opened_by_a_models_name_and_resumed(tmp_path):
    script = tmp_path / "script.txt"
    script.write_text("text: Done.\n---\ntext: Done again.")
    model = f"scripted:{script}"
    async with await Agent.open(model, directory=tmp_path, settings=Settings()) as agent:
        events = [event async for event in agent.run("Say it.")]
        id = agent.session.id
    assert isinstance(events[-1], Stopped)
    assert isinstance(agent.session, Session)
    async with await Agent.open(model, directory=tmp_path, resume=id) as again:
        assert "Done." in str(again.session.view.messages())


async def test_an_unknown_model_is_refused_before_a_session_is_made(tmp_path):
    with pytest.raises(ConfigError):
        await Agent.open("no-such-model-anywhere", directory=tmp_path)
