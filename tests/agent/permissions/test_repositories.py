"""Git in hostile repositories: commands judged harmless are run and must run nothing else."""

import os
import subprocess

import pytest

from attacks.repositories import HOSTILE, forge_repositories, git, make_repository
from longhold.agent.permissions import Places, decide, examine, parse_rules, trust
from longhold.agent.permissions.repositories import find_hooks, suspect
from longhold.agent.tools.bash import BASH
from longhold.agent.tools.git import git_variables, reading_variables
from longhold.core.tools.context import ToolContext

COMMANDS = (
    "git status",
    "git diff",
    "git log -p",
    "git show",
    "git blame one.txt",
    "git ls-files -m",
    "git describe --always",
    "git grep .",
    "git worktree list",
)


@pytest.fixture
def program(tmp_path):
    """A program that leaves a trace, and the trace."""
    trace, script = tmp_path / "trace", tmp_path / "program"
    script.write_text(f"#!/bin/sh\ntouch {trace}\n")
    script.chmod(0o755)
    return script, trace


def _judge(tools, command, places, mode="plan"):
    call = examine(tools["Bash"], {"command": command}, places)
    return decide(call, parse_rules(), mode, places)


def _run(command, directory, variables):
    subprocess.run(
        ["bash", "-c", command], cwd=directory, env=variables, capture_output=True, timeout=20
    )


@pytest.mark.parametrize("kind", HOSTILE)
def test_no_layout_and_no_setting_makes_git_run_a_program(tools, tmp_path, program, kind):
    script, trace = program
    place = tmp_path / "project"
    directory = HOSTILE[kind](place, str(script))
    places = Places(roots=(place,), cwd=directory)
    plain = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    allowed = [c for c in COMMANDS if _judge(tools, c, places).outcome == "allow"]
    for command in allowed:
        _run(command, directory, reading_variables(plain))
        assert not trace.exists(), command
    if kind not in ("a bare repository", "a common directory"):  # newer git may refuse these itself
        for command in COMMANDS:
            _run(command, directory, plain)
        assert trace.exists()
    assert "git status" not in allowed


@pytest.mark.parametrize("kind", ["a bare repository", "a common directory"])
def test_a_step_into_a_trap_is_asked_about_whatever_rules_say(tools, tmp_path, program, kind):
    script, _ = program
    place = tmp_path / "project"
    directory = HOSTILE[kind](place, str(script))
    places = Places(roots=(place,), cwd=place)
    call = examine(tools["Bash"], {"command": f"cd {directory.name} && git status"}, places)
    rules = parse_rules(allow=("Bash(git status:*)",))
    assert decide(call, rules, "ask", places).outcome == "ask"


def test_the_environment_alone_disarms_what_has_a_known_name(tmp_path, program):
    script, trace = program
    for kind in ("a file watcher", "a bare repository", "a common directory"):
        directory = HOSTILE[kind](tmp_path / kind.replace(" ", "-"), str(script))
        _run("git status; git diff", directory, git_variables({"PATH": os.environ["PATH"]}))
    assert not trace.exists()


def test_the_shell_tool_runs_a_reading_command_in_that_environment(tmp_path, program):
    script, trace = program
    place = HOSTILE["a file watcher"](tmp_path / "project", str(script))
    variables = reading_variables(
        ToolContext(root=place, home=tmp_path, scratch=tmp_path).variables
    )
    _run("git status", place, variables)
    assert not trace.exists()


@pytest.mark.parametrize(
    ("command", "rules"),
    [
        ("git status --short > x", ()),
        ("git status | cat >> y", ()),
        ("./t; git status", ("Bash(./t)",)),
    ],
)
async def test_no_hook_runs_beside_what_is_allowed(tools, tmp_path, program, command, rules):
    script, trace = program
    place = make_repository(tmp_path / "project")
    os.utime(
        place / ".gitattributes", (1, 1)
    )  # so that git looks at it again, and writes that down
    (place / ".git" / "hooks").mkdir()
    (place / ".git" / "hooks" / "post-index-change").symlink_to(script)
    (place / "t").write_text("#!/bin/sh\n")
    places = Places(roots=(place,), cwd=place)
    call = examine(tools["Bash"], {"command": command}, places)
    outcome = decide(call, parse_rules(allow=rules), "accept_edits", places).outcome
    assert outcome == ("ask" if rules else "allow")
    if outcome == "allow":
        context = ToolContext(root=place, home=tmp_path, scratch=tmp_path / "scratch")
        await BASH.run({"command": command}, context)
        assert not trace.exists()
    _run(command, place, {"PATH": os.environ["PATH"]})
    assert trace.exists()


def test_looking_writes_nothing_into_the_index(tools, tmp_path):
    """Git would note down the new times of a file that did not change."""
    place = make_repository(tmp_path / "project")
    places = Places(roots=(place,), cwd=place)
    index = place / ".git" / "index"
    plain = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    for command in ("git diff", "git diff --stat", "git status", "git describe --always --dirty"):
        os.utime(place / ".gitattributes", (1, 1))
        before = index.read_bytes()
        if _judge(tools, command, places).outcome == "allow":
            _run(command, place, reading_variables(plain))
            assert index.read_bytes() == before, command
        _run(command, place, plain)
        assert index.read_bytes() != before, command
        subprocess.run(["touch", ".gitattributes"], cwd=place, check=True)
        _run("git status", place, plain)


@pytest.mark.parametrize(
    ("command", "key"),
    [
        ("git diff", "diff.external"),
        ("git status", "filter.x.clean"),
        ("git add one.txt", "core.fsmonitor"),
    ],
)
def test_a_rule_for_a_family_does_not_cover_a_repositorys_programs(tools, tmp_path, command, key):
    place = make_repository(tmp_path / "project")
    git(place, "config", key, "touch ran")
    places = Places(roots=(place,), cwd=place)
    call = examine(tools["Bash"], {"command": command}, places)
    family = parse_rules(allow=("Bash(git diff:*)", "Bash(git status:*)", "Bash(git add:*)"))
    found = decide(call, family, "ask", places)
    assert found.outcome == "ask" and key in found.reason
    assert decide(call, parse_rules(allow=(f"Bash({command})",)), "ask", places).outcome == "allow"


@pytest.mark.parametrize("name", ["hooks", "objects", "branch"])
def test_links_are_found_in_directories_that_are_named_like_gits_own(tmp_path, name):
    place = make_repository(tmp_path / "project")
    (tmp_path / "secret").write_text("a password")
    if name == "hooks":  # `git worktree list --porcelain` prints the reason of a lock
        state = place / ".git" / "worktrees" / "hooks"
        state.mkdir(parents=True)
    elif name == "branch":  # `git rev-parse` prints what a reference holds
        state = place / ".git" / "refs" / "heads" / "hooks"
        state.mkdir()
    else:  # `git status` prints the name of the branch that is being rebased
        (place / ".git").rename(place / "objects")
        (place / ".git").write_text("gitdir: objects\n")
        state = place / "objects" / "rebase-merge"
        state.mkdir()
    (state / "locked").symlink_to(tmp_path / "secret")
    found = suspect(place, frozenset({"status"}), Places(roots=(place,), cwd=place))
    assert found


def test_git_does_not_wait_for_a_pipe_unprompted(tools, tmp_path):
    place = make_repository(tmp_path / "project")
    exclude = place / ".git" / "info" / "exclude"
    exclude.parent.mkdir(exist_ok=True)
    exclude.unlink(missing_ok=True)
    os.mkfifo(exclude)
    places = Places(roots=(place,), cwd=place)
    assert _judge(tools, "git status", places, mode="ask").outcome == "ask"


FAMILIES = parse_rules(allow=tuple(f"Bash(git {verb}:*)" for verb in ("add", "commit", "fetch")))


def _judge_change(tools, command, place):
    places = Places(roots=(place,), cwd=place)
    return decide(examine(tools["Bash"], {"command": command}, places), FAMILIES, "ask", places)


@pytest.mark.parametrize("where", [".git/hooks", "tools/hooks"])
def test_a_repositorys_hooks_run_only_if_they_are_trusted(tools, tmp_path, program, where):
    script, trace = program
    place = make_repository(tmp_path / "project")
    if where != ".git/hooks":
        git(place, "config", "core.hooksPath", where)
    assert _judge_change(tools, "git add one.txt", place).outcome == "allow"
    hook = place / where / "post-index-change"
    hook.parent.mkdir(parents=True, exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{script}\n")
    hook.chmod(0o755)
    decision = _judge_change(tools, "git add one.txt", place)
    assert decision.outcome == "ask" and "longhold trust" in decision.reason
    assert _judge(tools, "git status", Places(roots=(place,), cwd=place)).outcome == "allow"
    (place / "one.txt").write_text("changed")
    _run("git add one.txt", place, {"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
    assert trace.exists()
    trust(find_hooks(place))
    assert _judge_change(tools, "git add one.txt", place).outcome == "allow"
    hook.write_text(f"#!/bin/sh\n{script} # changed\n")
    assert _judge_change(tools, "git add one.txt", place).outcome == "ask"


def test_the_users_own_hooks_for_all_repositories_need_no_trust(tools, tmp_path, monkeypatch):
    place = make_repository(tmp_path / "project")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "pre-commit").write_text("#!/bin/sh\n")
    (tmp_path / "gitconfig").write_text(f"[core]\n\thooksPath = {tmp_path / 'mine'}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    (place / ".git" / "hooks").mkdir(exist_ok=True)
    (place / ".git" / "hooks" / "pre-commit").write_text("#!/bin/sh\n")
    assert _judge_change(tools, "git commit -m x", place).outcome == "allow"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("http.cookieFile", "~/.bashrc"),
        ("http.https://example.org.proxy", "http://127.0.0.1:1"),
        ("submodule.one.update", "!touch trace"),
        ("gc.recentObjectsHook", "touch trace"),
        ("init.templateDir", "template"),
    ],
)
def test_settings_that_are_harmless_only_for_reading_prompt_before_a_change(
    tools, tmp_path, key, value
):
    place = make_repository(tmp_path / "project")
    git(place, "config", "http.postBuffer", "1000")
    assert _judge_change(tools, "git fetch", place).outcome == "allow"
    git(place, "config", key, value)
    assert _judge_change(tools, "git fetch", place).outcome == "ask"
    assert _judge(tools, "git status", Places(roots=(place,), cwd=place)).outcome == "allow"


def test_an_ordinary_repository_raises_no_suspicion(tmp_path):
    place = make_repository(tmp_path / "project")
    for key, value in (
        ("remote.origin.url", "https://example.org/x.git"),
        ("branch.trunk.merge", "refs/heads/trunk"),
        ("core.hooksPath", ".husky"),
        ("user.email", "e@x"),
    ):
        git(place, "config", key, value)
    os.utime(
        place / ".gitattributes", (1, 1)
    )  # so that git looks at it again, and writes that down
    (place / ".git" / "hooks").mkdir()
    (place / ".git" / "hooks" / "pre-commit").symlink_to("../../one.txt")
    git(place, "worktree", "add", "-q", str(tmp_path / "beside"), "-b", "other")
    verbs = frozenset({"status"})
    assert suspect(place, verbs, Places(roots=(place,), cwd=place)) == ""
    beside = tmp_path / "beside"
    assert suspect(beside, verbs, Places(roots=(beside,), cwd=beside)) == ""
    assert suspect(tmp_path, verbs, Places(roots=(tmp_path,), cwd=tmp_path)) == ""


def _secret_repository(tmp_path):
    other = make_repository(tmp_path / "other")
    (other / "secret.txt").write_text("hunter2\n")
    git(other, "add", ".")
    git(other, "commit", "-q", "-m", "secret")
    return other


@pytest.mark.parametrize("forge", forge_repositories())
def test_a_forged_repository_does_not_open_another_one(tools, tmp_path, forge):
    other = _secret_repository(tmp_path)
    place = tmp_path / "project"
    place.mkdir()
    forge(place, other)
    (other / "secret.txt").write_text("hunter3\n")
    places = Places(roots=(place,), cwd=place)
    allowed = [c for c in COMMANDS if _judge(tools, c, places).outcome == "allow"]
    for command in allowed:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=place,
            env=reading_variables({"PATH": os.environ["PATH"], "HOME": str(tmp_path)}),
            capture_output=True,
            timeout=20,
        )
        assert b"hunter" not in done.stdout, command
    assert "git diff" not in allowed


def test_a_program_of_the_project_is_not_the_one_it_is_called_like(tools, tmp_path, monkeypatch):
    tool = tmp_path / "project" / "bin" / "ls"
    tool.parent.mkdir(parents=True)
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    places = Places(roots=(tmp_path / "project",), cwd=tmp_path / "project")
    assert _judge(tools, "ls", places).outcome == "allow"
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    assert _judge(tools, "ls", places).outcome == "deny"
