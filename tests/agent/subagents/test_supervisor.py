"""Running agents: foreground, background, stopping, resuming, and one report each."""

import asyncio
from dataclasses import replace

import pytest

from casting import Cast, entries, hidden, told, until
from longhold.agent.subagents.ledger import Mailbox, agent_box
from longhold.agent.subagents.mail import Mail, Note
from longhold.agent.subagents.worktree import BRANCH_PREFIX
from longhold.core.log import load
from longhold.core.log.entries import Ended, Forked, Ran, Spawned
from longhold.core.log.spending import sum_spending
from longhold.core.messages import text_of
from longhold.core.settings import AgentsSettings, Settings

CALL = 'tool: Agent {"description": "look it up", "prompt": "find add"%s}'


async def test_a_foreground_agents_answer_is_the_calls_result(opened):
    scripts = {
        "start now": CALL % "" + "\n---\ntext: It subtracts.",
        "find add": 'tool: Read {"file_path": "add.py"}\n---\ntext: add.py:2 subtracts',
    }
    async with opened(scripts) as agent:
        end = await told(agent)
        assert end.text == "It subtracts."
        [ran], [spawned], [ended] = (entries(agent, kind) for kind in (Ran, Spawned, Ended))
        assert "add.py:2 subtracts" in text_of(ran.content)
        assert (spawned.kind, spawned.task, spawned.tool_use_id) == (
            "general", "look it up", ran.tool_use_id,
        )  # fmt: skip
        assert (ended.agent, ended.state) == (spawned.agent, "completed")
        log = agent.engine.log.path.with_suffix("") / "agents" / f"{spawned.agent}.jsonl"
        assert "return a - b" in log.read_text()
        assert load(log).header.parent == agent.session.id
        assert agent.supervisor.lines() == []


async def test_what_an_agent_spends_is_its_parents(opened):
    scripts = {"start now": CALL % "" + "\n---\ntext: ok", "find add": "text: found"}
    async with opened(scripts) as agent:
        await told(agent)
        [beside] = entries(agent, Forked)
        assert beside.source == "agent:general"
        assert sum_spending(agent.session.view.history).calls == 3
        assert agent.budget.session.calls == 3


async def test_a_background_agent_gives_a_receipt_and_reports_once(opened):
    back = ', "run_in_background": true'
    scripts = {
        "start now": CALL % back + "\n---\ntext: started",
        "find add": "text: add subtracts",
        "is done": "text: thanks",
        "more": "text: nothing new",
    }
    async with opened(scripts) as agent:
        end = await told(agent)
        assert end.text == "thanks"
        [ran], [ended] = entries(agent, Ran), entries(agent, Ended)
        assert "works in the background" in text_of(ran.content)
        [report] = [text for text in hidden(agent) if "add subtracts" in text]
        assert "\n| add subtracts" in report
        assert ended.file in text_of(ran.content)
        await told(agent, "more")
        assert sum("add subtracts" in text for text in hidden(agent)) == 1


async def test_one_that_takes_long_goes_on_in_the_background(opened):
    cast = Cast(
        {
            "start now": CALL % "" + "\n---\ntext: on",
            "find add": "text: late",
            "is done": "text: ok",
        }
    )
    held = cast.hold("find add")
    settings = Settings(agents=AgentsSettings(background_seconds=0.2))
    async with opened(cast, settings=settings) as agent:
        work = asyncio.create_task(told(agent))
        await until(lambda: entries(agent, Ran))
        held.set()
        assert (await work).text == "ok"
        assert "It takes long" in text_of(entries(agent, Ran)[0].content)


async def test_agents_run_side_by_side(opened):
    two = CALL % "" + '\ntool: Agent {"description": "d", "prompt": "find sub"}'
    cast = Cast(
        {"start now": two + "\n---\ntext: both", "find add": "text: a", "find sub": "text: s"}
    )
    first, second = cast.hold("find add"), cast.hold("find sub")
    async with opened(cast) as agent:
        work = asyncio.create_task(told(agent))
        await until(lambda: len(agent.supervisor.running) >= 2)
        second.set()
        first.set()
        assert (await work).text == "both"


async def test_an_abort_stops_those_it_waits_for_and_leaves_the_background(opened):
    cast = Cast(
        {
            "start now": 'tool: Agent {"description": "d", "prompt": "stay", "run_in_background": true}\n'
            + CALL % "",
            "find add": "text: a",
            "stay": "text: still here",
            "again": "text: ok",
        }
    )
    held, slow = cast.hold("stay"), cast.hold("find add")
    async with opened(cast) as agent:
        work = asyncio.create_task(told(agent))
        await until(lambda: len(agent.supervisor.running) >= 2)
        agent.abort.set()
        assert (await work).reason == "aborted_tools"
        assert [one.order.prompt for one in agent.supervisor.running.values()] == ["stay"]
        assert [entry.state for entry in entries(agent, Ended)] == ["stopped"]
        held.set()
        slow.set()
        await told(agent, "again")
        assert any("still here" in text for text in hidden(agent))


async def test_closing_interrupts_and_resuming_tells_and_goes_on(opened):
    scripts = {
        "start now": 'tool: Agent {"description": "d", "prompt": "find add", "name": "ada", '
        '"run_in_background": true}\n---\ntext: started',
        "find add": "text: never said",
        "what now": 'tool: SendMessage {"to": "ada", "message": "go on please", "summary": "go on"}'
        "\n---\ntext: sent",
        "go on please": "text: add subtracts",
        "is done": "text: all done",
    }
    cast = Cast(scripts)
    cast.hold("find add")
    async with opened(cast) as agent:
        async for _ in agent.run("start now"):
            pass
        session = agent.session.id
    async with opened(scripts, resume=session) as agent:
        assert [entry.state for entry in entries(agent, Ended)] == ["interrupted"]
        assert (await told(agent, "what now")).text == "all done"
        assert sum('state="interrupted"' in text for text in hidden(agent)) == 1
        assert [entry.state for entry in entries(agent, Ended)] == ["interrupted", "completed"]
        assert sum("add subtracts" in text for text in hidden(agent)) == 1


@pytest.mark.parametrize("by", ["id", "name"])
async def test_one_the_user_stopped_is_not_started_again(opened, by):
    scripts = {
        "start now": 'tool: Agent {"description": "d", "prompt": "find add", "name": "ada", '
        '"run_in_background": true}\n---\ntext: started',
        "find add": "text: never said",
        "what now": 'tool: SendMessage {"to": "ada", "message": "go on", "summary": "go on"}'
        "\n---\ntext: refused",
    }
    cast = Cast(scripts)
    cast.hold("find add")
    async with opened(cast) as agent:
        async for _ in agent.run("start now"):
            pass
        [id] = agent.supervisor.running
        assert not await agent.supervisor.stop("bob", by_user=True)
        assert await agent.supervisor.stop(id if by == "id" else "ada", by_user=True)
        [ended] = entries(agent, Ended)
        assert (ended.state, ended.by_user) == ("stopped", True)
        assert (await told(agent, "what now")).text == "refused"
        assert "The user stopped ada" in text_of(entries(agent, Ran)[-1].content)


async def test_a_worktree_is_removed_unless_something_changed(opened, project):
    isolated = ', "isolation": "worktree"'
    scripts = {
        "start now": CALL % isolated
        + '\n---\ntool: Agent {"description": "d", "prompt": "write it", "isolation": "worktree"}'
        + "\n---\ntext: ok",
        "find add": 'tool: Read {"file_path": "add.py"}\n---\ntext: nothing',
        "write it": 'tool: Write {"file_path": "new.py", "content": "x = 1\\n"}\n---\ntext: written',
    }
    async with opened(scripts, mode="bypass") as agent:
        await told(agent)
        first, second = (text_of(ran.content) for ran in entries(agent, Ran))
        assert "its work is in" not in first
        assert "its work is in" in second
        assert BRANCH_PREFIX in second
        assert not (project / "new.py").exists()


async def test_there_is_a_limit_to_how_many_and_how_deep(opened):
    settings = replace(Settings(), agents=AgentsSettings(at_once=1, depth=1))
    deep = 'tool: Agent {"description": "d", "prompt": "deeper"}\n---\ntext: alone then'
    scripts = {"start now": CALL % "" + "\n---\ntext: ok", "find add": deep}
    async with opened(scripts, settings=settings) as agent:
        await told(agent)
        assert "alone then" in text_of(entries(agent, Ran)[0].content)
        [spawned] = entries(agent, Spawned)
        child = agent.supervisor.log_of(spawned.agent).load().entries
        assert any("no tool 'Agent'" in str(entry) for entry in child)
        await agent.supervisor.slots.acquire()
        await told(agent)
        assert "as many as may be at once" in text_of(entries(agent, Ran)[-1].content)
        agent.supervisor.slots.release()


async def test_news_can_be_waited_for_and_is_not_taken_by_looking(opened):
    cast = Cast(
        {
            "start now": 'tool: Agent {"description": "count", "prompt": "find add", '
            '"run_in_background": true}\n---\ntext: started',
            "find add": "text: a",
            "| a": "text: so a it is",
            "The tests pass": "text: good",
        }
    )
    held = cast.hold("find add")
    async with opened(cast) as agent:
        async for _ in agent.run("start now"):
            pass
        waiting = asyncio.create_task(agent.until_news())
        await asyncio.sleep(0)
        assert not waiting.done()
        held.set()
        [line] = await waiting
        assert "completed, its report not read yet: count" in line
        assert await agent.until_news() == [line]
        async for _ in agent.run():
            pass
        box = agent_box(agent.engine.directory, "main")
        note = Note(text="The tests pass.", summary="tests pass")
        Mailbox(box).send(Mail(id="m1", sender="ben", to="main", body=note))
        assert await agent.until_news() == ["mail from ben"]
        async for event in agent.run():
            end = event
        assert end.text == "good"
