"""Agents of a session in a database: another machine knows how they ended, and resumes them."""

import json

from casting import Cast
from lazy import needs
from longhold.agent.build import build_agent
from longhold.core.log.entries import Ended, Replied, Said, Spawned
from longhold.core.messages import Text
from longhold.core.settings import home

needs("psycopg")

SCRIPTS = {
    "start now": 'tool: Agent {"description": "d", "prompt": "find the barley", '
    '"run_in_background": true}\n---\ntext: started',
    "find the barley": "text: it is in the barn",
    "go on": "text: done",
}


async def test_another_machine_goes_on_with_an_agent(database, reopened_database, tmp_path):
    cast = Cast(SCRIPTS)
    held = cast.hold("find the barley")
    first = await build_agent(cast, directory=tmp_path, mode="bypass", store=database)
    async for _ in first.run("start now"):
        pass
    id, session = next(iter(first.supervisor.running)), first.session.id
    await first.close()
    held.set()
    elsewhere = reopened_database()
    agent = await build_agent(
        cast, directory=tmp_path, mode="bypass", store=elsewhere, resume=session
    )
    log = agent.supervisor.log_of(id)
    assert not log.directory.with_suffix(".jsonl").exists()
    await agent.supervisor.resume(id)
    await agent.supervisor.running[id].life
    await agent.close()
    said = [one.text for one in database.load(session).entries if isinstance(one, Ended)]
    assert "it is in the barn" in said[-1]
    assert elsewhere.agents(session) == [f"{session}/{id}"]
    asked = cast.requests[-1].kwargs["messages"]
    assert "find the barley" in str(asked)


async def test_agents_memories_belong_to_one_tenant(database, tmp_path):
    (tmp_path / ".git").mkdir()
    place = home() / "agents"
    place.mkdir(parents=True)
    (place / "keeper.md").write_text("---\nname: keeper\ndescription: d\nmemory: user\n---\nKeep.")
    given = {"command": "create", "path": "/memories/a.md", "file_text": "The barn is red."}
    scripts = {
        "start now": 'tool: Agent {"description": "d", "prompt": "keep it", "agent": "keeper"}'
        "\n---\ntext: started",
        "keep it": f"tool: memory {json.dumps(given)}\n---\ntext: kept",
    }
    other = database.for_tenant("another")
    for store in (database, other):
        cast = Cast(scripts)
        agent = await build_agent(cast, directory=tmp_path, mode="bypass", store=store)
        async for _ in agent.run("start now"):
            pass
        await agent.close()
        asked = next(r for r in cast.requests if "keep it" in str(r.kwargs["messages"][0]))
        assert "The barn is red" not in str(asked.kwargs)
    kept = list(home().rglob("keeper/a.md"))
    assert len(kept) == 2
    database.erase(everything=True)
    assert len(list(home().rglob("keeper/a.md"))) == 1
    other.erase(everything=True)
    assert not list(home().rglob("keeper/a.md"))


async def test_another_machine_knows_how_an_agent_ended(database, reopened_database, tmp_path):
    cast = Cast(SCRIPTS)
    first = await build_agent(cast, directory=tmp_path, mode="bypass", store=database)
    async for _ in first.run("go on"):
        pass
    await first.close()
    with database.open(first.session.id) as log:
        spawned = log.append(Spawned(agent="general-1", kind="general", task="look"))
        with log.agent("general-1").open(log.header, directory="", at=spawned.n) as own:
            own.append(Said(content=(Text(text="find the barley"),)))
            found = (Text(text="it is in the barn"),)
            own.append(Replied(response_id="r", content=found, stop_reason="end_turn"))
    store = reopened_database()
    agent = await build_agent(
        cast, directory=tmp_path, mode="bypass", store=store, resume=first.session.id
    )
    [end] = [e for e in agent.engine.view.history if isinstance(e, Ended)]
    assert (end.state, "it is in the barn" in end.text) == ("completed", True)
    await agent.close()
