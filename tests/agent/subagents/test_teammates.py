"""Teammates: they stay, have a mailbox, say when they are free, and end when asked."""

from casting import Cast, entries, hidden, told, until
from holdfast.agent.subagents.mail import Mail, Note
from holdfast.agent.subagents.mailbox import Mailbox
from holdfast.agent.subagents.team import AgentTeam as OnDisk
from holdfast.agent.subagents.team import Member
from holdfast.log.entries import Ended, Ran, Spawned
from holdfast.messages import text_of
from holdfast.settings import home

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
        'tool: SendMessage {"to": "lead", "message": {"type": "shutdown_answer", "request_id": '
        f'"{id}", "approve": true}}}}\n---\ntext: bye'
    )


class AgentTeam(Cast):
    """A cast in which ada agrees to stop."""

    async def stream(self, request):
        words, _ = self._cue(request.kwargs["messages"])
        if words == "Please finish and stop":
            self.scripts[words] = _agreeing(request.kwargs["messages"])
        async for event in super().stream(request):
            yield event


async def test_a_teammate_is_told_of_further_work_and_ends_when_asked(opened):
    """Idle in between; its end leaves no team behind."""
    team = AgentTeam(
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
        assert (home() / "teams" / agent.session.id).is_dir()
        assert any("Nothing left to do (available)" in text for text in hidden(agent))
        await told(agent, "more please")
        await until(lambda: all(one.is_idle for one in agent.supervisor.running.values()))
        async for _ in agent.run("shut down"):
            pass
        await until(lambda: entries(agent, Ended))
        [ended] = entries(agent, Ended)
        assert (ended.state, ended.text) == ("completed", "bye")
        session = agent.session.id
    assert not (home() / "teams" / session).exists()


async def test_a_name_that_somebody_has_is_not_given_again(opened):
    """Mail would reach the wrong one, and one called like the lead could speak for it."""
    again = 'tool: Agent {"description": "d", "prompt": "second part", "name": "%s"%s}'
    scripts = {
        "start now": CALL,
        "first part": "text: first done",
        "Nothing left to do": "text: good",
        "once more": again % ("Ada", "") + "\n---\n" + again % ("lead", ', "teammate": true')
        + "\n---\ntext: no",
        "second part": "text: second done",
    }  # fmt: skip
    async with opened(scripts) as agent:
        await told(agent)
        await told(agent, "once more")
        said = [text_of(ran.content) for ran in entries(agent, Ran)[-2:]]
        assert "Somebody is called 'Ada' already" in said[0]
        assert "'lead' already means somebody else" in said[1]
        assert len(entries(agent, Spawned)) == 1


async def test_a_teammate_that_agrees_to_what_nobody_asked_stays(opened):
    """Only an answer that was sent ends it."""
    scripts = {
        "start now": CALL,
        "first part": 'tool: SendMessage {"to": "lead", "message": {"type": "shutdown_answer", '
        '"request_id": "made-up", "approve": true}}\n---\ntext: first done',
        "Nothing left to do": "text: good",
    }
    async with opened(scripts) as agent:
        await told(agent)
        assert [one.is_idle for one in agent.supervisor.running.values()] == [True]
        assert entries(agent, Ended) == []


async def test_a_team_that_a_killed_process_left_is_put_in_order(opened):
    """Its members are gone, what they had begun is free, mail to the lead is read; then it goes."""
    scripts = {"start now": "text: ok", "once more": "text: ok", "are there": "text: read"}
    async with opened(scripts) as agent:
        await told(agent)
        session, tasks = agent.session.id, agent.supervisor.teammates.tasks
        tasks.create("one", "lead")
        tasks.claim("ada")
    left = OnDisk.found(session, Member(name="lead", session=session))
    left.join(Member(name="ada", session=session, agent="general-1"))
    mail = Mail(id="1", sender="ada", to="lead", body=Note(text="ropes are there"))
    Mailbox(left.box("lead")).send(mail)
    async with opened(scripts, resume=session) as agent:
        assert [member.name for member in left.members()] == ["lead"]
        assert agent.supervisor.teammates.tasks.claim("ben") is not None
        await told(agent, "once more")
        assert any("ropes are there" in text for text in hidden(agent))
    assert not (home() / "teams" / session).exists()
