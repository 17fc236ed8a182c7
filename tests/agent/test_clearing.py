"""An agent with cleared results: it reads the file again, and the user is informed."""

import time
from dataclasses import replace

from longhold.agent.build import build_agent
from longhold.core.log.entries import Cleared
from longhold.core.messages import text_of
from longhold.core.models.scripted import ScriptedModel
from longhold.core.settings import (
    CacheSettings,
    ClearSettings,
    CostSettings,
    MemorySettings,
    NotesSettings,
    load_settings,
)

READ = 'tool: Read {"file_path": "long.py"}'
OTHERS = [f'tool: Bash {{"command": "echo {i}"}}' for i in range(5)]


async def test_a_cleared_read_is_not_answered_with_unchanged(tmp_path):
    (tmp_path / "long.py").write_text("a line of code that is read\n" * 400)
    settings = replace(
        load_settings(tmp_path),
        cache=CacheSettings(lifetime="5m", diagnose=False),
        clear=ClearSettings(paid=False),
        cost=CostSettings(need_weight=0.0),
        notes=NotesSettings(on=False),
        memory=MemorySettings(on=False),
    )
    script = "\n---\n".join([READ, *OTHERS, "text: so far", READ, "text: done"])
    model = ScriptedModel(script, name="claude-opus-4-6")
    skipped = []
    agent = await build_agent(
        model,
        directory=tmp_path,
        mode="bypass",
        settings=settings,
        clock=lambda: time.time() + sum(skipped),
    )
    async for _ in agent.run("read it"):
        pass
    skipped.append(600)
    async for _ in agent.run("and again"):
        pass
    history = agent.session.view.history
    [entry] = [entry for entry in history if isinstance(entry, Cleared)]
    results = [text_of(e.content) for e in history if type(e).__name__ == "Ran"]
    assert results[-1] == results[0], "shown in full"
    assert entry.why in agent.notices.take()
    await agent.close()
