"""Teams on disk."""

import stat

import pytest

from holdfast.agent.subagents.mail import IdleNotice
from holdfast.agent.subagents.mailbox import UnreadMail
from holdfast.agent.subagents.team import AgentTeam, Member
from holdfast.errors import ConfigError, StoreError
from holdfast.settings import home


@pytest.fixture
def team():
    """A team with a lead and one member."""
    made = AgentTeam.found("red")
    made.join(Member(name="ada", session="s1"))
    return made


def test_a_team_is_found_again_by_others(team):
    """With its members and its lead, in the order they came."""
    again = AgentTeam.open("red")
    assert [member.name for member in again.members()] == ["lead", "ada"]
    assert again.lead == "lead"


def test_everything_is_private(team):
    """Directories and files."""
    for path in (home() / "teams").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)


@pytest.mark.parametrize("name", ["../x", "a/b", "a\n", "", ".", "user", "x" * 65])
def test_a_name_leads_nowhere_else(name):
    """Neither when a team is founded nor when it is opened."""
    with pytest.raises(ConfigError):
        AgentTeam.found(name)
    with pytest.raises(ConfigError):
        AgentTeam.open(name)
    assert not list(home().parent.glob("x"))


@pytest.mark.parametrize("name", ["../../x", "user", "a\nb", "all"])
def test_a_member_is_called_by_a_name(team, name):
    """It becomes a file's name and the sender of mail."""
    with pytest.raises(ConfigError):
        team.join(Member(name=name))


def test_a_name_is_taken_once_in_any_case(team):
    """On some disks `Ada` and `ada` have one mailbox."""
    for name in ("ada", "Ada"):
        with pytest.raises(ConfigError, match="in the team already"):
            team.join(Member(name=name, session="s2"))
    team.join(Member(name="ada", session="s1"))  # the same agent, come back
    assert len(team.members()) == 2


def test_there_is_one_lead(team):
    """Nobody makes himself one, and nobody takes the lead's name."""
    with pytest.raises(ConfigError, match="leads this team"):
        team.join(Member(name="eve", is_lead=True))
    with pytest.raises(ConfigError):
        team.join(Member(name="lead", session="s9"))
    team.leave("lead")
    with pytest.raises(ConfigError, match="already means"):
        team.join(Member(name="lead", session="s9"))


def test_who_leaves_gives_back_what_was_begun(team):
    """And has no mailbox to write to any more."""
    team.tasks.create("one", "lead")
    team.tasks.claim("ada")
    team.leave("ada")
    assert team.tasks.tasks()["1"].owner == ""
    with pytest.raises(ConfigError, match="not in the team"):
        team.box("ada")


def test_an_idle_member_is_told_to_the_lead(team):
    """As mail with a reason."""
    team.report_idle("ada", "failed", "the tests would not run", task="3")
    letter = UnreadMail(team.box("lead")).unread()[0]
    assert letter.mail.sender == "ada"
    assert letter.mail.body == IdleNotice(
        reason="failed", summary="the tests would not run", task="3"
    )


def test_a_team_is_removed_once_it_is_empty(team):
    """With its mail and its tasks."""
    with pytest.raises(StoreError, match="ada are still"):
        team.remove()
    team.leave("ada")
    team.remove()
    with pytest.raises(ConfigError, match="no team"):
        AgentTeam.open("red")
    assert AgentTeam.found("red").members()


def test_a_team_is_founded_once(team):
    """The second is told."""
    with pytest.raises(ConfigError, match="already"):
        AgentTeam.found("red")


def test_a_link_in_the_place_of_a_team_is_no_team(tmp_path):
    """It would lead the mail elsewhere."""
    AgentTeam.found("red", at=tmp_path)
    (home() / "teams").mkdir(parents=True)
    (home() / "teams" / "red").symlink_to(tmp_path / "teams" / "red")
    with pytest.raises(ConfigError, match="no team"):
        AgentTeam.open("red")
