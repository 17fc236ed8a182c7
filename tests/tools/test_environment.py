"""What of the environment commands and hooks get."""

from holdfast.hooks.config import Hook
from holdfast.hooks.run import HookContext, Hooks
from holdfast.settings import ShellSettings
from holdfast.tools.context import ToolContext
from holdfast.tools.environment import reading_variables, shell_variables

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
    """Anything else that a command may need goes on."""
    given = dict.fromkeys((*KEYS, *OTHERS), "x")
    assert set(shell_variables(given)) == set(OTHERS)


def test_the_user_can_pass_named_keys_on():
    """By a setting that a project cannot make."""
    settings = ShellSettings(pass_variables="OPENAI_API_KEY HF_TOKEN")
    given = dict.fromkeys(KEYS, "x")
    assert set(shell_variables(given, settings.passed)) == {"OPENAI_API_KEY", "HF_TOKEN"}


def test_a_command_that_runs_unasked_has_no_credentials():
    """Nor anything that would run before it."""
    given = dict.fromkeys((*KEYS, *OTHERS, "BASH_ENV", "DATABASE_URL", "GIT_EXTERNAL_DIFF"), "/x")
    kept = {name for name in reading_variables(given) if not name.startswith("GIT_")}
    assert kept == {"PATH", "HOME", "EDITOR", "ANTHROPIC_BASE_URL"}
    assert "GIT_EXTERNAL_DIFF" not in reading_variables(given)


def test_the_users_own_git_settings_stay():
    """Ours come after those that the environment already has, and win."""
    given = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "a.b", "GIT_CONFIG_VALUE_0": "c"}
    found = reading_variables(given)
    assert found["GIT_CONFIG_KEY_0"] == "a.b"
    assert int(found["GIT_CONFIG_COUNT"]) > 1


def test_a_session_starts_without_the_key(monkeypatch, tmp_path):
    """Whatever else the environment holds."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    fresh = ToolContext(root=tmp_path, home=tmp_path, scratch=tmp_path)
    assert "sk-secret" not in fresh.variables.values()


async def test_a_hook_does_not_see_the_key(tmp_path, monkeypatch):
    """It gets what the agent's commands get."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    hook = Hook(event="SessionStart", command=f"env > {tmp_path}/seen")
    context = HookContext(
        session="s", transcript=tmp_path, cwd=tmp_path, mode="ask", scratch=tmp_path
    )
    await Hooks(hooks=(hook,)).fire("SessionStart", {"source": "startup"}, context)
    assert "sk-secret" not in (tmp_path / "seen").read_text()


async def test_other_users_do_not_see_the_command(said):
    """The list of processes shows arguments to everyone."""
    shown = await said("Bash", command="tr '\\0' ' ' </proc/$$/cmdline # hidden-words")
    assert "eval" in shown
    assert "hidden-words" not in shown
