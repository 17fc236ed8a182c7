"""The environment variables that commands and hooks get."""

import os
from dataclasses import replace

from longhold.agent.hooks import Hook, HookContext, Hooks
from longhold.agent.tools.bash import BASH
from longhold.agent.tools.git import reading_variables, run_git
from longhold.agent.tools.grep import GREP
from longhold.core.messages import text_of
from longhold.core.settings import ShellSettings
from longhold.core.tools.context import ToolContext
from longhold.core.tools.environment import shell_variables

KEYS = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "OPENAI_API_KEY",
    "AZURE_OPENAI_KEY",
    "GEMINI_API_KEY",
    "SOME_SERVICE_API_KEY",
    "HF_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK",
)
OTHERS = ("PATH", "HOME", "GITHUB_TOKEN", "SSH_AUTH_SOCK", "EDITOR", "ANTHROPIC_BASE_URL", "KEYMAP")


def test_keys_for_models_stay_with_us():
    given = dict.fromkeys((*KEYS, *OTHERS), "x")
    assert set(shell_variables(given)) == set(OTHERS)


def test_the_user_can_pass_named_keys_on():
    settings = ShellSettings(pass_variables="OPENAI_API_KEY HF_TOKEN")
    given = dict.fromkeys(KEYS, "x")
    assert set(shell_variables(given, settings.passed)) == {"OPENAI_API_KEY", "HF_TOKEN"}


def test_a_command_that_runs_unasked_has_no_credentials():
    given = dict.fromkeys((*KEYS, *OTHERS, "BASH_ENV", "DATABASE_URL", "GIT_EXTERNAL_DIFF"), "/x")
    kept = {name for name in reading_variables(given) if not name.startswith("GIT_")}
    assert kept == {"PATH", "HOME", "EDITOR", "ANTHROPIC_BASE_URL"}
    assert "GIT_EXTERNAL_DIFF" not in reading_variables(given)


def test_the_users_own_git_settings_stay():
    given = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "a.b", "GIT_CONFIG_VALUE_0": "c"}
    found = reading_variables(given)
    assert found["GIT_CONFIG_KEY_0"] == "a.b"
    assert int(found["GIT_CONFIG_COUNT"]) > 1


def test_a_session_starts_without_the_key(monkeypatch, tmp_path):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    fresh = ToolContext(root=tmp_path, home=tmp_path, scratch=tmp_path)
    assert "sk-secret" not in fresh.variables.values()


async def test_a_hook_does_not_see_the_key(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    hook = Hook(event="SessionStart", command=f"env > {tmp_path}/seen")
    context = HookContext(
        session="s", transcript=tmp_path, cwd=tmp_path, mode="ask", scratch=tmp_path
    )
    await Hooks(hooks=(hook,)).fire("SessionStart", {"source": "startup"}, context)
    assert "sk-secret" not in (tmp_path / "seen").read_text()


async def test_other_users_do_not_see_the_command(said):
    shown = await said("Bash", command="tr '\\0' ' ' </proc/$$/cmdline # hidden-words")
    assert "eval" in shown
    assert "hidden-words" not in shown


async def test_a_project_shadows_no_program_by_a_relative_path(tool_context, use, monkeypatch):
    for name in ("bash", "git", "ls", "rg"):
        (tool_context.root / name).write_text(f"#!/bin/sh\n/usr/bin/touch trace-{name}\n")
        (tool_context.root / name).chmod(0o755)
    monkeypatch.setenv("PATH", f".::{os.environ['PATH']}")
    mine = replace(tool_context, variables=shell_variables(os.environ))
    await BASH.run({"command": "ls > listed; true"}, mine)
    await GREP.run({"pattern": "x"}, mine)
    run_git(tool_context.root, "status")
    await Hooks(hooks=(Hook(event="SessionStart", command="ls"),)).fire(
        "SessionStart",
        {"source": "startup"},
        HookContext(
            session="s",
            transcript=tool_context.home,
            cwd=tool_context.root,
            mode="ask",
            scratch=tool_context.scratch,
        ),
    )
    assert not list(tool_context.root.glob("trace-*"))


async def test_a_step_into_a_directory_leads_where_it_was_judged_to(tool_context, use, monkeypatch):
    for place in (tool_context.root, tool_context.home):
        (place / "inner").mkdir(parents=True)
    (tool_context.root / "inner" / "whose").write_text("the project's")
    (tool_context.home / "inner" / "whose").write_text("somebody's")
    monkeypatch.setenv("CDPATH", str(tool_context.home))
    mine = replace(tool_context, variables=shell_variables(os.environ))
    outcome = await BASH.run({"command": "cd inner && cat whose"}, mine)
    assert "the project's" in text_of(outcome.content)


async def test_a_program_of_the_project_is_not_ours(tmp_path, monkeypatch):
    """An activated environment puts a directory of the project first on PATH."""
    project, ran = tmp_path / "project", tmp_path / "ran"
    tools = project / ".venv" / "bin"
    tools.mkdir(parents=True)
    run_git(project, "init", "-q")
    for name in ("git", "bash", "rg", "sh"):
        (tools / name).write_text(f"#!/bin/sh\necho {name} >> {ran}\n")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    context = ToolContext(root=project, home=tmp_path, scratch=tmp_path / "scratch")
    run_git(project, "status")
    (project / "below").mkdir()
    run_git(project / "below", "status")
    await BASH.run({"command": "echo hi"}, context)
    await GREP.run({"pattern": "hi"}, context)
    monkeypatch.chdir(project)
    hook = Hook(event="SessionStart", command="true")
    given = HookContext(
        session="s", transcript=tmp_path, cwd=project, mode="ask", scratch=tmp_path / "t"
    )
    await Hooks(hooks=(hook,)).fire("SessionStart", {}, given)
    assert not ran.exists(), ran.read_text()


def test_commands_do_not_get_the_stores_password():
    given = {"LONGHOLD_STORE": "x", "OTEL_EXPORTER_OTLP_HEADERS": "x", "LONGHOLD_HOME": "/h"}
    assert shell_variables(given) == {"LONGHOLD_HOME": "/h"}
