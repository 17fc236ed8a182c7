"""`longhold memory` and `longhold dream`, run as a user runs them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from longhold.agent.subagents.memory_scopes import open_store
from longhold.cli.memory_command import command as memory_command
from longhold.cli.memory_command import dream_now
from longhold.core.memory.commits import MemoryChange
from longhold.core.memory.inbox import Inbox
from longhold.core.memory.memory import MemoryRefused, NoSuchMemory
from longhold.core.memory.paths import memory_directory
from longhold.core.memory.store import MemoryStore
from longhold.core.settings import MemorySettings, home
from longhold.errors import ConfigError, LongholdError

TUESDAY = "Deploys of the billing service go out on Tuesday nights after the backup"


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    """A project to stand in."""
    (tmp_path / "project" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path / "project"


def memory(*words, **more):
    """Run `longhold memory` to its end."""
    done = CliRunner().invoke(memory_command, [str(word) for word in words], **more)
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.output


def dream(*words):
    """Run `longhold dream` to its end."""
    done = CliRunner().invoke(dream_now, list(words))
    assert done.exit_code == 0, done.output
    return done.output


def page(description, body="", modified="2026-01-01"):
    """A memory as a person types it."""
    return f"---\nname: n\ndescription: {description}\nmodified: {modified}\n---\n\n{body}\n"


def test_a_memory_is_written_shown_found_and_forgotten():
    memory("edit", "deploy.md", "--text", page("when we deploy", "On Tuesday."))
    assert "- [n](deploy.md): when we deploy" in memory("show")
    assert "On Tuesday." in memory("show", "deploy.md")
    assert "deploy.md: when we deploy" in memory("search", "deploy")
    memory("forget", "deploy.md", "--why", "it was dropped")
    assert "No memories" in memory("show")
    assert "deploy.md  person" in memory("log", "--gone")
    memory("undo", "deploy.md")
    assert "On Tuesday." in memory("show", "deploy.md")


def test_the_log_says_who_and_why_and_undo_takes_back():
    memory("edit", "a.md", "--text", page("one"), "--why", "told by Ann")
    memory("edit", "a.md", "--text", page("two"))
    lines = memory("log").splitlines()
    assert "person" in lines[1] and "told by Ann" in lines[1] and "(a.md)" in lines[1]
    assert "+description: two" in memory("diff")
    assert "-description: one" in memory("diff", 2)
    memory("undo")
    assert "one" in memory("show")
    assert len(memory("log", "a.md", "-n", "2").splitlines()) == 2


def test_every_command_speaks_json():
    memory("edit", "a.md", "--text", page("harbour"))
    assert json.loads(memory("log", "--json"))[0]["by"] == "person"
    assert json.loads(memory("show", "--json"))["memories"][0]["file"] == "a.md"
    assert json.loads(memory("show", "a.md", "--json"))["description"] == "harbour"
    assert json.loads(memory("search", "harbour", "--json"))[0]["file"] == "a.md"
    assert "+description: harbour" in json.loads(memory("diff", "--json"))["diff"]
    assert json.loads(memory("inbox", "--json")) == []
    assert json.loads(dream("--dry-run", "--json"))["commit"] is None
    assert json.loads(memory("forget", "a.md", "--json"))["id"] == 2


def test_a_text_can_come_through_a_pipe():
    memory("edit", "a.md", "--text", "-", input=page("piped"))
    assert "piped" in memory("show")


def test_what_is_not_there_is_an_error_that_says_so():
    for words in (["show", "no.md"], ["forget", "no.md"], ["undo", "no.md"], ["diff", "9"]):
        with pytest.raises(NoSuchMemory, match="no"):
            memory(*words)


def test_a_secret_is_refused():
    with pytest.raises(MemoryRefused, match="aws-access-token"):
        memory("edit", "a.md", "--text", page("key", "AKIA" + "Z7QKX2VBMTN4RWLS"))


def test_files_changed_by_hand_are_taken_in(project):
    root = memory_directory(home(), project)
    root.mkdir(parents=True)
    (root / "hand.md").write_text("# By hand\n")
    (root / "bad.md").write_text("AKIA" + "Z7QKX2VBMTN4RWLS\n")
    shown = memory("show")
    assert "hand.md" in shown and "bad.md was left out" in shown
    assert "changed by hand" in memory("log")


def test_the_inbox_waits_for_consent(project):
    with MemoryStore(memory_directory(home(), project)) as store:
        changes = [
            MemoryChange(file=f"{name}.md", text=f"# {name}\n", expected="") for name in "abc"
        ]
        Inbox(store).propose(changes, by="extraction", why="said so", is_outside=True)
    shown = memory("inbox")
    assert "after untrusted input" in shown and "+# a" in shown
    assert memory("inbox", "--accept", 1) == "1 accepted.\n"
    assert memory("inbox", "--decline", "all") == "2 declined.\n"
    assert memory("inbox") == "No proposals.\n"
    assert "a.md" in memory("show") and "b.md" not in memory("show")


def test_the_teams_memories_are_shown(project):
    (project / ".longhold" / "team").mkdir(parents=True)
    (project / ".longhold" / "team" / "board.md").write_text("# The board is in Linear\n")
    assert "team" in memory("show") and "board.md" in memory("show")
    assert "Linear" in memory("show", "team/board.md")


def test_a_dream_shows_its_diff_and_can_be_undone():
    memory("edit", "a.md", "--text", page(TUESDAY))
    memory("edit", "b.md", "--text", page(TUESDAY))
    trial = dream("--dry-run")
    assert "Would do: 1 merged" in trial and "before/b.md" in trial
    assert "b.md" in memory("show")
    done = dream()
    assert "To undo it: longhold memory undo 3" in done
    assert "b.md" not in memory("show")
    assert "a.md contains all of it" in memory("log", "--gone")
    memory("undo", 3)
    assert "b.md" in memory("show")
    assert "Nothing to tidy." in dream()


def test_one_conflict_does_not_keep_the_other_proposals_waiting(project):
    with MemoryStore(memory_directory(home(), project)) as store:
        changes = [
            MemoryChange(file=f"{name}.md", text=f"# {name}\n", expected="") for name in "abc"
        ]
        Inbox(store).propose(changes, by="extraction", why="said so")
        store.commit(
            [MemoryChange(file="b.md", text="# Mine\n", expected="")], by="person", why="x"
        )
    done = CliRunner().invoke(memory_command, ["inbox", "--accept", "all"])
    assert done.exit_code == 1
    assert done.output.startswith("2 accepted, 1 conflicts (2: b.md was changed by person")
    assert "# Mine" in memory("show", "b.md") and "# c" in memory("show", "c.md")


@pytest.mark.parametrize(
    "words",
    [
        ("undo", "²"),
        ("undo", "99999999999999999999"),
        ("diff", "99999999999999999999"),
        ("diff", "-1"),
        ("log", "-n", "99999999999999999999"),
        ("inbox", "--accept", "²"),
        ("inbox", "--decline", "99999999999999999999"),
        ("inbox", "--accept", "9" * 5_000),
    ],
)
def test_odd_numbers_are_an_error_that_says_so(words):
    done = CliRunner().invoke(memory_command, words)
    assert done.exit_code != 0 and isinstance(done.exception, SystemExit | NoSuchMemory)


def test_a_memory_named_twice_is_forgotten_once():
    memory("edit", "a.md", "--text", page("one"))
    assert "forgotten" in memory("forget", "a.md", "a.md")


def test_an_agents_own_memories_are_shown_and_its_proposals_answered():
    change = MemoryChange(file="a.md", text=page("how tests run"), expected="")
    with open_store("keeper", "project", Path.cwd(), home(), MemorySettings()) as store:
        Inbox(store).propose([change], by="agent", why="learnt", is_outside=True)
    listed = memory("inbox")
    assert "No proposals." in listed
    assert "longhold memory --agent keeper --scope project inbox" in listed
    assert "how tests run" in memory("--agent", "keeper", "inbox")
    memory("--agent", "keeper", "inbox", "--accept", "all")
    assert "how tests run" in memory("--agent", "keeper", "show")
    assert "No memories" in memory("show")


@pytest.mark.parametrize("name", ["nobody", "../keeper"])
def test_an_agent_without_memories_is_named(name):
    with pytest.raises(LongholdError):
        memory("--agent", name, "show")
    assert not list(home().rglob("agent-memory"))


def test_a_memory_is_shared_with_the_team(project):
    text = page("when we deploy", "On Tuesday.").replace("---\n\n", 'evidence: ["s#1"]\n---\n\n')
    memory("edit", "deploy.md", "--text", text)
    memory("share", "deploy.md")
    shared = (project / ".longhold" / "team" / "deploy.md").read_text()
    assert "On Tuesday." in shared and "s#1" not in shared
    assert "team/deploy.md (based on s#1)" in memory("log", "--gone")
    assert "On Tuesday." in memory("show", "team/deploy.md")
    memory("undo", "deploy.md")
    with pytest.raises(MemoryRefused, match="already"):
        memory("share", "deploy.md")


def test_what_is_about_a_person_is_not_shared(project):
    memory("edit", "ann.md", "--text", page("Ann").replace("name: n", "name: n\ntype: user"))
    with pytest.raises(MemoryRefused, match="has the private type"):
        memory("share", "ann.md")
    assert "ann.md" in memory("show")
    assert not (project / ".longhold").exists()


def test_a_setting_that_did_nothing_is_refused_with_what_to_do(project):
    (project / ".longhold").mkdir()
    (project / ".longhold" / "settings.toml").write_text('[memory]\nteam = "write"\n')
    with pytest.raises(ConfigError, match="`longhold memory share FILE`"):
        memory("show")
