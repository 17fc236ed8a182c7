"""Teammates: they stay, have a mailbox, say when they are free, and end when asked."""

import stat

import pytest

from agent.subagents.orders import order
from casting import Cast, entries, hidden, told, until
from longhold.agent.subagents.ledger import Mailbox, UnreadMail
from longhold.agent.subagents.mail import IdleNotice, Mail, Note
from longhold.agent.subagents.order import Finish
from longhold.agent.subagents.tasks import TaskList
from longhold.agent.subagents.teammates import Teammates
from longhold.core.log.entries import Ended, Ran, Spawned
from longhold.core.messages import text_of
from longhold.core.settings import home
from longhold.errors import ConfigError

CALL = (
    'tool: Agent {"description": "d", "prompt": "first part", "name": "ada", "teammate": true}'
    "\n---\ntext: started"
)
SHUT = (
    'tool: SendMessage {"to": "ada", "message": {"type": "shutdown_request"}}\n---\ntext: asked her'
)


@pytest.fixture
def team(tmp_path):
    """A team with a lead and one member."""
    made = Teammates(session="s1", tasks=TaskList(tmp_path / "tasks.jsonl"))
    made.join(order("ada"))
    return made


def again(team, session="s1"):
    """The same session in another process."""
    return Teammates(session=session, tasks=team.tasks)


def _agreeing(messages):
    """Find the id of the request in the mail, as a model would."""
    text = str(messages)
    id = text.split('with request_id "')[1].split('"')[0]
    return (
        'tool: SendMessage {"to": "lead", "message": {"type": "shutdown_answer", "request_id": '
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
        "first part": 'tool: SendMessage {"to": "lead", "message": {"type": "shutdown_answer", '
        '"request_id": "made-up", "approve": true}}\n---\ntext: first done',
        "Nothing left to do": "text: good",
    }
    async with opened(scripts) as agent:
        await told(agent)
        assert [one.is_idle for one in agent.supervisor.running.values()] == [True]
        assert entries(agent, Ended) == []


async def test_a_team_that_a_killed_process_left_is_put_in_order(opened):
    scripts = {"start now": "text: ok", "once more": "text: ok", "are there": "text: read"}
    async with opened(scripts) as agent:
        await told(agent)
        session, tasks = agent.session.id, agent.supervisor.teammates.tasks
        tasks.create("one", "lead")
        tasks.claim("ada")
    left = Teammates(session=session, tasks=tasks)
    left.join(order("ada", "general-1"))
    mail = Mail(id="1", sender="ada", to="lead", body=Note(text="ropes are there"))
    Mailbox(left.box("lead")).send(mail)
    async with opened(scripts, resume=session) as agent:
        assert [member.name for member in left.members()] == ["lead"]
        assert agent.supervisor.teammates.tasks.claim("ben") is not None
        await told(agent, "once more")
        assert any("ropes are there" in text for text in hidden(agent))
    assert not (home() / "teams" / session).exists()


def test_everything_is_private(team):
    for path in (home() / "teams").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


@pytest.mark.parametrize("name", ["../x", "a/b", "a\n", "", ".", "user", "x" * 65])
def test_a_name_leads_nowhere_else(team, name):
    with pytest.raises(ConfigError):
        again(team, name).join(order("ada"))
    assert again(team, name).recover() is None
    assert not list(home().parent.glob("x"))


@pytest.mark.parametrize("name", ["../../x", "user", "a\nb", "all", "lead"])
def test_a_member_is_called_by_a_name(team, name):
    with pytest.raises(ConfigError):
        team.join(order(name, "general-2"))


def test_a_name_is_taken_once_in_any_case(team):
    for name in ("ada", "Ada"):
        with pytest.raises(ConfigError, match="in the team already"):
            team.join(order(name, "general-2"))
    team.join(order("ada"))  # the same agent, come back
    assert [member.name for member in team.members()] == ["lead", "ada"]


def test_who_leaves_gives_back_what_was_begun(team):
    team.tasks.create("one", "lead")
    team.tasks.claim("ada")
    team.leave("ada")
    assert team.tasks.tasks()["1"].owner == ""
    with pytest.raises(ConfigError, match="not in the team"):
        team.box("ada")


def test_an_idle_member_is_told_to_the_lead(team):
    done = Finish(state="completed", text="the tests\nwould not run")
    team.report_idle(order("ada", task="3"), done)
    letter = UnreadMail(team.box("lead")).letters()[0]
    assert letter.value.sender == "ada"
    assert letter.value.body == IdleNotice(
        reason="available", summary="the tests would not run", task="3"
    )


def test_a_team_is_removed_once_it_is_empty(team):
    team.close()
    assert team.directory.is_dir()
    team.leave("ada")
    team.close()
    assert not team.directory.exists() and team.team is None
    assert again(team).recover() is None


def test_a_link_in_the_place_of_a_team_is_no_team(team, tmp_path):
    elsewhere = again(team, "red")
    elsewhere.join(order("ada"))
    elsewhere.directory.rename(tmp_path / "red")
    elsewhere.directory.symlink_to(tmp_path / "red")
    assert again(team, "red").recover() is None
    with pytest.raises(ConfigError, match="is a link"):
        again(team, "red").join(order("ada"))
