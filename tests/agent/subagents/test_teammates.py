"""Teammates: they stay, have a mailbox, report when they are idle, and end on request."""

from casting import Cast, entries, hidden, told, until
from longhold.agent.subagents.ledger import Mailbox, agent_box
from longhold.agent.subagents.mail import Mail, Note
from longhold.core.log.entries import Ended, Ran, Spawned
from longhold.core.messages import text_of

CALL = (
    'tool: Agent {"description": "d", "prompt": "first part", "name": "ada", "teammate": true}'
    "\n---\ntext: started"
)
SHUT = (
    'tool: SendMessage {"to": "ada", "message": {"type": "shutdown_request"}}\n---\ntext: asked her'
)


def _agreeing(messages):
    """Find the id of the request in the mail, as a model would."""
    text = str(messages)
    id = text.split('with request_id "')[1].split('"')[0]
    return (
        'tool: SendMessage {"to": "main", "message": {"type": "shutdown_answer", "request_id": '
        f'"{id}", "approve": true}}}}\n---\ntext: bye'
    )


class Agreeing(Cast):
    """A cast in which ada agrees to stop."""

    async def stream(self, request):
        words, _ = self._cue(request.kwargs["messages"])
        if words == "Please finish and stop":
            self.scripts[words] = _agreeing(request.kwargs["messages"])
        async for event in super().stream(request):
            yield event


async def test_a_teammate_is_told_of_further_work_and_ends_when_asked(opened):
    team = Agreeing(
        {
            "start now": CALL,
            "first part": "text: first done",
            "Nothing left to do": "text: good",
            "more please": 'tool: SendMessage {"to": "ada", "message": "second part", '
            '"summary": "one more part"}\n---\ntext: told her',
            "second part": "text: second done",
            "shut down": SHUT,
            "Please finish and stop": "",
            "is done": "text: all done",
            "I stop now": "text: she agrees",
        }
    )
    async with opened(team) as agent:
        assert (await told(agent)).text == "good"
        assert [one.is_idle for one in agent.supervisor.running.values()] == [True]
        assert any("Nothing left to do (available)" in text for text in hidden(agent))
        await told(agent, "more please")
        await until(lambda: all(one.is_idle for one in agent.supervisor.running.values()))
        async for _ in agent.run("shut down"):
            pass
        await until(lambda: entries(agent, Ended))
        [ended] = entries(agent, Ended)
        assert (ended.state, ended.text) == ("completed", "bye")


async def test_a_name_that_somebody_has_is_not_given_again(opened):
    second = 'tool: Agent {"description": "d", "prompt": "second part", "name": "%s"%s}'
    scripts = {
        "start now": CALL,
        "first part": "text: first done",
        "Nothing left to do": "text: good",
        "once more": second % ("Ada", "") + "\n---\n" + second % ("lead", ', "teammate": true')
        + "\n---\ntext: no",
        "second part": "text: second done",
    }  # fmt: skip
    async with opened(scripts) as agent:
        await told(agent)
        await told(agent, "once more")
        said = [text_of(ran.content) for ran in entries(agent, Ran)[-2:]]
        assert "Another agent is called 'Ada'" in said[0]
        assert "'lead' is reserved" in said[1]
        assert len(entries(agent, Spawned)) == 1


async def test_a_teammate_that_agrees_to_what_nobody_asked_stays(opened):
    scripts = {
        "start now": CALL,
        "first part": 'tool: SendMessage {"to": "main", "message": {"type": "shutdown_answer", '
        '"request_id": "made-up", "approve": true}}\n---\ntext: first done',
        "Nothing left to do": "text: good",
    }
    async with opened(scripts) as agent:
        await told(agent)
        assert [one.is_idle for one in agent.supervisor.running.values()] == [True]
        assert entries(agent, Ended) == []


async def test_a_teammate_that_ends_gives_back_what_it_had_begun(opened):
    scripts = {
        "start now": CALL,
        "first part": "tool: TaskClaim {}\n---\ntext: it is mine",
        "Nothing left to do": "text: good",
    }
    async with opened(scripts) as agent:
        agent.supervisor.tasks.create("one", "main")
        await told(agent)
        assert agent.supervisor.tasks.tasks()["1"].owner == "ada"
        [id] = agent.supervisor.running
        await agent.supervisor.stop(id)
        assert agent.supervisor.tasks.tasks()["1"].owner == ""


async def test_a_team_that_a_killed_process_left_is_put_in_order(opened):
    scripts = {"start now": "text: ok", "once more": "text: ok", "are there": "text: read"}
    async with opened(scripts) as agent:
        await told(agent)
        session, box = agent.session.id, agent_box(agent.engine.directory, "main")
        spawned = {"agent": "general-1", "name": "ada", "team": session}
        agent.engine.record(Spawned(**spawned))  # and then the process is killed
        agent.supervisor.tasks.create("one", "main")
        agent.supervisor.tasks.claim("ada")
    Mailbox(box).send(Mail(id="1", sender="ada", to="main", body=Note(text="ropes are there")))
    async with opened(scripts, resume=session) as agent:
        assert [entry.state for entry in entries(agent, Ended)] == ["interrupted"]
        assert agent.supervisor.tasks.claim("ben") is not None
        await told(agent, "once more")
        assert any("ropes are there" in text for text in hidden(agent))
