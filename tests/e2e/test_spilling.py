"""A command that prints 200 KB: the model gets a preview and reads more from disk."""

import re
import sys
from dataclasses import replace

import pytest

from longhold.agent.build import build_agent
from longhold.agent.permissions import Answer as Permission
from longhold.core.log.entries import CacheBroke, Spilled
from longhold.core.messages import Thinking
from longhold.core.messages.rules import violations
from longhold.core.models.anthropic import AnthropicModel
from longhold.core.settings import NotesSettings, load_settings
from longhold.session.session import Session
from longhold.simulator import BrainAnswer, BrainRequest, run_simulator
from longhold.simulator.brains import text, thinking, tool_use

MODEL = "claude-opus-5-5"
PRINTING = (
    f'{sys.executable} -c "import sys\nfor n in range(9000):\n'
    "    print('ValueError: the 4321st' if n == 4321 else f'line {n} of the output')\n"
    'sys.exit(3)"'
)


class Reader:
    """Runs the command, reads the middle of what was spilled, and stops."""

    def __init__(self) -> None:
        self.requests: list[BrainRequest] = []

    def answer(self, request: BrainRequest) -> BrainAnswer:
        """Do the next step."""
        self.requests.append(request)
        if len(self.requests) == 1:
            return _does("Bash", {"command": PRINTING})
        if len(self.requests) == 2:
            file = re.search(r"All of it is in (\S+)", self.results()[-1])[1]
            return _does("Read", {"file_path": file, "offset": 4_322, "limit": 1})
        return BrainAnswer(blocks=(text("Read."),))

    def results(self) -> list[str]:
        """Give the results of the last request, as text."""
        blocks = [block for message in self.requests[-1].messages for block in message["content"]]
        contents = [block["content"] for block in blocks if block["type"] == "tool_result"]
        return [one if isinstance(one, str) else one[0]["text"] for one in contents]


def _does(name: str, given: dict) -> BrainAnswer:
    return BrainAnswer(blocks=(thinking("Let me see."), tool_use(name, given)))


@pytest.fixture
async def played(tmp_path):
    """The agent after its work, the brain that drove it, and what the user was asked about."""
    brain, questions = Reader(), []

    async def yes(question):
        questions.append(question.tool)
        return Permission(choice="once")

    with run_simulator(brain) as simulator:
        model = AnthropicModel(MODEL, base_url=simulator.url, api_key="test")
        settings = replace(load_settings(tmp_path), notes=NotesSettings(on=False))
        agent = await build_agent(model, directory=tmp_path, ask=yes, settings=settings)
        async for _ in agent.run("look"):
            pass
        await agent.close()
    return agent, brain, questions


@pytest.mark.files
async def test_the_model_sees_the_ends_the_errors_and_the_way_to_the_rest(played):
    _, brain, questions = played
    first, read = brain.results()
    assert 'exit-status="3"' in first
    assert "4322: ValueError: the 4321st" in first
    assert first.rstrip().endswith("[Exit status 3.]\n</spilled>")
    assert len(first) < 9_000
    assert "ValueError: the 4321st" in read
    assert questions == ["Bash"]


@pytest.mark.files
async def test_nothing_moves_and_no_thought_is_dropped(played):
    agent, _, _ = played
    view = agent.session.view
    spilled = [entry for entry in view.history if isinstance(entry, Spilled)]
    (body,) = agent.engine.results.list_stored()
    assert body.bytes == spilled[0].bytes > 200_000
    assert len(agent.engine.results.read(body.name)) == body.bytes
    assert not [entry for entry in view.history if isinstance(entry, CacheBroke)]
    assert violations(view.messages()) == []
    blocks = [block for message in view.messages() for block in message.content]
    assert sum(isinstance(block, Thinking) for block in blocks) == 2


async def test_the_same_bytes_go_out_after_a_resume(played):
    agent, _, _ = played
    with Session.resume(agent.session.id) as again:
        assert again.view.messages() == agent.session.view.messages()
