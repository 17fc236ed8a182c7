"""The state of a repository from real git, also in hostile repositories."""

import subprocess

import pytest

from longhold.agent.prompt import sections
from longhold.agent.prompt.sections import STATUS_CHARS, look_at_repository
from longhold.core.settings import PromptSettings

SETTINGS = PromptSettings()


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Git may take longer on a machine that runs tests."""
    monkeypatch.setattr(sections, "GIT_SECONDS", 20.0)


def git(place, *words):
    subprocess.run(
        ["git", "-c", "user.name=n", "-c", "user.email=e@x", *words],
        cwd=place,
        check=True,
        capture_output=True,
    )


@pytest.fixture
def repository(tmp_path):
    """A repository with two commits."""
    git(tmp_path, "init", "-q", "-b", "trunk")
    for name in ("one", "two"):
        (tmp_path / name).write_text(name)
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-q", "-m", f"Add {name}")
    return tmp_path


async def test_branch_status_and_commits(repository):
    (repository / "one").write_text("changed")
    (repository / "new").write_text("")
    found = await look_at_repository(repository, SETTINGS)
    assert found.branch == "trunk"
    assert found.status == " M one\n?? new"
    assert [line.split(" ", 1)[1] for line in found.commits.split("\n")] == ["Add two", "Add one"]


async def test_a_clean_repository_says_so(repository):
    found = await look_at_repository(repository, SETTINGS)
    assert (found.status, found.main) == ("(nothing has changed)", "")


async def test_an_empty_repository_has_a_branch(tmp_path):
    git(tmp_path, "init", "-q", "-b", "trunk")
    found = await look_at_repository(tmp_path, SETTINGS)
    assert (found.branch, found.commits) == ("trunk", "")


async def test_no_commit_checked_out_by_name(repository):
    git(repository, "checkout", "-q", "--detach")
    assert (await look_at_repository(repository, SETTINGS)).branch == "none checked out"


async def test_outside_a_repository_there_is_nothing(tmp_path):
    assert await look_at_repository(tmp_path, SETTINGS) is None
    git(tmp_path, "init", "-q")
    assert await look_at_repository(tmp_path, PromptSettings(git=False)) is None


async def test_a_long_status_is_cut(repository):
    for n in range(400):
        (repository / f"file{n:03}").write_text("")
    status = (await look_at_repository(repository, SETTINGS)).status
    assert len(status) == STATUS_CHARS
    assert status.endswith("…")


async def test_names_cannot_steer_a_terminal(repository):
    git(repository, "commit", "-q", "--allow-empty", "-m", "a\x1b[2Jb" + "x" * 900)
    first = (await look_at_repository(repository, SETTINGS)).commits.split("\n")[0]
    assert "a?[2Jbxxx" in first
    assert len(first) == 200


@pytest.mark.parametrize(
    "setting",
    [
        ("core.fsmonitor", "touch {}; false"),
        ("filter.x.clean", "touch {}; cat"),
        ("filter.x.process", "touch {}"),
        ("gpg.program", "touch {}"),
        ("core.pager", "touch {}"),
        ("core.sshCommand", "touch {}"),
    ],
)
async def test_a_repositorys_own_configuration_runs_nothing(repository, tmp_path_factory, setting):
    proof = tmp_path_factory.mktemp("proof") / "ran"
    key, command = setting
    (repository / ".gitattributes").write_text("* filter=x\n")
    git(repository, "config", key, command.format(proof))
    git(repository, "config", "log.showSignature", "true")
    (repository / "one").write_text("eno")
    assert await look_at_repository(repository, SETTINGS) is not None
    assert not proof.exists()


async def test_filters_in_an_included_file_count(repository, tmp_path_factory):
    proof = tmp_path_factory.mktemp("proof") / "ran"
    (repository / ".gitattributes").write_text("* filter=x\n")
    (repository / "more").write_text(f'[filter "x"]\n\tclean = touch {proof}; cat\n')
    git(repository, "config", "include.path", "../more")
    (repository / "one").write_text("eno")
    found = await look_at_repository(repository, SETTINGS)
    assert "sets filters" in found.status
    assert not proof.exists()
