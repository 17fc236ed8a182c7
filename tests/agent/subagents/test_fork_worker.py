"""Forks of a conversation as agents: what they share, their limits, and how they resume."""

import json

from casting import Cast, entries, hidden, told
from longhold.core.log.entries import Ended, Forked, Ran, Spawned
from longhold.core.messages import text_of
from longhold.core.turn.fork.prefix import STARTED

FORK = 'tool: Agent {"description": "d", "agent": "fork", "prompt": "%s", "run_in_background": %s}'


def _wire(request):
    """Write a request's messages without its markers, which stand elsewhere in every call."""
    text = json.dumps(request.kwargs["messages"])
    return text.replace(', "cache_control": {"type": "ephemeral"}', "")


async def test_forks_share_every_byte_up_to_their_own_words(opened):
    three = "\n".join(FORK % (f"part {n} of it", "true") for n in (1, 2, 3))
    scripts = {
        "start now": f"text: I split it.\n{three}\n---\ntext: they work",
        "is done": "text: ok",
    }
    scripts |= {f"part {n} of it": f"text: done {n}" for n in (1, 2, 3)}
    cast = Cast(scripts)
    async with opened(cast) as agent:
        await told(agent)
        forks = [one for one in cast.requests if "Task: part" in _wire(one)]
        assert len(forks) == 3
        assert len({json.dumps([one.kwargs["system"], one.kwargs["tools"]]) for one in forks}) == 1
        parts = [_wire(one).split("You are now a fork of this conversation")[0] for one in forks]
        assert len(set(parts)) == 1
        assert parts[0].count(STARTED) == 3
        assert "I split it." in parts[0]
        assert sorted(text for text in hidden(agent) if "| done" in text) != []
        assert {entry.source for entry in entries(agent, Forked)} == {"agent:fork"}
        assert [entry.is_fork for entry in entries(agent, Spawned)] == [True] * 3


async def test_a_fork_may_not_fork_nor_write_in_its_parents_name(opened):
    inner = 'tool: Agent {"description": "d", "prompt": "more"}\ntool: SendMessage {"to": "all", '
    inner += '"message": "hi", "summary": "a word"}\n---\ntext: then alone'
    scripts = {"start now": FORK % ("do it", "false") + "\n---\ntext: ok", "do it": inner}
    async with opened(scripts) as agent:
        await told(agent)
        assert "then alone" in text_of(entries(agent, Ran)[0].content)
        [spawned] = entries(agent, Spawned)
        ran = [
            e for e in agent.supervisor.log_of(spawned.agent).load().entries if isinstance(e, Ran)
        ]
        assert ["A fork may not use" in text_of(one.content) for one in ran] == [True, True]


async def test_a_fork_has_no_more_than_its_parents_permissions(opened, project):
    write = 'tool: Write {"file_path": "new.py", "content": "x"}\n---\ntext: tried'
    scripts = {"start now": FORK % ("do it", "false") + "\n---\ntext: ok", "do it": write}
    async with opened(scripts) as agent:
        await told(agent)
        assert not (project / "new.py").exists()


async def test_an_interrupted_fork_goes_on_behind_the_same_prefix(opened):
    scripts = {
        "start now": "text: Splitting.\n" + FORK % ("do it", "true") + "\n---\ntext: started",
        "do it": 'tool: Read {"file_path": "add.py"}\n---\ntext: never said',
        "what now": 'tool: SendMessage {"to": "FORK", "message": "please finish", "summary": "on"}'
        "\n---\ntext: sent",
        "please finish": "text: it subtracts",
        "is done": "text: all done",
    }
    cast = Cast(scripts)
    async with opened(cast) as agent:
        held = cast.hold("do it")
        async for _ in agent.run("start now"):
            pass
        [id] = agent.supervisor.running
        del cast.held["do it"]
        session = agent.session.id
        assert not held.is_set()
    cast = Cast(scripts | {"what now": scripts["what now"].replace("FORK", id)})
    async with opened(cast, resume=session) as agent:
        end = await told(agent, "what now")
        assert [entry.state for entry in entries(agent, Ended)] == ["interrupted", "completed"]
        assert end.text == "all done"
        [again] = [
            one for one in cast.requests if "please finish" in _wire(one) and STARTED in _wire(one)
        ]
        assert "Splitting." in _wire(again)
        assert "what now" not in _wire(again)
