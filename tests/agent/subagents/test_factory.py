"""Building agents: tools, model, prompt, memory, skills, and directing agents."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from casting import Cast, entries, hidden, told, until
from longhold.agent.subagents import supervisor
from longhold.agent.subagents.memory_scopes import open_store
from longhold.agent.subagents.worker import AgentWorker
from longhold.core.log.entries import Ended, Ran, Spawned
from longhold.core.memory.inbox import Inbox
from longhold.core.memory.store import MemoryStore
from longhold.core.messages import text_of
from longhold.core.settings import AgentsSettings, MemorySettings, Settings, home

CALL = 'tool: Agent {"description": "d", "prompt": "do it"%s}\n---\ntext: ok'


def _define(name, fields, prompt="Do as you are told."):
    place = home() / "agents"
    place.mkdir(parents=True, exist_ok=True)
    text = f"---\nname: {name}\ndescription: Helps.\n{fields}\n---\n{prompt}"
    (place / f"{name}.md").write_text(text)


def _names(request):
    return [tool["name"] for tool in request.kwargs["tools"]]


def _settings(**agents):
    return replace(Settings(), agents=AgentsSettings(**agents))


async def test_the_tools_of_agents_are_there_only_where_agents_are(opened):
    cast = Cast({"start now": "text: ok", "once more": "text: ok"})
    async with opened(cast, settings=_settings(on=False)) as agent:
        await told(agent)
        session = agent.session.id
    async with opened(cast, resume=session) as agent:
        await told(agent, "once more")
    assert not {"Agent", "SendMessage", "TaskList"} & set(_names(cast.requests[0]))
    assert _names(cast.requests[0]) == _names(cast.requests[1])


async def test_the_list_of_agents_is_frozen_with_the_first_request(opened):
    cast = Cast({"start now": "text: ok", "once more": "text: ok"})
    async with opened(cast) as agent:
        await told(agent)
        session = agent.session.id
    _define("late", "tools: Read")
    async with opened(cast, resume=session) as agent:
        await told(agent, "once more")
    first, second = cast.requests
    assert "- explore: " in str(first.kwargs["tools"])
    assert first.kwargs["tools"] == second.kwargs["tools"]


async def test_a_definition_chooses_tools_prompt_and_turns(opened):
    _define("reader", "tools: Read, Grep, Teleport\nmaxTurns: 1", "You only read.")
    cast = Cast(
        {"start now": CALL % ', "agent": "reader"', "do it": 'tool: Read {"file_path": "add.py"}'}
    )
    async with opened(cast) as agent:
        await told(agent)
        child = next(one for one in cast.requests if "do it" in str(one.kwargs["messages"][0]))
        assert _names(child) == ["Grep", "Read"]
        assert "You only read." in str(child.kwargs["system"])
        [ended] = entries(agent, Ended)
        assert (ended.state, "max turns" in ended.text) == ("stopped", True)


async def test_a_model_that_cannot_be_had_is_told_and_the_parents_answers(opened):
    _define("other", "model: no-such-model")
    async with opened({"start now": CALL % ', "agent": "other"', "do it": "text: done"}) as agent:
        await told(agent)
        assert [entry.state for entry in entries(agent, Ended)] == ["completed"]
        assert any("no-such-model" in line for line in agent.notices.take())


async def test_an_agent_has_a_memory_of_its_own(opened):
    _define("keeper", "memory: user")
    note = (
        'tool: memory {"command": "create", "path": "/memories/tests.md", '
        '"file_text": "Run the tests with make."}\n---\ntext: noted'
    )
    cast = Cast({"start now": CALL % ', "agent": "keeper"', "do it": note, "again": CALL})
    async with opened(cast, mode="bypass") as agent:
        await told(agent)
        assert (home() / "agent-memory" / "keeper" / "tests.md").is_file()
        cast.scripts["again"] = CALL % ', "agent": "keeper"'
        await told(agent, "again")
        assert "Run the tests with make" in str(cast.requests[-2].kwargs["system"])


NOTE = (
    'tool: memory {"command": "create", "path": "/memories/tests.md", '
    '"file_text": "Run the tests with make."}\n---\ntext: noted'
)


async def test_what_an_agent_keeps_names_where_it_was_learnt(opened):
    _define("keeper", "memory: user")
    async with opened(
        {"start now": CALL % ', "agent": "keeper"', "do it": NOTE}, mode="bypass"
    ) as agent:
        await told(agent)
        [spawned] = entries(agent, Spawned)
        session = agent.session.id
    with MemoryStore(home() / "agent-memory" / "keeper") as store:
        [evidence] = store.memory("tests.md").evidence
    assert evidence.startswith(f"{session}/{spawned.agent}#")


@pytest.mark.parametrize("scope", ["user", "project", "local"])
async def test_an_agent_that_read_untrusted_text_only_proposes_memories(opened, scope):
    _define("keeper", f"memory: {scope}")
    fetched = f'tool: Bash {{"command": "curl -s file:///dev/null"}}\n---\n{NOTE}'
    cast = Cast({"start now": CALL % ', "agent": "keeper"', "do it": fetched})
    async with opened(cast, mode="bypass") as agent:
        await told(agent)
        root = agent.tool_context.root
        said = str([one.kwargs["messages"] for one in cast.requests])
    assert "longhold memory --agent keeper inbox" in said
    with open_store("keeper", scope, root, home(), MemorySettings()) as store:
        assert store.versions() == {}
        [waiting] = Inbox(store).waiting()
    assert (waiting.file, waiting.is_outside) == ("tests.md", True)


@pytest.mark.parametrize("fetch", ["", 'tool: Bash {"command": "curl -s file:///dev/null"}\n---\n'])
async def test_what_an_agent_writes_into_its_memories_directory_follows_the_rules(opened, fetch):
    _define("keeper", "memory: user")
    place = home() / "agent-memory" / "keeper"
    given = {"file_path": str(place / "tests.md"), "content": "Run the tests with make."}
    wrote = f"{fetch}tool: Write {json.dumps(given)}\n---\ntext: noted"
    scripts = {"start now": CALL % ', "agent": "keeper"', "do it": wrote}
    async with opened(scripts, mode="bypass") as agent:
        await told(agent)
    with MemoryStore(place) as store:
        by = [commit.by for commit in store.history.log()]
        waiting = [one.file for one in Inbox(store).waiting()]
    assert (by, waiting) == (([], ["tests.md"]) if fetch else (["agent"], []))
    assert (place / "tests.md").exists() == (not fetch)


async def test_what_its_parent_read_counts_for_an_agent_too(opened):
    _define("keeper", "memory: user")
    fetch = 'tool: Bash {"command": "curl -s file:///dev/null"}\n---\n'
    scripts = {"start now": fetch + CALL % ', "agent": "keeper"', "do it": NOTE}
    async with opened(scripts, mode="bypass") as agent:
        await told(agent)
    with MemoryStore(home() / "agent-memory" / "keeper") as store:
        assert (store.versions(), len(Inbox(store).waiting())) == ({}, 1)


async def test_where_the_user_is_to_be_asked_agents_only_propose(opened):
    _define("keeper", "memory: user")
    given = replace(Settings(), memory=MemorySettings(consent="ask"))
    scripts = {"start now": CALL % ', "agent": "keeper"', "do it": NOTE}
    async with opened(scripts, mode="bypass", settings=given) as agent:
        await told(agent)
    with MemoryStore(home() / "agent-memory" / "keeper") as store:
        assert (store.versions(), len(Inbox(store).waiting())) == ({}, 1)


async def test_a_memory_of_its_own_brings_its_tool(opened):
    _define("keeper", "memory: user\ntools: Read")
    _define("bare", "memory: user\ntools: Read\ndisallowedTools: memory")
    for name, tools in (("keeper", ["Read", "memory"]), ("bare", ["Read"])):
        cast = Cast({"start now": CALL % f', "agent": "{name}"', "do it": "text: done"})
        async with opened(cast) as agent:
            await told(agent)
        child = next(one for one in cast.requests if "do it" in str(one.kwargs["messages"][0]))
        assert _names(child) == tools
        assert ("`memory` tool" in str(child.kwargs["system"])) == ("memory" in tools)


async def test_one_that_coordinates_only_directs(opened):
    cast = Cast({"start now": CALL % "", "do it": "text: done", "is done": "text: all of it"})
    async with opened(cast, settings=_settings(coordinator=True)) as agent:
        assert (await told(agent)).text == "all of it"
        main, child = cast.requests[0], cast.requests[1]
        assert {"Agent", "AgentStop", "SendMessage"} <= set(_names(main))
        assert not {"Bash", "Read", "Write"} & set(_names(main))
        assert "You coordinate" in str(main.kwargs["system"])
        assert "`memory` tool" not in str(main.kwargs["system"])
        children = [one for one in cast.requests if "Bash" in _names(one)]
        assert children
        assert "scratchpad" in str(children[0].kwargs["system"])
        assert [entry.is_background for entry in entries(agent, Spawned)] == [True]
        assert child is not main


async def test_an_agent_can_start_agents_and_hears_their_reports(opened):
    inner = CALL.replace("do it", "deeper") % ', "run_in_background": true'
    scripts = {
        "start now": CALL % "",
        "do it": inner.replace("text: ok", "text: sent"),
        "deeper": "text: the depth",
        "| the depth": "text: it says the depth",
    }
    async with opened(scripts) as agent:
        await told(agent)
        assert "it says the depth" in text_of(entries(agent, Ran)[0].content)
        for _ in range(agent.engine.settings.agents.at_once):  # every slot is free again
            assert not agent.supervisor.slots.locked()
            await agent.supervisor.slots.acquire()


async def test_hooks_hear_of_starts_and_may_hold_back_an_end(opened, project, tmp_path):
    once = tmp_path / "once"
    block = f"test -e {once} || {{ touch {once}; echo 'also check it' >&2; exit 2; }}"
    hooks = {
        "SubagentStart": [{"hooks": [{"type": "command", "command": "echo 'mind the cat'"}]}],
        "SubagentStop": [{"matcher": "general", "hooks": [{"type": "command", "command": block}]}],
    }
    home().mkdir(parents=True, exist_ok=True)
    (home() / "settings.json").write_text(json.dumps({"hooks": hooks}))
    cast = Cast({"start now": CALL % "", "do it": "text: first", "also check it": "text: checked"})
    async with opened(cast) as agent:
        await told(agent)
        assert "checked" in text_of(entries(agent, Ran)[0].content)
        assert any("mind the cat" in str(one.kwargs["messages"]) for one in cast.requests)


async def test_progress_is_told_while_it_works(opened, monkeypatch):
    monkeypatch.setattr(supervisor, "PROGRESS_SECONDS", 0.1)
    cast = Cast(
        {
            "start now": CALL % ', "run_in_background": true',
            "do it": 'tool: Bash {"command": "sleep 1.2"}\n---\ntext: slept',
            "is done": "text: ok",
        }
    )
    async with opened(cast, mode="bypass") as agent:
        async for _ in agent.run("start now"):
            pass
        [id] = agent.supervisor.running
        await until(
            lambda: "Running the command sleep" in agent.supervisor.output_of(id).read_text()
        )
        assert "Running the command sleep" in agent.supervisor.lines()[0]
        await told(agent, "")
        assert any("Running the command sleep" in line for line in agent.notices.take())
        assert agent.supervisor.output_of(id).read_text().startswith("slept")


async def test_an_answer_that_is_too_long_is_cut_and_its_file_named(opened):
    settings = _settings(output_chars=1_000)
    long = "text: " + "word " * 1_000
    scripts = {
        "start now": CALL % ', "run_in_background": true',
        "do it": long,
        "is done": "text: ok",
    }
    async with opened(scripts, settings=settings) as agent:
        await told(agent)
        [ended] = entries(agent, Ended)
        assert len(ended.text) < 1_400
        assert "more characters are in" in ended.text
        [report] = [text for text in hidden(agent) if "<agent id" in text]
        assert ended.file in report
        assert agent.supervisor.output_of(ended.agent).read_text().count("word") == 1_000


READER = CALL % ', "agent": "reader", "name": "ada"'
WAKE = 'tool: SendMessage {"to": "ada", "message": "go on please", "summary": "go on"}'
WOKEN = {"start now": READER, "do it": "text: read", "wake": f"{WAKE}\n---\ntext: sent"}


async def test_one_whose_definition_is_gone_is_not_started_again(opened):
    _define("reader", "tools: Read\npermissionMode: plan")
    async with opened(WOKEN) as agent:
        await told(agent)
        session = agent.session.id
    (home() / "agents" / "reader.md").unlink()
    async with opened(WOKEN, resume=session) as agent:
        await told(agent, "wake")
        assert "its definition is gone" in text_of(entries(agent, Ran)[-1].content)
        assert len(entries(agent, Spawned)) == 1


async def test_one_started_again_has_no_more_than_it_had(opened):
    _define("reader", "tools: Read\npermissionMode: plan")
    async with opened(WOKEN) as agent:
        await told(agent)
        session = agent.session.id
    _define("reader", "permissionMode: bypass")
    writes = 'tool: Write {"file_path": "new.txt", "content": "x"}\n---\ntext: tried'
    cast = Cast(WOKEN | {"go on please": writes, "is done": "text: well"})
    async with opened(cast, resume=session, mode="bypass") as agent:
        await told(agent, "wake")
        assert not (agent.tool_context.root / "new.txt").exists()
        first, again = entries(agent, Spawned)
        assert (again.tools, again.mode) == (first.tools, first.mode) == (("Read",), "plan")
    assert ["Read"] in [_names(request) for request in cast.requests]


async def test_progress_that_cannot_be_told_stops_nobody():
    async def ask(_request):
        raise ValueError("no line")

    agent = SimpleNamespace(engine=SimpleNamespace(ask=ask))
    assert await AgentWorker(agent, None, None).progress() == ""
