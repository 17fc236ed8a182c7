"""Contract suites for Longhold's interfaces, for its own implementations and for yours.

    pytest tests/contracts --model echo/1 --tool WordCount --transcript plain=chat.txt
    pytest tests/core/stores/test_contract.py --store redis://localhost/7

Without an option, a suite checks Longhold's own implementations.
"""

import pytest

from longhold.agent.tools.plan import TODO_WRITE
from longhold.core.models.registry import open_model
from longhold.core.models.scripted import ScriptedModel
from longhold.core.settings.installation import load_plugins

SCRIPT = "text: One.\n---\nthink: Hm.\ntext: Two.\n---\ntool: Read {}\n---\ntext: Four."


@pytest.fixture
async def model(request):
    """The model named by `--model`, or a scripted one."""
    name = request.config.getoption("--model")
    opened = open_model(name) if name else ScriptedModel(SCRIPT)
    yield opened
    await opened.close()


@pytest.fixture
def tool(request):
    """The tool that a plug-in registers under the name of `--tool`, or one of the agent's."""
    name = request.config.getoption("--tool")
    return load_plugins("tools", name)[name] if name else TODO_WRITE
