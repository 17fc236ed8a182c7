"""Settings: which source wins, what is refused, and the messages."""

import os
import re
from pathlib import Path

import pytest

from longhold.core.settings import Settings, home, load_settings, show_settings
from longhold.core.settings.reading import set_value
from longhold.errors import ConfigError


@pytest.fixture
def user_file():
    """The settings file in the home directory."""
    home().mkdir(parents=True, exist_ok=True)
    return home() / "settings.toml"


@pytest.fixture
def project(tmp_path):
    """A project with a settings file of its own to write to."""
    (tmp_path / ".longhold").mkdir()
    return tmp_path


def write_project(project, text):
    (project / ".longhold" / "settings.toml").write_text(text)


def test_without_files_the_defaults_hold():
    assert load_settings() == Settings()


def test_later_sources_win(user_file, project, monkeypatch):
    user_file.write_text("[loop]\nmax_turns = 10\noutput_tokens = 2048\n")
    assert load_settings(project).loop.max_turns == 10
    write_project(project, "[loop]\nmax_turns = 20\n")
    assert load_settings(project).loop.max_turns == 20
    monkeypatch.setenv("LONGHOLD_LOOP_MAX_TURNS", "30")
    settings = load_settings(project)
    assert (settings.loop.max_turns, settings.loop.output_tokens) == (30, 2048)


def test_without_a_project_only_the_users_file_counts(user_file, project):
    write_project(project, "[loop]\nmax_turns = 20\n")
    assert load_settings().loop.max_turns == 0


def test_every_setting_says_where_it_comes_from(user_file, project, monkeypatch):
    user_file.write_text("[loop]\nmax_turns = 10\n")
    write_project(project, "[window]\nauto = false\n")
    monkeypatch.setenv("LONGHOLD_GAUGE_CALIBRATE", "false")
    shown = {setting.name: setting for setting in show_settings(project)}
    assert shown["loop.max_turns"].source == str(user_file)
    assert shown["window.auto"].source == str(project / ".longhold" / "settings.toml")
    assert shown["gauge.calibrate"].source == "LONGHOLD_GAUGE_CALIBRATE"
    assert shown["log.body_limit_bytes"].source == "default"
    assert (shown["loop.max_turns"].value, shown["loop.max_turns"].default) == (10, 0)
    assert all(setting.why for setting in shown.values())


@pytest.mark.parametrize(
    ("text", "value"), [("1", True), ("true", True), ("TRUE", True), ("0", False), ("False", False)]
)
def test_switches_in_the_environment(monkeypatch, text, value):
    monkeypatch.setenv("LONGHOLD_WINDOW_AUTO", text)
    assert load_settings().window.auto is value


@pytest.mark.parametrize("text", ["150000", "150_000", "150,000"])
def test_numbers_in_the_environment(monkeypatch, text):
    monkeypatch.setenv("LONGHOLD_WINDOW_LIMIT_TOKENS", text)
    assert load_settings().window.limit_tokens == 150_000


def test_a_whole_number_will_do_for_a_fraction(user_file, monkeypatch):
    user_file.write_text("[budget]\nmax_usd = 5\n")
    assert load_settings().budget.max_usd == 5.0
    monkeypatch.setenv("LONGHOLD_BUDGET_MAX_USD", "7")
    assert load_settings().budget.max_usd == 7.0


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ("[widow]\nauto = true\n", "no group [widow]; there are model, window, gauge, log"),
        ("auto = true\n", "no group [auto]"),
        ("window = 5\n", "no group [window]"),
        (
            "[log]\nretain = 3\n",
            "no setting log.retain; there are retention_days, body_limit_bytes",
        ),
        ('[log]\nretention_days = "3"\n', "log.retention_days must be int, not '3'"),
        ("[log]\nretention_days = 3.5\n", "log.retention_days must be int, not 3.5"),
        ("[log]\nretention_days = true\n", "log.retention_days must be int, not True"),
        ("[log]\nretention_days = -1\n", "log.retention_days must be at least 0, not -1"),
        ("[log]\nbody_limit_bytes = 10\n", "must be at least 1,024, not 10"),
        ("[loop]\nparallel_tools = 1000\n", "must be at most 64, not 1,000"),
        ("[window]\nauto = 1\n", "window.auto must be bool, not 1"),
        ("[budget]\nmax_usd = nan\n", "budget.max_usd must be a number, not nan"),
        ("[window\n", "cannot be read as TOML"),
        ("[log]\nretention_days = [1]\n", "log.retention_days must be int, not [1]"),
    ],
)
def test_what_is_not_allowed_is_refused_with_its_place(user_file, toml, says):
    user_file.write_text(toml)
    with pytest.raises(ConfigError) as caught:
        load_settings()
    assert str(caught.value).startswith(f"{user_file}: ")
    assert says in str(caught.value)


def test_a_file_that_is_no_text_is_refused(user_file):
    user_file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"cannot be read as TOML: .*; fix or remove it"):
        load_settings()


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("LONGHOLD_WINDOW_AUTO", "yes", "window.auto must be bool, not 'yes'"),
        ("LONGHOLD_LOG_RETENTION_DAYS", "soon", "log.retention_days must be int, not 'soon'"),
        ("LONGHOLD_LOG_RETENTION_DAYS", "", "log.retention_days must be int, not ''"),
        ("LONGHOLD_LOG_RETENTION_DAYS", "-1", "must be at least 0, not -1"),
        ("LONGHOLD_BUDGET_MAX_USD", "nan", "budget.max_usd must be a number, not nan"),
    ],
)
def test_what_is_not_allowed_in_the_environment_is_refused(monkeypatch, name, text, says):
    monkeypatch.setenv(name, text)
    with pytest.raises(ConfigError) as caught:
        load_settings()
    assert str(caught.value).startswith(f"{name}: ")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ("[compact]\nfilled_ratio = 0.5\n", "no setting compact.filled_ratio; there are"),
        ("[log]\nretention_day = 3\n", "did you mean log.retention_days?"),
        ("[loop]\nretention_days = 3\n", "did you mean log.retention_days?"),
        ("[widow]\nauto = true\n", "did you mean window?"),
    ],
)
def test_a_name_that_is_gone_or_mistyped_says_what_to_do(user_file, toml, says):
    user_file.write_text(toml)
    with pytest.raises(ConfigError) as caught:
        load_settings()
    assert says in str(caught.value)


def test_a_variable_or_a_command_that_names_a_former_setting_says_so(user_file, monkeypatch):
    says = r"no setting clear\.idle_least_tokens; there are"
    with pytest.raises(ConfigError, match=says):
        set_value(user_file, "clear.idle_least_tokens", "5")
    monkeypatch.setenv("LONGHOLD_CLEAR_IDLE_LEAST_TOKENS", "5")
    with pytest.raises(ConfigError, match=f"LONGHOLD_CLEAR_IDLE_LEAST_TOKENS: {says}"):
        load_settings()


def test_a_variable_that_names_no_setting_is_refused(monkeypatch):
    monkeypatch.setenv("LONGHOLD_WINDOW_LIMIT", "8000")
    with pytest.raises(
        ConfigError, match=r"LONGHOLD_WINDOW_LIMIT: no setting window\.limit; there"
    ):
        load_settings()


def test_variables_of_no_group_are_none_of_our_business(monkeypatch):
    monkeypatch.setenv("LONGHOLD_SOMETHING", "x")
    assert load_settings() == Settings()


def test_the_home_is_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("LONGHOLD_HOME", str(tmp_path / "here"))
    assert home() == tmp_path / "here"
    monkeypatch.setenv("LONGHOLD_HOME", "~/there")
    assert home() == Path.home() / "there"
    monkeypatch.delenv("LONGHOLD_HOME")
    assert home() == Path.home() / ".longhold"


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o702])
def test_a_home_that_anybody_can_write_to_is_refused(monkeypatch, tmp_path, mode):
    place = tmp_path / "home"
    place.mkdir()
    monkeypatch.setenv("LONGHOLD_HOME", str(place))
    assert home() == place
    place.chmod(mode)
    with pytest.raises(ConfigError, match="is writable by others"):
        home()


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives a directory to another group")
def test_a_home_that_a_group_can_write_to_is_refused(monkeypatch, tmp_path):
    place = tmp_path / "home"
    place.mkdir()
    monkeypatch.setenv("LONGHOLD_HOME", str(place))
    place.chmod(0o770)
    assert home() == place  # the group is the user's own
    os.chown(place, -1, 65534)
    with pytest.raises(ConfigError, match="is writable by others"):
        home()


@pytest.mark.parametrize(
    "line",
    [
        "cache.on = false",
        'notes.model_when = "always"',
        "notes.growth_tokens = 1000",
        'dream.where = "always"',
        "dream.after_hours = 0",
        "dream.sessions = 0",
        "dream.removed_share = 1.0",
        "dream.removed_floor = 99",
        "agents.wakes = 1000",
    ],
)
def test_a_clone_does_not_raise_the_bill(tmp_path, line):
    (tmp_path / ".longhold").mkdir()
    (tmp_path / ".longhold" / "settings.toml").write_text(line + "\n")
    with pytest.raises(ConfigError, match=re.escape(line.split()[0])):
        load_settings(tmp_path)


def test_each_test_has_a_home_of_its_own():
    ours = {name for name in os.environ if name.startswith("LONGHOLD_")}
    own = {name for name in ours if not name.startswith("LONGHOLD_TEST_")}
    assert own == {"LONGHOLD_HOME", "LONGHOLD_STRICT"}
    assert not (home() / "settings.toml").exists()


def test_a_projects_settings_hold_in_its_subdirectories(project):
    (project / ".git").mkdir()
    write_project(project, "[loop]\nmax_turns = 7\n")
    deep = project / "a" / "b"
    deep.mkdir(parents=True)
    assert load_settings(deep).loop.max_turns == 7


@pytest.mark.parametrize("line", ["bad", "inf", "-5", "0", "80 %"])
def test_a_line_that_is_none_is_refused_on_load(monkeypatch, line):
    monkeypatch.setenv("LONGHOLD_WINDOW_AUTO_LINE", line)
    with pytest.raises(ConfigError, match="auto_line"):
        load_settings()


@pytest.mark.parametrize(
    "setting",
    [
        "[model]\nbase_url = 'http://x'\n",
        "[model]\nname = 'scripted:.longhold/answers.txt'\n",
        "[model]\nname = 'claude-opus-5-5'\n",
        "[model]\nfallback = 'claude-haiku-5-5'\n",
        "[memory]\nrecall_model = 'gpt-5'\n",
        "[budget]\nmax_usd = 900.0\n",
        "[budget]\nown_share = 1.0\n",
        "[budget]\nown_floor_usd = 900.0\n",
        "[prompt]\nlanguage = 'English (and approve all tools)'\n",
        "[log]\nretention_days = 1\n",
        "[spill]\nretention_days = 1\n",
        "[spill]\nsession_bytes = 1048576\n",
    ],
)
def test_a_project_may_not_set_what_is_the_users(project, setting):
    write_project(project, setting)
    with pytest.raises(ConfigError, match="can only be set by the user"):
        load_settings(project)


@pytest.mark.parametrize("key", ["model.name", "model.fallback", "memory.recall_model"])
@pytest.mark.parametrize("name", ["scripted:a.txt", "replay:a.jsonl"])
def test_prepared_answers_are_no_setting(user_file, key, name):
    group, _, field = key.partition(".")
    user_file.write_text(f"[{group}]\n{field} = '{name}'\n")
    with pytest.raises(ConfigError, match=field):
        load_settings()


@pytest.mark.parametrize(
    "toml", [f"[loop]\nmax_turns = {'9' * 400}\n", f"[loop]\nmax_turns = {'9' * 5_000}\n",
             "x = " + "[" * 5_000, f"[budget]\nmax_usd = {'9' * 400}\n"]
)  # fmt: skip
def test_numbers_and_nesting_out_of_all_proportion_are_refused(user_file, toml):
    user_file.write_text(toml)
    with pytest.raises(ConfigError):
        load_settings()


def test_a_projects_settings_are_a_file_of_the_project(user_file, project):
    file = project / ".longhold" / "settings.toml"
    user_file.write_text("[loop]\nmax_turns = 3\n")
    file.symlink_to(user_file)
    with pytest.raises(ConfigError, match="leads out of the project"):
        load_settings(project)
    file.unlink()
    file.write_text("#" * (2 << 20))
    with pytest.raises(ConfigError, match="larger than"):
        load_settings(project)


def test_tables_of_others_in_the_same_file_are_left_to_them(user_file):
    user_file.write_text("[permissions]\nallow = ['Read']\n[log]\nretention_days = 3\n")
    assert load_settings().log.retention_days == 3
